"""A still of a panel, for where a notebook is read without a kernel."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread, imsave

from ...plots.drawing.labels import drawable
from ...plots.drawing.style import FAINT, PAPER
from ...plots.drawing.text import write

_POINTS_PER_INCH = 72.0
_LINE = 19.0
"""From one line of text to the next, in points, which are the page's pixels."""

_MARGIN, _INDENT = 8.0, 76.0
"""Where a line begins, and a paragraph right of its name."""

_LETTERS = 76
"""How many letters a line may have at the width of the pictures."""

_MOST_LINES = 14


class Words(NamedTuple):
    """A paragraph under the picture, or over it: what it is, and its text."""

    name: str
    text: str


def static_image(
    png: bytes, width: int, title: str, caption: str, words: Sequence[Words] = ()
) -> bytes:
    """Return a picture with its title, its caption and texts, as one PNG.

    All text is drawn literally; a line feed begins a new line.

    Args:
        png: the picture.
        width: its width in points.
        title: the line over it.
        caption: the line under it.
        words: paragraphs below; those that are empty are left out.
    """
    picture = imread(io.BytesIO(png))  # (height, width, 3 or 4), floats in [0, 1]
    pixels = round(picture.shape[1])
    foot = [_Line(caption, weight="bold")]
    for each in words:
        foot += _paragraph(each)
    parts = [
        _sheet([_Line(title)], pixels, width),
        (255 * picture[..., :3]).round().astype(np.uint8),
        _sheet(foot, pixels, width),
    ]
    file = io.BytesIO()
    imsave(file, np.concatenate(parts), format="png")
    return file.getvalue()


class _Line(NamedTuple):
    text: str
    name: str = ""
    place: float = _MARGIN
    weight: str = "normal"


def _paragraph(words: Words) -> list[_Line]:
    """Return the lines of a paragraph, its name first; none where it is empty."""
    if not words.text:
        return []
    wrapped = [
        part
        for line in words.text.split("\n")
        for part in textwrap.wrap(line, _LETTERS, replace_whitespace=False) or [""]
    ]
    if len(wrapped) > _MOST_LINES:
        wrapped = [*wrapped[:_MOST_LINES], "…"]
    first, *rest = (_Line(line, place=_INDENT) for line in wrapped)
    return [first._replace(name=words.name), *rest]


def _running(text: str) -> str:
    """Return text that the font can draw; its spaces need no sign."""
    return "".join(c if c == " " else drawable(c) for c in text)


def _sheet(lines: Sequence[_Line], pixels: int, width: int) -> np.ndarray:
    """Return lines of text on paper, uint8 of shape (height, pixels, 3)."""
    height = _LINE * (len(lines) + 0.5)
    dpi = _POINTS_PER_INCH * pixels / width
    size = (width / _POINTS_PER_INCH, height / _POINTS_PER_INCH)
    figure = Figure(size, dpi=dpi, facecolor=PAPER)
    canvas = FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    for at, line in enumerate(lines):
        row = _LINE * (at + 0.75)
        write(ax, _MARGIN, row, line.name, color=FAINT)
        write(ax, line.place, row, _running(line.text), weight=line.weight)
    canvas.draw()
    drawn = np.asarray(canvas.buffer_rgba())[..., :3]
    # A figure's size is whole inches of dots: by rounding it can miss one.
    fitted = np.full((drawn.shape[0], pixels, 3), 255, np.uint8)
    shared = min(pixels, drawn.shape[1])
    fitted[:, :shared] = drawn[:, :shared]
    return fitted
