"""The winner of a race at every temperature T, as an upper envelope of lines.

In a race token i scores p_i / q_i. Over beta = 1 / T the logarithm of the score is a
line, beta * logit_i - log q_i, up to a term that all tokens share. -log q_i is the
token's Gumbel number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

_LEADERS = 256


class Segment(NamedTuple):
    """The temperatures from `low` to `high` at which one token is chosen."""

    low: float
    high: float
    token_id: int


class Line(NamedTuple):
    """A token's line over beta: slope `logit`, height `gumbel` = -log q at beta 0."""

    token_id: int
    logit: float
    gumbel: float


def contenders(logits: Tensor, kept: Tensor, exponentials: Tensor) -> list[Line]:
    """Return the lines that can win somewhere, the highest logit first.

    A token with a higher logit is kept wherever one with a lower logit is, so a token
    whose q is larger than that of a token with a higher logit never wins. Equal
    logits (which a rule may keep in any order) do not rule each other out. Besides
    the 256 highest logits, only tokens with a smaller q than all of those can win, so
    no full sort is needed.

    Args:
        logits: the slopes, shape (V,).
        kept: boolean, shape (V,), whether a token is kept at any temperature.
        exponentials: the race's q, shape (V,).
    """
    slopes, q = logits.masked_fill(~kept, -torch.inf), exponentials  # (V,)
    leaders = slopes.topk(min(_LEADERS, len(slopes)))
    last = leaders.values[-1]
    above = leaders.indices[leaders.values > last]  # certainly higher than the rest
    bar = q[above].min() if len(above) else torch.inf
    runs = ((slopes > last) | (q < bar)) & (slopes > -torch.inf)
    ids = runs.nonzero().squeeze(-1)  # ascending
    ids = ids[slopes[ids].sort(descending=True, stable=True).indices]
    columns = (ids, slopes[ids].double(), -q[ids].double().log())
    lines = map(Line, *(column.tolist() for column in columns))
    return _not_beaten(lines)


def _not_beaten(lines: Iterable[Line]) -> list[Line]:
    """Keep the lines with a higher `gumbel` than every line with a higher logit."""
    kept: list[Line] = []
    best_above, best, logit = -math.inf, -math.inf, math.inf
    for line in lines:
        if line.logit < logit:
            best_above, logit = best, line.logit
        if line.gumbel > best_above:
            kept.append(line)
            best = max(best, line.gumbel)
    return kept


def upper_envelope(lines: Sequence[Line], low: float, high: float) -> list[Segment]:
    """Return the winners among lines from T = low to high (monotone chain).

    Args:
        lines: from the highest logit down, as `contenders` gives them.
        low: lowest temperature.
        high: highest temperature.
    """
    hull: list[tuple[Line, float]] = []  # each with the T from which it leads
    for line in lines:
        if hull and line.gumbel <= hull[-1][0].gumbel:
            continue
        while hull and (start := _crossing(hull[-1][0], line)) <= hull[-1][1]:
            hull.pop()
        hull.append((line, start if hull else 0.0))
    starts = [max(start, low) for _, start in hull]
    ends = [*starts[1:], high]
    return [
        Segment(start, min(end, high), line.token_id)
        for (line, _), start, end in zip(hull, starts, ends, strict=True)
        if start < min(end, high)
    ]


def _crossing(upper: Line, lower: Line) -> float:
    """Return the T above which `lower`, with a lower logit but higher gumbel, leads."""
    return (upper.logit - lower.logit) / (lower.gumbel - upper.gumbel)
