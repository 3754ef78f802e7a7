"""Columns of text beside a plot, drawn as outlines.

Matplotlib lays each changed text out afresh, at a millisecond each. A column keeps
the outline of every text (for plain text, of every letter) and draws all its rows
at once, which is what lets a picture follow a slider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Bbox, ScaledTranslation

from ._labels import FONT
from ._style import FONT_SIZE, INK

_UNITS = 100.0
"""Outlines are kept at this size in points."""

_HALF_CAPITAL = 0.36
"""Half the height of a capital letter, as a part of the font size."""


class TextColumn(Artist):
    """Texts under one another, each centred on its row by the height of its capitals.

    Args:
        ax: the axes to stand beside; the column adds itself to it.
        edge: the side of the axes to measure from, 0.0 (left) or 1.0 (right).
        points: how far right of that edge the texts end, or begin, in points.
        rows: where the texts stand, as y of the axes' data.
        align: "right" or "left".
        color: of all texts that get no other.
        animated: leave drawing to the caller.

    Attributes:
        texts: one for each row; "" where there is none.
        colors: one for each row.
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
        animated: bool = False,
    ) -> None:
        super().__init__()
        self._edge, self.rows, self._align = edge, list(rows), align
        self._color = color
        self.set_animated(animated)
        self.set_clip_on(False)
        self.set_transform(
            ax.get_yaxis_transform()
            + ScaledTranslation(points / 72, 0, ax.figure.dpi_scale_trans)
        )
        self.set_texts(texts)
        ax.add_artist(self)

    def set_texts(
        self, texts: Sequence[str], colors: Sequence[str] | None = None
    ) -> None:
        """Set the texts from the first row on; rows without one are left empty."""
        missing = len(self.rows) - len(texts)
        self.texts = [*texts, *[""] * missing]
        self.colors = [*(colors or [self._color] * len(texts)), *[INK] * missing]
        self.stale = True

    def draw(self, renderer: RendererBase) -> None:
        """Draw the texts, those of one colour together."""
        if not self.get_visible():
            return
        size = renderer.points_to_pixels(FONT_SIZE) / _UNITS
        context = renderer.new_gc()
        context.set_linewidth(0)
        for color, path in self._paths(size).items():
            renderer.draw_path(context, path, Affine2D(), to_rgba(color))
        context.restore()
        self.stale = False

    def get_window_extent(self, renderer: RendererBase | None = None) -> Bbox:
        """Return the box around all texts, in pixels, for layouts that make room."""
        size = self.figure.dpi / 72 * FONT_SIZE / _UNITS
        paths = self._paths(size).values()
        return (
            Bbox.union([path.get_extents() for path in paths]) if paths else Bbox.null()
        )

    def _paths(self, size: float) -> dict[str, Path]:
        """Return for each colour the outlines of its texts, in pixels."""
        points = [(self._edge, row) for row in self.rows]
        places = self.get_transform().transform(points)  # (rows, 2)
        parts: dict[str, list[_Placed]] = {}
        for text, color, (x, y) in zip(self.texts, self.colors, places, strict=True):
            letters = _letters(text)
            if self._align == "right":
                x -= size * sum(letter.width for letter in letters)
            for letter in letters:
                parts.setdefault(color, []).append((letter, x, y))
                x += size * letter.width
        return {color: _joined(placed, size) for color, placed in parts.items()}


@dataclass(frozen=True)
class _Outline:
    """Vertices (points, 2), codes (points,) and width, in hundredths of the size."""

    vertices: np.ndarray
    codes: np.ndarray
    width: float


_Placed = tuple[_Outline, float, float]
"""An outline with the pixel where it begins."""


def _letters(text: str) -> list[_Outline]:
    """Return the outlines that make up a text, one after the other."""
    if not text:
        return []
    # In some scripts letters join or turn, so only plain ones stand alone.
    return [_laid_out(part) for part in (text if text.isascii() else [text])]


def _joined(placed: list[_Placed], size: float) -> Path:
    """Return one path of outlines, scaled and moved to their places."""
    sizes = [len(outline.codes) for outline, _, _ in placed]
    starts = np.array([(x, y) for _, x, y in placed])  # (outlines, 2)
    vertices = np.concatenate([outline.vertices for outline, _, _ in placed])
    vertices = vertices * size + np.repeat(starts, sizes, axis=0)  # (points, 2)
    return Path(vertices, np.concatenate([outline.codes for outline, _, _ in placed]))


@lru_cache(maxsize=1024)
def _laid_out(text: str) -> _Outline:
    font = FontProperties(family=FONT, size=_UNITS)
    vertices, codes = text_to_path.get_text_path(font, text)
    width = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    centred = np.reshape(vertices, (-1, 2)) - (0.0, _HALF_CAPITAL * _UNITS)
    return _Outline(centred, np.array(codes, Path.code_type), width)
