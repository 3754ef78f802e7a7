"""The final distribution of one row of logits under each engine's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from torch import Tensor

from ..generation.compare_dialects import DialectComparison, compare_dialects
from ..sampling.arguments import checked
from ..sampling.dialects import DIALECTS
from ..sampling.params import SamplingParams
from .distribution_rows import distribution_table
from .drawing import style
from .drawing.labels import Tokens, token_label
from .drawing.text import ink_on, name_ticks, write
from .sweep import TEMPERATURES

_SHADES = LinearSegmentedColormap.from_list("final", ["#e3eff7", style.FINAL])


@checked
def plot_dialects(
    comparison: DialectComparison,
    *,
    tokens: Tokens = None,
    n: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Draw a row for each dialect, a column for each token: final probability.

    A darker cell is likelier; a hatched one is removed, by the stage it names. A tick
    says that the rules are checked against the engine itself. The numbers of a row are
    those of `distribution_table` of its ledger.

    `comparison` is from `compare_dialects`, `n` says how many tokens, by raw rank; the
    others are as in `plot_distribution`.
    """
    ledgers = comparison.ledgers
    ids = next(iter(ledgers.values())).top(n)
    ax = ax or style.new_axes(3.2 + 1.0 * len(ids), 0.9 + 0.46 * len(ledgers))
    for y, ledger in enumerate(ledgers.values()):
        for x, bar in enumerate(distribution_table(ledger, top=ids)[: len(ids)]):
            _draw_cell(ax, x, y, bar.final, bar.removed_by)
        write(ax, len(ids) - 0.4, y, f"kept {ledger.kept_count:,}", color=style.FAINT)
    ax.xaxis.tick_top()  # before the labels are set: there are two of each
    name_ticks(ax, "x", [token_label(tokens, token_id, width=10) for token_id in ids])
    marks = {name: "✓" if DIALECTS[name].checked else "–" for name in ledgers}
    name_ticks(ax, "y", [f"{name}  {mark}" for name, mark in marks.items()])
    ax.set_xlim(-0.5, len(ids) - 0.5)
    ax.set_ylim(len(ledgers) - 0.5, -0.5)
    ax.spines[:].set_visible(False)
    style.name_axes(ax, "✓ checked against the engine   – read from its sources")
    return ax


def _draw_cell(ax: Axes, x: int, y: int, prob: float, stage: str | None) -> None:
    if stage is None:
        color = to_hex(_SHADES(prob))
        ax.barh(y, 1.0, 1.0, x - 0.5, color=color, edgecolor=style.PAPER, linewidth=2)
        write(ax, x, y, f"{prob:.3f}", ha="center", color=ink_on(color))
        return
    colors: dict[str, Any] = {"facecolor": style.PAPER, "edgecolor": style.HATCHING}
    hatch = style.stage_hatch(stage)
    ax.barh(y, 0.94, 0.86, x - 0.47, hatch=hatch, linewidth=0.0, **colors)
    behind = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.2}
    write(ax, x, y, stage, ha="center", color=style.FAINT, bbox=behind)


@checked
def distance_table(
    logits: Tensor,
    params: SamplingParams,
    first: str,
    second: str,
    temperatures: Sequence[float] = TEMPERATURES,
) -> list[tuple[float, float]]:
    """Return (temperature, total variation between two dialects) for each one.

    Args:
        logits: the model's logits, shape (V,).
        params: everything but temperature and dialect.
        first: a dialect.
        second: another one.
        temperatures: each >= 0.
    """
    pairs = []
    for temperature in temperatures:
        warmed = params.replace(temperature=temperature)
        (distance,) = compare_dialects(logits, warmed, (first, second)).distances
        pairs.append((temperature, distance.total_variation))
    return pairs


@checked
def plot_dialect_distance(
    logits: Tensor,
    params: SamplingParams,
    first: str,
    second: str,
    temperatures: Sequence[float] = TEMPERATURES,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far two dialects lie apart against temperature.

    The arguments are those of `distance_table`, and `ax`, the axes to draw on; None
    makes a new figure.
    """
    ax = ax or style.new_axes(8.0, 3.6)
    pairs = distance_table(logits, params, first, second, temperatures)
    style.quiet_frame(ax, grid="both")
    x, y = zip(*pairs, strict=True)
    ax.fill_between(x, y, color=style.LIGHT)
    ax.plot(x, y, color=style.FINAL, linewidth=2.6)
    ax.set_xlim(min(x), max(x))
    ax.set_ylim(bottom=0.0)
    style.name_axes(ax, "temperature", f"mass that differs\n{first} / {second}")
    return ax
