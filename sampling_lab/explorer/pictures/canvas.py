"""The explorer's first picture: the library's plot, redrawn in parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.artist import Artist

from ...plots.distribution import DistributionArtists
from ...plots.distribution_rows import Bar, axis_limit, distribution_table
from ...plots.drawing.labels import Tokens
from ...sampling.ledger import Ledger
from .sheets import Pixels, Place, Sheet, Surface
from .step_view import StepView

_LEFT, _RIGHT, _TOP, _BOTTOM = 150, 138, 32, 34
"""Room around the bars, for labels, numbers, key and axis."""

_ROW = 22.5
"""Height of a bar and the gap below it."""

_AXES = 4
"""Of so many ends of the axis the pixels are kept, some 3 MB each."""


class DistributionCanvas:
    """Draw views as PNG, each time only what differs from the one before.

    Three layers lie over each other, each a copy of the pixels below with more drawn
    on them: the axes, what depends on the logits, and what depends on the sampling
    parameters. A slider changes only the last.

    Args:
        width: in CSS pixels; the height follows from the number of bars.
        bars: how many tokens get a bar.
        scale: device pixels per CSS pixel; more is sharper, and slower by its square.
        surface: the pixels to draw on, to share them with other pictures.
    """

    def __init__(
        self,
        width: int = 640,
        bars: int = 20,
        scale: float = 1.5,
        surface: Surface | None = None,
    ) -> None:
        self.width, self.bars = width, bars
        self._surface = surface or Surface(width, scale)
        self._sheet = Sheet(self._surface)
        self._axes = [_Layer() for _ in range(_AXES)]  # the latest first
        self._raw = _Layer()
        self._top: tuple[Any, list[int]] = (None, [])
        self._asked: Tokens = None
        self._texts: Tokens = None

    def table(self, view: StepView) -> list[Bar]:
        """Return the bars of a view as numbers."""
        return distribution_table(
            view.ledger,
            tokens=self._known_texts(view.tokens),
            chosen=view.chosen,
            n=self.bars,
            top=self._top_ids(view.ledger),
        )

    def draw(self, view: StepView) -> bytes:
        """Return the picture of a view as PNG."""
        return self.draw_table(self.table(view))

    def draw_table(self, bars: Sequence[Bar]) -> bytes:
        """Return the picture of bars as PNG."""
        artists = self._artists(len(bars))
        pixels = self._sheet.pixels()
        self._restore_raw(pixels, artists, bars)
        artists.show_final(bars)
        _draw(artists.final_artists, pixels)
        return self._surface.encode(pixels)

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

    def _artists(self, rows: int) -> DistributionArtists:
        height = _ROW * rows
        place = Place(_LEFT, _BOTTOM, self.width - _LEFT - _RIGHT, height)
        return self._sheet.artists(
            _TOP + height + _BOTTOM,
            [place],
            lambda axes: DistributionArtists(axes[0], rows, animated=True),
        )

    def _restore_raw(
        self, pixels: Pixels, artists: DistributionArtists, bars: Sequence[Bar]
    ) -> None:
        """Bring back the pixels of axes and raw bars, drawn only where they changed."""
        limit = axis_limit(bars)
        if artists.ax.get_xlim()[1] != limit:
            artists.ax.set_xlim(0.0, limit)
        key = (artists, limit, [(bar.label, bar.raw, bar.chosen) for bar in bars])
        if self._raw.restore(pixels, key):
            return
        self._restore_axes(pixels, (artists, limit))
        artists.show_raw(bars)
        _draw(artists.raw_artists, pixels)
        self._raw.keep(pixels, key)

    def _restore_axes(self, pixels: Pixels, key: object) -> None:
        """Bring back the pixels of axes: a slider goes to and fro between a few."""
        known = next((each for each in self._axes if each.restore(pixels, key)), None)
        if known is None:
            known = self._axes[-1]
            self._sheet.draw(pixels)
            known.keep(pixels, key)
        self._axes.remove(known)
        self._axes.insert(0, known)


class _Layer:
    """A copy of all pixels, and what was to be seen in it.

    The memory is used again, like that of a `Surface`.
    """

    def __init__(self) -> None:
        self._key: object = None
        self._copy = np.empty((0, 0, 4), np.uint8)

    def restore(self, pixels: Pixels, key: object) -> bool:
        """Bring the pixels back if they show this; return whether they do."""
        if self._key == key:
            np.copyto(pixels.seen, self._copy)
        return self._key == key

    def keep(self, pixels: Pixels, key: object) -> None:
        """Remember the pixels, which show this."""
        if pixels.seen.shape != self._copy.shape:
            self._copy = np.empty_like(pixels.seen)
        np.copyto(self._copy, pixels.seen)
        self._key = key


def _draw(artists: Iterable[Artist], pixels: Pixels) -> None:
    for artist in artists:
        artist.draw(pixels.renderer)
