"""The bars of a next-token distribution as numbers, before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..sampling.arguments import checked
from ..sampling.ledger import Ledger
from .drawing.labels import Tokens, token_label

_LIMITS = (0.1, 0.2, 0.3, 0.5, 1.0)


@dataclass(frozen=True)
class Bar:
    """One bar: a token, or everything else.

    Attributes:
        label: the token, visible and drawable.
        token_id: None for everything else.
        rank: by raw logit, 1 for the highest; None for everything else.
        raw: raw probability.
        final: final probability, 0 where removed.
        kept: whether the draw can choose it (any of it).
        removed_by: the name of the stage that removed it.
        chosen: whether it is the token that was drawn.
        count: how many tokens the bar stands for.
        kept_count: how many of them the draw can choose.
    """

    label: str
    token_id: int | None
    rank: int | None
    raw: float
    final: float
    kept: bool
    removed_by: str | None = None
    chosen: bool = False
    count: int = 1
    kept_count: int = 1


@checked
def distribution_table(
    ledger: Ledger,
    *,
    tokens: Tokens = None,
    chosen: int | None = None,
    n: int = 20,
    top: Sequence[int] | None = None,
) -> list[Bar]:
    """Return the bars behind `plot_distribution`, the most likely token first.

    Args:
        ledger: what a chain did to one row of logits.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        chosen: the token that was drawn; it takes the last place of a token where it
            is not among the n most likely.
        n: how many tokens get their own bar; >= 1.
        top: `ledger.top(n)`, for whoever has it already.

    Returns:
        At most n bars of one token, and one for the rest where there is a rest. Both
        probabilities add up to 1.
    """
    ids = list(ledger.top(n) if top is None else top)
    if chosen is not None and chosen not in ids:
        ids[-1] = chosen
    raw = ledger.raw_probs[ids].tolist()
    final = ledger.final_probs[ids].tolist()
    bars = []
    for at, token_id in enumerate(ids):
        record = ledger.removed_by(token_id)
        bars.append(
            Bar(
                label=token_label(tokens, token_id),
                token_id=token_id,
                rank=ledger.rank(token_id) if token_id == chosen else at + 1,
                raw=raw[at],
                final=final[at],
                kept=bool(ledger.kept[token_id]),
                removed_by=record.stage.name if record else None,
                chosen=token_id == chosen,
            )
        )
    return bars + _rest(ledger, bars)


def _rest(ledger: Ledger, bars: list[Bar]) -> list[Bar]:
    """Return the bar of all tokens without one, or nothing where there are none."""
    count = ledger.raw_logits.shape[-1] - len(bars)
    if count == 0:
        return []
    kept_count = ledger.kept_count - sum(bar.kept for bar in bars)
    final = 1.0 - sum(bar.final for bar in bars)
    return [
        Bar(
            label=token_label(None, None),
            token_id=None,
            rank=None,
            raw=max(0.0, 1.0 - sum(bar.raw for bar in bars)),
            final=max(0.0, final) if kept_count else 0.0,
            kept=kept_count > 0,
            count=count,
            kept_count=kept_count,
        )
    ]


@checked
def caption(ledger: Ledger) -> str:
    """Return one line: kept count and raw mass, entropy, effective count.

    >>> import torch
    >>> from sampling_lab import SamplingParams
    >>> chain = SamplingParams(top_k=2).chain()
    >>> caption(chain.ledger(torch.tensor([2.0, 1.0, 0.2, -1.0])))
    'kept 2 of 4 · 86.4 % of raw mass · 0.84 bits · effective 1.8'
    """
    return " · ".join(
        [
            f"kept {ledger.kept_count:,} of {ledger.raw_logits.shape[-1]:,}",
            f"{ledger.kept_mass * 100:.1f} % of raw mass",
            f"{ledger.entropy:.2f} bits",
            f"effective {ledger.effective_count:,.1f}",
        ]
    )


def axis_limit(bars: Sequence[Bar]) -> float:
    """Return the end of the axis: a round number that all token bars fit into.

    "Everything else" does not count: it would make all others tiny, and is cut off
    where it is longer.
    """
    longest = max(max(bar.raw, bar.final) for bar in bars if bar.token_id is not None)
    return next(limit for limit in _LIMITS if longest <= limit + 1e-6)
