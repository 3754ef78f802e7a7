"""How often many seeds drew each token, compared with its probability."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from ..counterfactuals import FrequencyTest
from ..sampling.arguments import checked
from .drawing import style
from .drawing.labels import Tokens, token_label
from .drawing.text import name_ticks, write


@checked
def plot_frequencies(
    check: FrequencyTest, *, tokens: Tokens = None, ax: Axes | None = None
) -> Axes:
    """Draw what many seeds drew over the final probabilities and their 95 % band.

    `check` is from `compare_frequencies`; the others are as in `plot_distribution`.
    """
    ax = ax or style.new_axes(8.0, 1.9 + 0.4 * len(check.rows))
    style.quiet_frame(ax)
    beside = {"transform": ax.get_yaxis_transform()}
    band: dict[str, Any] = {"linewidth": 9, "solid_capstyle": "butt", "zorder": 3}
    dot: dict[str, Any] = {"markeredgecolor": style.PAPER, "markersize": 10}
    bar: dict[str, Any] = {"color": style.LIGHT, "edgecolor": style.FINAL}
    for at, row in enumerate(check.rows):
        ax.barh(at, row.prob, 0.72, linewidth=1.5, **bar)
        ax.plot([row.low, row.high], [at, at], color=style.FAINT, **band)
        marker, color = ("o", style.INK) if row.is_inside else ("X", "#d55e00")
        ax.plot(row.frequency, at, marker, color=color, zorder=4, **dot)
        text = f"{row.frequency:.3f}   {row.prob:.3f}"
        write(ax, 1.02, at, text, **beside)
    write(ax, 1.02, -0.75, "drawn   theory", color=style.FAINT, **beside)
    name_ticks(ax, "y", [token_label(tokens, row.token_id) for row in check.rows])
    ax.set_ylim(len(check.rows) - 0.5, -0.5)
    ax.set_xlim(left=0)
    style.name_axes(
        ax,
        f"● drawn by {check.draws:,} seeds   ▬ 95 % of samples fall here\n"
        f"chi-square {check.statistic:.1f} with {check.degrees} degrees of freedom, "
        f"p-value {check.p_value:.2f}",
    )
    return ax
