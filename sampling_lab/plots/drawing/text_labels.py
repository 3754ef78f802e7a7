"""Texts in and beside a plot, drawn as outlines.

Matplotlib lays each changed text out afresh, at a millisecond each. `TextLabels` keep
the outline of every text (for plain text, of every letter) and draw all of them at
once, which is what lets a picture follow a slider.
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
"""Outlines are kept at this size in points."""

_HALF_CAPITAL = 0.36
"""Half the height of a capital letter, as a part of the font size."""

_ALIGNED = {"left": 0.0, "center": 0.5, "right": 1.0}


class TextLabel(NamedTuple):
    """A text at a place: the middle of the height of its capitals is at y.

    Attributes:
        x: in the units of the transform of its `TextLabels`.
        y: likewise.
        text: drawn as it is; no mathematics in it is obeyed.
        align: which end of the text is at x: "left", "right", or its "center".
        color: of the letters.
        bold: whether the letters are bold.
        move: points to the right and upwards of (x, y).
        turned: whether it reads upwards, its end at the place.
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
    """Texts at places, those of one colour drawn together.

    Args:
        ax: the axes to stand in or beside; the notes add themselves to it.
        transform: of the places; None is the axes' data.

    Attributes:
        notes: what is written.
    """

    def __init__(self, ax: Axes, transform: Transform | None = None) -> None:
        super().__init__()
        self.notes: list[TextLabel] = []
        self.set_clip_on(False)
        self.set_zorder(6)
        self.set_transform(transform or ax.transData)
        ax.add_artist(self)

    @property
    def texts(self) -> list[str]:
        """What is written, in order."""
        return [note.text for note in self.notes]

    def write(self, notes: Iterable[TextLabel]) -> None:
        """Write these instead of what there was."""
        self.notes = list(notes)
        self.stale = True

    def draw(self, renderer: RendererBase) -> None:
        """Draw the texts, those of one colour together."""
        if not self.get_visible():
            return
        context = renderer.new_gc()
        context.set_linewidth(0)
        for color, path in self._paths(renderer.points_to_pixels(1.0)).items():
            renderer.draw_path(context, path, Affine2D(), to_rgba(color))
        context.restore()
        self.stale = False

    def get_window_extent(self, renderer: RendererBase | None = None) -> Bbox:
        """Return the box around all texts, in pixels, for layouts that make room."""
        paths = self._paths(self.figure.dpi / 72).values()
        return (
            Bbox.union([path.get_extents() for path in paths]) if paths else Bbox.null()
        )

    def _paths(self, point: float) -> dict[str, Path]:
        """Return the outlines of each colour's texts; a point is so many pixels."""
        notes = [note for note in self.notes if note.text]
        if not notes:
            return {}
        places = self.get_transform().transform([note[:2] for note in notes])
        parts: dict[str, list[_Placed]] = {}
        size = FONT_SIZE * point / _UNITS
        for note, (x, y) in zip(notes, places.tolist(), strict=True):
            right, up = note.move
            place = (x + right * point, y + up * point)
            parts.setdefault(note.color, []).extend(_line(note, place, size))
        return {color: _joined(placed, size) for color, placed in parts.items()}


class TextColumn(TextLabels):
    """Texts under one another, each centred on its row by the height of its capitals.

    Args:
        ax: the axes to stand beside; the column adds itself to it.
        edge: the side of the axes to measure from, 0.0 (left) or 1.0 (right).
        points: how far right of that edge the texts end, or begin, in points.
        rows: where the texts stand, as y of the axes' data.
        texts: the texts to begin with.
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
        self._place = TextLabel(edge, 0.0, "", align, move=(points, 0.0))
        self.set_texts(texts)

    @property
    def colors(self) -> list[str]:
        """The colour of each row."""
        return [note.color for note in self.notes]

    def set_texts(
        self, texts: Sequence[str], colors: Sequence[str] | None = None
    ) -> None:
        """Set the texts from the first row on; rows without one are left empty."""
        missing = len(self.rows) - len(texts)
        texts = [*texts, *[""] * missing]
        colors = [*(colors or []), *[self._color] * len(self.rows)]
        rows = zip(self.rows, texts, colors, strict=False)
        self.write(
            self._place._replace(y=row, text=text, color=color)
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
    """An outline, the pixel where it begins, and whether it reads upwards."""

    outline: _Outline
    place: tuple[float, float]
    turned: bool


def _line(
    note: TextLabel, place: tuple[float, float], size: float
) -> Iterable[_Placed]:
    """Place the letters of a note one after the other."""
    letters = _letters(note.text, note.bold)
    along = -_ALIGNED[note.align] * sum(letter.width for letter in letters)
    x, y = place
    for letter in letters:
        shift = along * size
        place = (x, y + shift) if note.turned else (x + shift, y)
        yield _Placed(letter, place, note.turned)
        along += letter.width


def _letters(text: str, bold: bool) -> list[_Outline]:
    """Return the outlines that make up a text, one after the other."""
    # In some scripts letters join or turn, so only plain ones stand alone.
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
