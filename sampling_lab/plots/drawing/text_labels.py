"""Texts in and next to a plot, drawn as outlines.

Matplotlib needs a millisecond for the layout of each changed text. `TextLabels` keep
the outline of every text (for ASCII text, of every letter) and draw all of them at
once, so that a picture can follow a slider.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Bbox, Transform

from .labels import FONT, shorten
from .style import FONT_SIZE, INK

_UNITS = 100.0
"""The size in points at which outlines are kept."""

_HALF_CAPITAL = 0.36
"""Half the height of a capital letter, as a fraction of the font size."""

_ALIGNED = {"left": 0.0, "center": 0.5, "right": 1.0}


class TextLabel(NamedTuple):
    """A text at a place: the middle of the height of its capitals is at y.

    Attributes:
        x: in the units of the transform of its `TextLabels`.
        y: likewise.
        text: drawn literally; dollar signs begin no formula.
        align: which end of the text is at x: "left", "right", or its "center".
        color: of the letters.
        bold: whether the letters are bold.
        move: points to the right and upwards of (x, y).
        turned: whether it reads upwards; `align` is then along the y axis.
    """

    x: float
    y: float
    text: str
    align: str = "left"
    color: str = INK
    bold: bool = False
    move: tuple[float, float] = (0.0, 0.0)
    turned: bool = False


class TextLabels(Artist):
    """Texts in or next to axes, those of one colour drawn together.

    Args:
        ax: the axes; the labels add themselves to it.
        transform: of the labels' x and y; None is that of the axes' data.

    Attributes:
        labels: the texts that are shown.
    """

    def __init__(self, ax: Axes, transform: Transform | None = None) -> None:
        super().__init__()
        self.labels: list[TextLabel] = []
        self.set_clip_on(False)
        self.set_zorder(6)
        self.set_transform(transform or ax.transData)
        self._inches = ax.figure.dpi_scale_trans
        ax.add_artist(self)

    @property
    def texts(self) -> list[str]:
        """The texts that are shown, in order."""
        return [label.text for label in self.labels]

    def write(self, labels: Iterable[TextLabel]) -> None:
        """Show these texts instead of the ones before."""
        self.labels = list(labels)
        self.stale = True

    def draw(self, renderer: RendererBase) -> None:
        """Draw the texts, those of one colour together."""
        if not self.get_visible():
            return
        context = renderer.new_gc()
        context.set_linewidth(0)
        for color, path in self._paths().items():
            renderer.draw_path(context, path, Affine2D(), to_rgba(color))
        context.restore()
        self.stale = False

    def get_window_extent(self, renderer: RendererBase | None = None) -> Bbox:
        """Return the box around all texts in pixels, for layouts that make room."""
        paths = self._paths().values()
        return (
            Bbox.union([path.get_extents() for path in paths]) if paths else Bbox.null()
        )

    def _paths(self) -> dict[str, Path]:
        """Return the outlines of the texts by colour, in pixels."""
        labels = [label for label in self.labels if label.text]
        if not labels:
            return {}
        places = self.get_transform().transform([label[:2] for label in labels])
        point = float(self._inches.transform((1 / 72, 0.0))[0])  # in pixels
        parts: dict[str, list[_Placed]] = {}
        size = FONT_SIZE * point / _UNITS
        for label, (x, y) in zip(labels, places.tolist(), strict=True):
            right, up = label.move
            place = (x + right * point, y + up * point)
            parts.setdefault(label.color, []).extend(_line(label, place, size))
        return {color: _joined(placed, size) for color, placed in parts.items()}


class TextColumn(TextLabels):
    """A column of texts, each centred on its row by the height of its capitals.

    Args:
        ax: the axes; the column adds itself to it.
        edge: the side of the axes to measure from, 0.0 (left) or 1.0 (right).
        points: how far right of that edge the texts end, or begin, in points.
        rows: the y of each text, in the axes' data coordinates.
        texts: the first texts.
        align: "right" or "left".
        color: of all texts for which none is given.
    """

    def __init__(
        self,
        ax: Axes,
        edge: float,
        points: float,
        rows: Sequence[float],
        texts: Sequence[str] = (),
        *,
        align: str = "right",
        color: str = INK,
    ) -> None:
        super().__init__(ax, ax.get_yaxis_transform())
        self.rows, self._color = list(rows), color
        self._label = TextLabel(edge, 0.0, "", align, move=(points, 0.0))
        self.set_texts(texts)

    @property
    def colors(self) -> list[str]:
        """The colour of each row."""
        return [label.color for label in self.labels]

    def set_texts(
        self, texts: Sequence[str], colors: Sequence[str] | None = None
    ) -> None:
        """Set the texts from the first row on; rows without a text stay empty."""
        missing = len(self.rows) - len(texts)
        texts = [*texts, *[""] * missing]
        colors = [*(colors or []), *[self._color] * len(self.rows)]
        rows = zip(self.rows, texts, colors, strict=False)
        self.write(
            self._label._replace(y=row, text=text, color=color)
            for row, text, color in rows
        )


def text_width(text: str, *, bold: bool = False) -> float:
    """Return how wide a text is, in points."""
    return sum(letter.width for letter in _letters(text, bold)) * FONT_SIZE / _UNITS


def fitted(text: str, room: float, *, bold: bool = False) -> str:
    """Shorten a text to so many points; "" where three letters do not fit.

    >>> fitted("internationalisation", 70), fitted("internationalisation", 20)
    ('inter…tion', '')
    """
    letters = len(text)
    while text_width(short := shorten(text, letters), bold=bold) > room:
        letters -= 1
        if letters < 3:
            return ""
    return short


def number(value: float) -> str:
    """Return a number >= 0 in the width of a column: three decimals, or digits.

    >>> number(0.25), number(0.0001), number(28.819), number(1234.5)
    ('0.250', '<0.001', '28.819', '1.23e+03')
    """
    if 0.0 < value < 0.0005:
        return "<0.001"
    return f"{value:.3f}" if value < 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class _Outline:
    """Vertices (points, 2), codes (points,) and width, in hundredths of the size."""

    vertices: np.ndarray
    codes: np.ndarray
    width: float


class _Placed(NamedTuple):
    """An outline, the pixel at which it begins, and whether it reads upwards."""

    outline: _Outline
    place: tuple[float, float]
    turned: bool


def _line(
    label: TextLabel, place: tuple[float, float], size: float
) -> Iterable[_Placed]:
    """Place the letters of a label one after the other."""
    letters = _letters(label.text, label.bold)
    along = -_ALIGNED[label.align] * sum(letter.width for letter in letters)
    x, y = place
    for letter in letters:
        shift = along * size
        place = (x, y + shift) if label.turned else (x + shift, y)
        yield _Placed(letter, place, label.turned)
        along += letter.width


def _letters(text: str, bold: bool) -> list[_Outline]:
    """Return the outlines that make up a text, one after the other."""
    # In some scripts letters join, so only ASCII is laid out letter by letter.
    parts = text if text.isascii() else [text]
    return [_laid_out(part, bold) for part in parts if part]


def _joined(placed: list[_Placed], size: float) -> Path:
    """Return one path of outlines, scaled, turned and moved to their places."""
    outlines, places, turned = zip(*placed, strict=True)
    counts = [len(outline.codes) for outline in outlines]
    vertices = np.concatenate([outline.vertices for outline in outlines])
    if any(turned):
        quarter = np.stack([-vertices[:, 1], vertices[:, 0]], -1)
        vertices = np.where(np.repeat(turned, counts)[:, None], quarter, vertices)
    vertices = vertices * size + np.repeat(places, counts, axis=0)  # (points, 2)
    return Path(vertices, np.concatenate([outline.codes for outline in outlines]))


@lru_cache(maxsize=1024)
def _laid_out(text: str, bold: bool) -> _Outline:
    weight = "bold" if bold else "normal"
    font = FontProperties(family=FONT, weight=weight, size=_UNITS)
    vertices, codes = text_to_path.get_text_path(font, text)
    width = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    centred = np.reshape(vertices, (-1, 2)) - (0.0, _HALF_CAPITAL * _UNITS)
    return _Outline(centred, np.array(codes, Path.code_type), width)
