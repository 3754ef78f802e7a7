"""The next-token distribution as bars: raw and final, kept and removed, chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from ..sampling.ledger import Ledger
from .distribution_rows import Bar, axis_limit, caption, distribution_table
from .drawing.labels import Tokens, shorten
from .drawing.style import (
    CHOSEN,
    FAINT,
    FINAL,
    FONT_SIZE,
    HATCHING,
    INK,
    PAPER,
    new_axes,
    quiet_frame,
    stage_hatch,
)
from .drawing.text_labels import TextColumn

_HALF = 0.38
"""Half the height of a bar, where bars are 1 apart."""

_RAW_END, _FINAL_END = 50.0, 130.0
"""Where the columns of numbers end, in points right of the axes."""


def plot_distribution(
    ledger: Ledger,
    *,
    tokens: Tokens = None,
    chosen: int | None = None,
    n: int = 20,
    ax: Axes | None = None,
    **bar_options: Any,
) -> Axes:
    """Draw the distribution as horizontal bars, the most likely token on top.

    The outline is the raw probability and the fill the final one; what a stage
    removed is hatched and names the stage; the chosen token is accented.

    Args:
        ledger: what a chain did to one row of logits.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        chosen: the token that was drawn.
        n: how many tokens get a bar of their own; the last bar is everything else.
        ax: the axes to draw on; None makes a new figure.
        bar_options: for the `PolyCollection` of the final bars.

    Example:
        >>> import torch
        >>> from sampling_lab import Chain
        >>> ax = plot_distribution(Chain().ledger(torch.tensor([2.0, 1.0])))
    """
    bars = distribution_table(ledger, tokens=tokens, chosen=chosen, n=n)
    if ax is None:
        ax = new_axes(8.0, 1.7 + 0.3 * len(bars))
    has_chosen = any(bar.chosen for bar in bars)
    artists = DistributionArtists(
        ax, len(bars), limit=axis_limit(bars), explain_chosen=has_chosen, **bar_options
    )
    artists.show_raw(bars)
    artists.show_final(bars)
    ax.set_xlabel(f"probability\n{caption(ledger)}", fontsize=FONT_SIZE, color=INK)
    return ax


class DistributionArtists:
    """The artists of one picture, which can be given other numbers.

    Args:
        ax: the axes to draw on.
        rows: how many bars there is room for.
        limit: the end of the axis of probability.
        explain_chosen: give the accent a place in the key.
        animated: leave drawing the artists that change to the caller.
        bar_options: for the `PolyCollection` of the final bars.

    Attributes:
        raw_artists: what depends on the model's logits and the chosen token.
        final_artists: what depends on the sampling parameters too.
    """

    def __init__(
        self,
        ax: Axes,
        rows: int,
        *,
        limit: float = 1.0,
        explain_chosen: bool = True,
        animated: bool = False,
        **bar_options: Any,
    ) -> None:
        self.ax, self.rows = ax, rows
        self._animated = animated
        self._prepare_axes(limit)
        self._add_key(explain_chosen)
        places = range(rows)
        self.labels = TextColumn(ax, 0.0, -7.0, places, animated=animated)
        self.raw_numbers = TextColumn(
            ax, 1.0, _RAW_END, places, color=FAINT, animated=animated
        )
        self.final_numbers = TextColumn(ax, 1.0, _FINAL_END, places, animated=animated)
        self._outlines = self._bars(
            facecolors="none", edgecolors=INK, linewidths=1.3, zorder=3
        )
        self._fills = self._bars(**{"zorder": 2, **bar_options})
        self._break = self._bars(
            facecolors=PAPER, edgecolors=INK, linewidths=1.3, zorder=4, clip_on=False
        )
        self._hatched: dict[str, PathPatch] = {}

    @property
    def raw_artists(self) -> Iterator[Artist]:
        """What to draw after `show_raw`."""
        yield from (self.labels, self.raw_numbers)

    @property
    def final_artists(self) -> Iterator[Artist]:
        """What to draw after `show_final`."""
        yield self._fills
        yield from self._hatched.values()
        yield self._outlines
        yield from (self._break, self.final_numbers)

    def show_raw(self, bars: Sequence[Bar]) -> None:
        """Set labels, raw outlines and raw numbers."""
        self._outlines.set_verts(_rectangles(enumerate(bar.raw for bar in bars)))
        self.labels.set_texts([_row_label(bar) for bar in bars])
        self.raw_numbers.set_texts([_number(bar.raw) for bar in bars])

    def show_final(self, bars: Sequence[Bar]) -> None:
        """Set final fills and numbers, and what was removed by which stage."""
        self._fills.set_verts(_rectangles(enumerate(bar.final for bar in bars)))
        self._fills.set_facecolor([CHOSEN if bar.chosen else FINAL for bar in bars])
        self._show_removed(bars)
        self.final_numbers.set_texts(
            [_final_text(bar) for bar in bars],
            [INK if bar.kept else FAINT for bar in bars],
        )
        self._break.set_verts(self._break_marks(bars))

    def _show_removed(self, bars: Sequence[Bar]) -> None:
        for name in {bar.removed_by for bar in bars if bar.removed_by}:
            if name not in self._hatched:
                self._hatched[name] = self._hatching(name)
        for name, patch in self._hatched.items():
            removed = [
                (at, bar.raw) for at, bar in enumerate(bars) if bar.removed_by == name
            ]
            patch.set_path(_one_path(_rectangles(removed)))

    def _break_marks(self, bars: Sequence[Bar]) -> np.ndarray:
        """Return a slanted gap, shape (marks, 4, 2), across each bar cut off."""
        limit = self.ax.get_xlim()[1]
        long = [at for at, bar in enumerate(bars) if max(bar.raw, bar.final) > limit]
        x = np.array([0.955, 0.97, 0.985, 0.97]) * limit
        heights = np.array([0.5, 0.5, -0.5, -0.5])
        return np.array([np.stack([x, at + heights], -1) for at in long]).reshape(
            -1, 4, 2
        )

    def _prepare_axes(self, limit: float) -> None:
        ax = self.ax
        quiet_frame(ax)
        ax.set_xlim(0.0, limit)
        ax.set_ylim(self.rows - 0.5, -0.5)
        ax.set_yticks(range(self.rows), labels=[""] * self.rows)
        ax.tick_params(axis="y", length=0)
        TextColumn(ax, 1.0, _RAW_END, [-1.0], ["raw"], color=FAINT)
        TextColumn(ax, 1.0, _FINAL_END, [-1.0], ["final"])

    def _add_key(self, explain_chosen: bool) -> None:
        keys = [
            Patch(facecolor="none", edgecolor=INK, label="raw"),
            Patch(facecolor=FINAL, label="final"),
            Patch(facecolor="none", edgecolor=FAINT, hatch="///", label="removed"),
        ]
        if explain_chosen:
            keys.insert(2, Patch(facecolor=CHOSEN, label="chosen"))
        self.ax.legend(
            handles=keys,
            ncols=len(keys),
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            frameon=False,
            fontsize=FONT_SIZE,
            handlelength=1.4,
            columnspacing=1.2,
            borderaxespad=0.2,
        )

    def _bars(self, **options: Any) -> PolyCollection:
        collection = PolyCollection([], animated=self._animated, **options)
        return self.ax.add_collection(collection, autolim=False)

    def _hatching(self, name: str) -> PathPatch:
        # One path for all bars: a hatch is laid out anew for every path.
        patch = PathPatch(
            Path(np.empty((0, 2))),
            facecolor="none",
            edgecolor=HATCHING,
            linewidth=0.0,
            hatch=stage_hatch(name),
            zorder=2,
            animated=self._animated,
        )
        return self.ax.add_artist(patch)


def _one_path(polygons: np.ndarray) -> Path:
    """Return one path of closed polygons, shape (polygons, corners, 2)."""
    count, corners = polygons.shape[:2]
    closed = np.concatenate([polygons, polygons[:, :1]], axis=1)
    codes = [Path.MOVETO, *[Path.LINETO] * (corners - 1), Path.CLOSEPOLY] * count
    return Path(closed.reshape(-1, 2), codes if count else None)


def _rectangles(rows: Iterable[tuple[int, float]]) -> np.ndarray:
    """Return the corners, shape (bars, 4, 2), of bars given as (row, length)."""
    corners = [
        [
            (0.0, row - _HALF),
            (length, row - _HALF),
            (length, row + _HALF),
            (0.0, row + _HALF),
        ]
        for row, length in rows
    ]
    return np.array(corners).reshape(-1, 4, 2)


def _row_label(bar: Bar) -> str:
    if bar.chosen:
        return f"▶ {bar.label}"
    return bar.label


def _number(probability: float) -> str:
    return "<0.001" if 0.0 < probability < 0.0005 else f"{probability:.3f}"


def _final_text(bar: Bar) -> str:
    if bar.kept:
        return _number(bar.final)
    stage = bar.removed_by or ("removed" if bar.token_id is None else "-inf")
    return shorten(stage, 11)
