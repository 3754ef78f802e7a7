"""The staircase that top-p climbs: probabilities added up until they reach p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from ..sampling.arguments import checked
from ..sampling.chain import Chain
from ..sampling.truncation import TopP
from .drawing import style
from .drawing.labels import Tokens, token_label
from .drawing.text import name_ticks, write

_BEHIND: dict[str, Any] = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8}
"""Paper behind a number, so that no line strikes it through."""


@dataclass(frozen=True)
class Stair:
    """One step of the staircase: a token, and the mass up to and with it."""

    label: str
    token_id: int
    prob: float
    cumulative: float
    kept: bool
    crosses: bool


@checked
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


@checked
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

    The arguments are those of `staircase_table`, and `ax`, the axes to draw on; None
    makes a new figure.

    Example:
        >>> import torch
        >>> ax = plot_staircase(torch.tensor([2.0, 1.0, 0.2, -1.0]), 0.8)
    """
    stairs = staircase_table(logits, p, rule=rule, tokens=tokens, n=n)
    ax = ax or style.new_axes(2.2 + 0.85 * len(stairs), 4.6)
    style.quiet_frame(ax, grid="y")
    for at, stair in enumerate(stairs):
        below = stair.cumulative - stair.prob
        ax.bar(at, below, 1.0, color="#eeeeee", zorder=1)
        ax.bar(at, stair.prob, 1.0, bottom=below, zorder=2, **_stair_style(stair))
        place = {"ha": "center", "va": "bottom", "zorder": 5, "bbox": _BEHIND}
        write(ax, at, stair.cumulative + 0.015, f"{stair.prob:.3f}", **place)
    ax.axhline(p, color=style.INK, linewidth=2, linestyle=(0, (5, 2)), zorder=4)
    write(ax, len(stairs) - 0.45, p, f"p = {p:g}", ha="left")
    name_ticks(ax, "x", [stair.label for stair in stairs])
    ax.set_xlim(-0.5, len(stairs) - 0.5)
    ax.set_ylim(0, 1.09)
    kept = int((TopP(p, rule=rule)(logits) > -float("inf")).sum())
    count = f"kept {kept:,} of {len(logits):,} tokens"
    style.name_axes(ax, count, "probability added up")
    return ax


def _stair_style(stair: Stair) -> dict[str, Any]:
    edge = {"edgecolor": style.INK, "linewidth": 1.2}
    if stair.kept:
        return {"color": style.CHOSEN if stair.crosses else style.FINAL, **edge}
    edge |= {"edgecolor": style.HATCHING, "hatch": style.stage_hatch("top-p")}
    return {"facecolor": style.PAPER, **edge}
