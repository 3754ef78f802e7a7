"""What each stage of a chain does, and the staircase that top-p climbs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ..chain import Chain, Distribution, Ledger, StageRecord
from ..errors import ParameterError
from ..stages import Stage, TopP
from ._labels import Tokens, token_label
from ._style import (
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
from ._text import name_ticks, write

_BAR = 0.72

_BEHIND = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8}
"""Paper behind a number, so that no line strikes it through."""


@dataclass(frozen=True)
class StageColumn:
    """One panel: the probabilities before and after a stage.

    Attributes:
        title: the stage and its setting; "raw" for what the model says.
        before: probability of each token before the stage.
        after: probability of each token after it; 0 where removed.
        removed: whether this stage removed the token.
        kept_count: how many tokens of the vocabulary are left.
        entropy: in bits, after the stage.
    """

    title: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    removed: tuple[bool, ...]
    kept_count: int
    entropy: float


@dataclass(frozen=True)
class Stair:
    """One step of the staircase: a token, and the mass up to and with it."""

    label: str
    token_id: int
    prob: float
    cumulative: float
    kept: bool
    crosses: bool


def stages_table(ledger: Ledger, *, n: int = 10) -> list[StageColumn]:
    """Return the panels behind `plot_stages`: raw, then one for each stage.

    Args:
        ledger: what a chain did to one row of logits.
        n: how many tokens, by raw rank.
    """
    ids = ledger.top(n)
    raw = tuple(ledger.raw_probs[ids].tolist())
    nothing = (False,) * len(ids)
    first = StageColumn(
        "raw", raw, raw, nothing, ledger.raw.kept_count, ledger.raw.entropy
    )
    return [first, *(_column(record, ids) for record in ledger.stages)]


def _column(record: StageRecord, ids: list[int]) -> StageColumn:
    return StageColumn(
        title=stage_title(record.stage),
        before=tuple(Distribution(record.before).probs[ids].tolist()),
        after=tuple(record.after.probs[ids].tolist()),
        removed=tuple(record.removed[ids].tolist()),
        kept_count=record.after.kept_count,
        entropy=record.after.entropy,
    )


def stage_title(stage: Stage) -> str:
    """Return a stage's name with its first setting, where that is a number.

    >>> stage_title(TopP(0.8))
    'top-p 0.8'
    """
    fields = dataclasses.fields(stage)
    value = getattr(stage, fields[0].name) if fields else None
    return f"{stage.name} {value:g}" if isinstance(value, int | float) else stage.name


def plot_stages(
    ledger: Ledger,
    *,
    tokens: Tokens = None,
    n: int = 10,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw the distribution after each stage, side by side on one token axis.

    The outline is the probability before the stage, the fill after it; what the
    stage removed is hatched.

    Args:
        ledger: what a chain did to one row of logits.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        n: how many tokens, by raw rank.
        axes: one for raw and one for each stage; None makes a new figure.

    Raises:
        ParameterError: another number of axes.
    """
    columns = stages_table(ledger, n=n)
    labels = [token_label(tokens, token_id) for token_id in ledger.top(n)]
    if axes is None:
        axes = _panels(len(columns), len(labels))
    if len(axes) != len(columns):
        raise ParameterError(
            f"axes must be {len(columns)}, raw and one for each stage, got {len(axes)}"
        )
    limit = max(max(*column.before, *column.after) for column in columns)
    for at, (ax, column) in enumerate(zip(axes, columns, strict=True)):
        _draw_column(ax, column, limit, hatch_of=column.title)
        name_ticks(ax, "y", labels if at == 0 else [""] * len(labels))
    return list(axes)


def _panels(columns: int, rows: int) -> list[Axes]:
    figure = Figure(
        figsize=(2.2 + 2.5 * columns, 1.5 + 0.34 * rows),
        layout="constrained",
        facecolor=PAPER,
    )
    return list(figure.subplots(1, columns, squeeze=False)[0])


def _draw_column(ax: Axes, column: StageColumn, limit: float, hatch_of: str) -> None:
    quiet_frame(ax)
    rows = range(len(column.after))
    name = hatch_of.rsplit(" ", 1)[0]
    ax.barh(rows, column.after, _BAR, color=FINAL, zorder=2)
    outline = {"facecolor": "none", "edgecolor": INK, "linewidth": 1.2, "zorder": 3}
    ax.barh(rows, column.before, _BAR, **outline)
    for row in rows:
        if column.removed[row]:
            style = {"facecolor": PAPER, "edgecolor": HATCHING, "linewidth": 0.0}
            hatch = stage_hatch(name)
            ax.barh(row, column.before[row], _BAR, hatch=hatch, zorder=2, **style)
        end = max(column.before[row], column.after[row])
        text, color = _number(column, row)
        write(ax, end + 0.02 * limit, row, text, color=color)
    ax.set_xlim(0, limit * 1.32)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.grid(False)
    count = f"{column.kept_count:,} kept · {column.entropy:.2f} bits"
    ax.set_title(f"{column.title}\n", fontsize=FONT_SIZE + 1, color=INK, loc="left")
    write(
        ax,
        0,
        1.02,
        count,
        transform=ax.transAxes,
        va="bottom",
        color=FAINT,
        fontsize=11,
    )


def _number(column: StageColumn, row: int) -> tuple[str, str]:
    if column.removed[row]:
        return "removed", FAINT
    if column.after[row] == 0.0:
        return "–", FAINT
    return f"{column.after[row]:.3f}", INK


def staircase_table(
    logits: Tensor,
    p: float,
    *,
    rule: str = "descending",
    tokens: Tokens = None,
    n: int = 10,
) -> list[Stair]:
    """Return the steps behind `plot_staircase`, the most likely token first.

    Args:
        logits: what top-p is given, shape (V,).
        p: its mass, in (0, 1].
        rule: its crossing rule, see `TopP`; what is kept is what the stage keeps.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        n: at most this many steps.
    """
    ledger = Chain((TopP(p, rule=rule),)).ledger(logits)
    ids = ledger.top(n)
    probs = ledger.raw_probs[ids].double()  # (n,)
    kept = [bool(ledger.kept[token_id]) for token_id in ids]
    last = max(at for at, stays in enumerate(kept) if stays)
    whole_nucleus = ledger.kept_count <= len(ids)
    return [
        Stair(
            label=token_label(tokens, token_id, width=9),
            token_id=token_id,
            prob=probs[at].item(),
            cumulative=min(1.0, probs[: at + 1].sum().item()),
            kept=kept[at],
            crosses=whole_nucleus and at == last and p < 1,
        )
        for at, token_id in enumerate(ids)
    ]


def plot_staircase(
    logits: Tensor,
    p: float,
    *,
    rule: str = "descending",
    tokens: Tokens = None,
    n: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw probabilities added up from the most likely on, and where p is reached.

    Args:
        logits: what top-p is given, shape (V,).
        p: its mass, in (0, 1].
        rule: its crossing rule, see `TopP`.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        n: at most this many steps.
        ax: the axes to draw on; None makes a new figure.

    Example:
        >>> import torch
        >>> ax = plot_staircase(torch.tensor([2.0, 1.0, 0.2, -1.0]), 0.8)
    """
    stairs = staircase_table(logits, p, rule=rule, tokens=tokens, n=n)
    if ax is None:
        ax = new_axes(2.2 + 0.85 * len(stairs), 4.6)
    quiet_frame(ax, grid="y")
    for at, stair in enumerate(stairs):
        below = stair.cumulative - stair.prob
        ax.bar(at, below, 1.0, color="#eeeeee", zorder=1)
        ax.bar(at, stair.prob, 1.0, bottom=below, zorder=2, **_stair_style(stair))
        place = {"ha": "center", "va": "bottom", "zorder": 5, "bbox": _BEHIND}
        write(ax, at, stair.cumulative + 0.015, f"{stair.prob:.3f}", **place)
    ax.axhline(p, color=INK, linewidth=2, linestyle=(0, (5, 2)), zorder=4)
    write(ax, len(stairs) - 0.45, p, f"p = {p:g}", ha="left")
    name_ticks(ax, "x", [stair.label for stair in stairs])
    ax.set_xlim(-0.5, len(stairs) - 0.5)
    ax.set_ylim(0, 1.09)
    style = {"fontsize": FONT_SIZE, "color": INK}
    kept = int((TopP(p, rule=rule)(logits) > -float("inf")).sum())
    ax.set_xlabel(f"kept {kept:,} of {len(logits):,} tokens", **style)
    ax.set_ylabel("probability added up", **style)
    return ax


def _stair_style(stair: Stair) -> dict[str, object]:
    if stair.crosses:
        return {"color": CHOSEN, "edgecolor": INK, "linewidth": 1.2}
    if stair.kept:
        return {"color": FINAL, "edgecolor": INK, "linewidth": 1.2}
    return {
        "facecolor": PAPER,
        "edgecolor": HATCHING,
        "hatch": stage_hatch("top-p"),
        "linewidth": 1.2,
    }
