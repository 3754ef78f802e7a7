"""The explorer's picture: the library's plot on one canvas, redrawn in parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..chain import Ledger
from ..plots._labels import Tokens
from ..plots._style import CHOSEN, FAINT, FINAL, GRID, INK, PAPER
from ..plots.bars import Bar, axis_limit, distribution_table
from ..plots.distribution import DistributionArtists
from .png import PaletteEncoder
from .view import View

_POINTS_PER_INCH = 72.0
"""A point of the figure is a CSS pixel of the page."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 150, 138, 32, 34
"""Room around the bars, for labels, numbers, key and axis."""

_ROW = 22.5
"""Height of a bar and the gap below it."""


class DistributionCanvas:
    """Draw views as PNG, each time only what differs from the one before.

    Three layers lie over each other, each a copy of the pixels below with more drawn
    on them: the axes (one for each end of the axis), what depends on the logits, and
    what depends on the sampling parameters. A slider changes only the last.

    Args:
        width: in CSS pixels; the height follows from the number of bars.
        bars: how many tokens get a bar.
        scale: device pixels per CSS pixel; more is sharper, and slower by its square.
    """

    def __init__(self, width: int = 640, bars: int = 20, scale: float = 1.5) -> None:
        self.width, self.bars, self._scale = width, bars, scale
        self._encoder = PaletteEncoder([PAPER, FINAL, CHOSEN, INK, FAINT, GRID])
        self._axes: dict[tuple[int, float], _Layer] = {}
        self._raw: tuple[object, Any] | None = None
        self._top: tuple[Any, list[int]] = (None, [])
        self._asked: Tokens = None
        self._texts: Tokens = None

    def table(self, view: View) -> list[Bar]:
        """Return the bars of a view as numbers."""
        return distribution_table(
            view.ledger,
            tokens=self._known_texts(view.tokens),
            chosen=view.chosen,
            n=self.bars,
            top=self._top_ids(view.ledger),
        )

    def draw(self, view: View) -> bytes:
        """Return the picture of a view as PNG."""
        return self.draw_table(self.table(view))

    def draw_table(self, bars: Sequence[Bar]) -> bytes:
        """Return the picture of bars as PNG."""
        layer = self._axes_layer(len(bars), axis_limit(bars))
        self._restore_raw(layer, bars)
        layer.artists.show_final(bars)
        layer.draw(layer.artists.final_artists)
        return self._encoder.encode(
            np.asarray(layer.canvas.buffer_rgba()), self._scale * _POINTS_PER_INCH
        )

    def _top_ids(self, ledger: Ledger) -> list[int]:
        """Return the most likely ids, found once for the same logits."""
        logits = ledger.raw_logits
        known, ids = self._top
        if known is None or known.shape != logits.shape or not known.equal(logits):
            ids = ledger.top(self.bars)
            self._top = (logits, ids)
        return list(ids)

    def _known_texts(self, tokens: Tokens) -> Tokens:
        """Return `tokens` with a memory: a slider shows the same ones again."""
        if not callable(tokens):
            return tokens
        if tokens != self._asked:
            self._asked, self._texts = tokens, lru_cache(maxsize=1024)(tokens)
        return self._texts

    def _axes_layer(self, rows: int, limit: float) -> _Layer:
        key = (rows, limit)
        if key not in self._axes:
            if len(self._axes) > 8:  # a few vocabularies' worth; then start again
                self._axes.clear()
            self._axes[key] = _Layer(self.width, self._scale, rows, limit)
        return self._axes[key]

    def _restore_raw(self, layer: _Layer, bars: Sequence[Bar]) -> None:
        """Bring back the pixels of axes and raw bars, drawn only where they changed."""
        key = (layer, [(bar.label, bar.raw, bar.chosen) for bar in bars])
        if self._raw is None or self._raw[0] != key:
            layer.canvas.restore_region(layer.background)
            layer.artists.show_raw(bars)
            layer.draw(layer.artists.raw_artists)
            self._raw = (key, layer.copy())
        else:
            layer.canvas.restore_region(self._raw[1])


class _Layer:
    """A canvas with one axes drawn on it, and the artists that change."""

    def __init__(self, width: int, scale: float, rows: int, limit: float) -> None:
        height = _TOP + _ROW * rows + _BOTTOM
        size = (width / _POINTS_PER_INCH, height / _POINTS_PER_INCH)
        figure = Figure(size, dpi=_POINTS_PER_INCH * scale, facecolor=PAPER)
        self.canvas = FigureCanvasAgg(figure)
        ax = figure.add_axes(
            [
                _LEFT / width,
                _BOTTOM / height,
                (width - _LEFT - _RIGHT) / width,
                _ROW * rows / height,
            ]
        )
        self.artists = DistributionArtists(ax, rows, limit=limit, animated=True)
        self.canvas.draw()
        self.background = self.copy()

    def copy(self) -> Any:
        """Return a copy of all pixels, for `canvas.restore_region`."""
        return self.canvas.copy_from_bbox(self.canvas.figure.bbox)

    def draw(self, artists: Iterable[Artist]) -> None:
        """Draw artists over the pixels there are."""
        renderer = self.canvas.get_renderer()
        for artist in artists:
            artist.draw(renderer)
