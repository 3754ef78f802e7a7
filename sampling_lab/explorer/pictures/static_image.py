"""A static image of a panel, for where a notebook is shown without a kernel."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from ...plots.drawing.labels import FONT, drawable
from ...plots.drawing.style import FAINT, FONT_SIZE, INK, PAPER
from .fast_figure import POINTS_PER_INCH
from .tab import Picture

_LINE, _MARGIN, _INDENT = 19.0, 8.0, 76.0
"""From one line to the next, left of a line, and left of a paragraph, in points."""

_LETTERS, _MOST_LINES = 76, 14
"""Letters in a line, and lines in a paragraph."""


def static_image(shown: Picture, width: int, texts: Mapping[str, str]) -> bytes:
    """Return a picture with its title, its caption and texts, as one PNG.

    All text is drawn literally; a line feed begins a new line.

    Args:
        shown: the picture, its title and its caption.
        width: of the picture, in points.
        texts: paragraphs at the end, by name; empty ones are left out.
    """
    picture = np.asarray(Image.open(io.BytesIO(shown.png)).convert("RGB"))
    lines = [
        ("" if at else name, line)
        for name, text in texts.items()
        for at, line in enumerate(_lines(text))
    ]
    scale, above = picture.shape[1] / width, 1.5 * _LINE
    below = above + picture.shape[0] / scale
    height = below + _LINE * (len(lines) + 1.5)
    # A tenth of a pixel more: a page is as wide as the picture, never one less.
    size = ((width + 0.1) / POINTS_PER_INCH, height / POINTS_PER_INCH)
    figure = Figure(size, dpi=POINTS_PER_INCH * scale, facecolor=PAPER)
    figure.figimage(picture, 0, round((height - below) * scale))

    def write(left: float, y: float, text: str, **style: Any) -> None:
        text = "".join(c if c == " " else drawable(c) for c in text)
        style = {"color": INK, "fontsize": FONT_SIZE, "family": FONT, **style}
        place = (left / width, 1 - y / height)
        figure.text(*place, text, va="center", parse_math=False, **style)

    write(_MARGIN, 0.75 * _LINE, shown.title)
    write(_MARGIN, below + 0.75 * _LINE, shown.caption, weight="bold")
    for at, (name, line) in enumerate(lines):
        write(_MARGIN, below + (at + 1.75) * _LINE, name, color=FAINT)
        write(_INDENT, below + (at + 1.75) * _LINE, line)
    file = io.BytesIO()
    figure.savefig(file)
    return file.getvalue()


def _lines(text: str) -> list[str]:
    """Return text in lines that fit; too many end with an ellipsis."""
    lines = [
        part
        for line in text.split("\n")
        for part in textwrap.wrap(line, _LETTERS, replace_whitespace=False) or [""]
    ]
    cut = [*lines[:_MOST_LINES], "…"] if len(lines) > _MOST_LINES else lines
    return cut if text else []
