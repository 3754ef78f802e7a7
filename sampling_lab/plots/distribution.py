"""The next-token distribution as bars: raw and final, kept and removed, chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from ..sampling.arguments import checked
from ..sampling.ledger import Ledger
from .distribution_rows import Bar, axis_limit, caption, distribution_table
from .drawing import style
from .drawing.labels import Tokens, shorten
from .drawing.shapes import HatchedRectangles, Markers, Rectangles, row_box
from .drawing.text_labels import TextColumn, number

_HALF = 0.38
"""Half the height of a bar, where bars are 1 apart."""

_RAW_END, _FINAL_END = 50.0, 130.0
"""Where the columns of numbers end, in points right of the axes."""

_GAP = ((-0.5, -1.0), (0.0, -1.0), (0.5, 1.0), (0.0, 1.0), (-0.5, -1.0))
_GAP_HEIGHT = 22.0
"""Closed outline, and height in points, of the slanted gap in a bar that is cut off."""


@checked
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
        n: how many tokens get their own bar; the last bar is everything else.
        ax: the axes to draw on; None makes a new figure.
        bar_options: for the `PolyCollection` of the final bars.

    Example:
        >>> import torch
        >>> from sampling_lab import Chain
        >>> ax = plot_distribution(Chain().ledger(torch.tensor([2.0, 1.0])))
    """
    bars = distribution_table(ledger, tokens=tokens, chosen=chosen, n=n)
    ax = ax or style.new_axes(8.0, 1.7 + 0.3 * len(bars))
    bar_options["explain_chosen"] = any(bar.chosen for bar in bars)
    DistributionArtists(ax, len(bars), **bar_options).show(bars)
    style.name_axes(ax, f"probability\n{caption(ledger)}")
    return ax


class DistributionArtists:
    """The artists of one picture, which can show other numbers.

    Args:
        ax: the axes to draw on.
        rows: how many bars there is room for.
        explain_chosen: whether the key explains the colour of the chosen token.
        bar_options: for the `PolyCollection` of the final bars.

    Attributes:
        raw_texts: the texts that do not depend on the sampling parameters.
    """

    def __init__(
        self, ax: Axes, rows: int, *, explain_chosen: bool = True, **bar_options: Any
    ) -> None:
        self._ax = ax
        self._prepare_axes(rows)
        self._add_key(explain_chosen)
        places = range(rows)
        self._labels = TextColumn(ax, 0.0, -7.0, places)
        self._raw_numbers = TextColumn(ax, 1.0, _RAW_END, places, color=style.FAINT)
        self.raw_texts = (self._labels, self._raw_numbers)
        self._final_numbers = TextColumn(ax, 1.0, _FINAL_END, places)
        edge = {"edgecolor": style.INK, "linewidth": 1.3}
        self._outlines = Rectangles(ax, facecolor="none", zorder=3, **edge)
        self._fills = Rectangles(ax, **{"zorder": 2, **bar_options})
        self._hatched: dict[str, HatchedRectangles] = {}
        edge = {"markeredgecolor": style.INK, "markeredgewidth": 1.3}
        self._gaps = Markers(
            ax, _GAP, _GAP_HEIGHT, color=style.PAPER, zorder=4, clip_on=False, **edge
        )

    def show(self, bars: Sequence[Bar]) -> None:
        """Draw these bars, at most as many as there is room for."""
        limit = axis_limit(bars)
        self._ax.set_xlim(0.0, limit)
        self._outlines.show(row_box(at, bar.raw, _HALF) for at, bar in enumerate(bars))
        self._fills.show(row_box(at, bar.final, _HALF) for at, bar in enumerate(bars))
        self._fills.color([style.CHOSEN if bar.chosen else style.FINAL for bar in bars])
        self._show_removed(bars)
        long = [at for at, bar in enumerate(bars) if max(bar.raw, bar.final) > limit]
        self._gaps.show([0.97 * limit] * len(long), long)
        self._labels.set_texts([f"{'▶ ' * bar.chosen}{bar.label}" for bar in bars])
        self._raw_numbers.set_texts([number(bar.raw) for bar in bars])
        self._final_numbers.set_texts(
            [_final_text(bar) for bar in bars],
            [style.INK if bar.kept else style.FAINT for bar in bars],
        )

    def _show_removed(self, bars: Sequence[Bar]) -> None:
        for bar in bars:
            if bar.removed_by and bar.removed_by not in self._hatched:
                look = {"hatch": style.stage_hatch(bar.removed_by), "zorder": 2}
                new = HatchedRectangles(self._ax, edgecolor=style.HATCHING, **look)
                self._hatched[bar.removed_by] = new
        for name, hatched in self._hatched.items():
            hatched.show(
                row_box(at, bar.raw, _HALF)
                for at, bar in enumerate(bars)
                if bar.removed_by == name
            )

    def _prepare_axes(self, rows: int) -> None:
        ax = self._ax
        style.quiet_frame(ax)
        ax.set_ylim(rows - 0.5, -0.5)
        ax.set_yticks([])
        TextColumn(ax, 1.0, _RAW_END, [-1.0], ["raw"], color=style.FAINT)
        TextColumn(ax, 1.0, _FINAL_END, [-1.0], ["final"])

    def _add_key(self, explain_chosen: bool) -> None:
        keys = [
            Patch(facecolor="none", edgecolor=style.INK, label="raw"),
            Patch(facecolor=style.FINAL, label="final"),
            Patch(fill=False, edgecolor=style.FAINT, hatch="///", label="removed"),
        ]
        if explain_chosen:
            keys.insert(2, Patch(facecolor=style.CHOSEN, label="chosen"))
        self._ax.legend(
            handles=keys,
            ncols=len(keys),
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            frameon=False,
            fontsize=style.FONT_SIZE,
            handlelength=1.4,
            columnspacing=1.2,
            borderaxespad=0.2,
        )


def _final_text(bar: Bar) -> str:
    if bar.kept:
        return number(bar.final)
    stage = bar.removed_by or ("removed" if bar.token_id is None else "-inf")
    return shorten(stage, 11)
