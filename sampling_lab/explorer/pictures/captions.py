"""What stands under each picture of the explorer, and the rows behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...counterfactuals import RaceRow, Slice, TemperatureMap
from ...plots.distribution_rows import REST
from ...plots.drawing.labels import Tokens, token_label
from ...plots.stages_rows import StageColumn
from ...plots.steps_rows import StepRow
from ...sampling.draws import GIVEN, DrawResult
from ...sampling.ledger import Ledger
from ...text import visible
from .step_view import StepView

Rows = list[dict[str, Any]]
"""Rows of a table, as strict JSON data."""


def stages_caption(ledger: Ledger) -> str:
    """Return how many tokens there are, how many each stage removed, what is kept."""
    if not ledger.stages:
        return f"{ledger.kept_count:,} tokens, all kept · {ledger.entropy:.2f} bits"
    counts = [ledger.raw.kept_count, *(r.after.kept_count for r in ledger.stages)]
    gone = [before - after for before, after in pairwise(counts)]
    names = [record.stage.name for record in ledger.stages]
    removed = [
        f"{name} removes {count:,}"
        for name, count in zip(names, gone, strict=True)
        if count
    ]
    kept = f"{ledger.kept_count:,} kept, {ledger.kept_mass * 100:.1f} % of raw mass"
    return " · ".join([f"{counts[0]:,} tokens", *removed, kept])


def token_text(tokens: Tokens, token_id: int) -> str:
    """Return a token's whole text, visible.

    >>> token_text([" warm"], 0), token_text(None, 7)
    ('␣warm', '⟨7⟩')
    """
    if tokens is None:
        return f"⟨{token_id}⟩"
    return visible(tokens(token_id) if callable(tokens) else tokens[token_id])


def stages_rows(
    tokens: Tokens,
    ids: Sequence[int],
    columns: Sequence[StageColumn],
    verdicts: Sequence[str],
) -> Rows:
    """Return a row for each token: its probability after each stage, its end."""
    titles = [column.title for column in columns]
    for at, title in enumerate(titles):  # two stages alike are told apart
        if title in titles[:at]:
            titles[at] = f"{title} ({at})"
    return [
        {
            "rank": at + 1,
            "token_id": ids[at],
            "token": token_text(tokens, ids[at]),
            **{
                title: column.after[at]
                for title, column in zip(titles, columns, strict=True)
            },
            "removed_by": verdicts[at],
        }
        for at in range(len(ids))
    ]


def race_caption(view: StepView, rows: Sequence[RaceRow]) -> str:
    """Return the winner's numbers, and how far behind the next one is."""
    best, *others = rows
    name = token_label(view.tokens, best.token_id)
    told = f"{name}: q = {best.exponential:.3g} · p/q = {best.score:.3g}"
    if others:
        second = token_label(view.tokens, others[0].token_id)
        told += f", the next best {second} {others[0].score:.3g}"
    return _by_hand(view, name) + told


def race_table(tokens: Tokens, rows: Sequence[RaceRow]) -> Rows:
    """Return a row for each token that ran, the winner first."""
    return [
        {
            "token_id": row.token_id,
            "token": token_text(tokens, row.token_id),
            "p": row.prob,
            "q": row.exponential,
            "p/q": row.score,
        }
        for row in rows
    ]


def wheel_caption(view: StepView, drawn: DrawResult) -> str:
    """Return the number and the slice that it fell on."""
    name = token_label(view.tokens, drawn.token_id)
    low, high = drawn.segment
    number = f"{drawn.uniform:.4f}"
    return (
        f"{_by_hand(view, name)}{number} falls on {name}, from {low:.4f} to {high:.4f}"
    )


def wheel_table(tokens: Tokens, slices: Sequence[Slice], drawn: DrawResult) -> Rows:
    """Return a row for each slice, the most likely token first."""
    return [
        {
            "token_id": part.token_id,
            "token": (
                REST if part.token_id is None else token_text(tokens, part.token_id)
            ),
            "from": part.low,
            "to": part.high,
            "is_hit": part.low <= drawn.segment[0] and drawn.segment[1] <= part.high,
        }
        for part in slices
    ]


def _by_hand(view: StepView, winner: str) -> str:
    """Return what to say first where a person chose another token than the luck."""
    if view.drawn is None or view.drawn.method != GIVEN:
        return ""
    name = token_label(view.tokens, view.drawn.token_id)
    return f"a person chose {name}; the draw alone: "


def map_caption(found: TemperatureMap, temperature: float) -> str:
    """Return the number of changes, where T stands, and how exact that is."""
    changes = _counted(len(found.flips), "change")
    low, high = found.segments[0].low, found.segments[-1].high
    outside = "" if low <= temperature <= high else f" · T = {temperature:g} is outside"
    return f"{changes} from T = {low:g} to {high:g}{outside} · {found.note}"


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def steps_caption(rows: Sequence[StepRow]) -> str:
    """Return the mean surprisal, the perplexity, and what is left out of them."""
    finite = [row.surprisal for row in rows if row.surprisal < math.inf]
    parts = [_counted(len(rows), "step")]
    if finite:
        mean = sum(finite) / len(finite)
        parts.append(f"mean surprisal {mean:.2f} bits")
        parts.append(f"perplexity {2.0 ** min(mean, 1000.0):.3g}")
    entropy = sum(row.entropy for row in rows) / len(rows)
    parts.append(f"mean entropy {entropy:.2f} bits")
    if given := sum(row.is_given for row in rows):
        parts.append(f"{given:,} chosen by a person")
    if endless := len(rows) - len(finite):
        parts.append(f"{endless:,} of probability 0 left out of the means")
    return " · ".join(parts)


def steps_rows(rows: Sequence[StepRow]) -> Rows:
    """Return the rows as JSON data: an infinite surprisal is None."""
    return [
        {**vars(row), "surprisal": None}
        if row.surprisal == math.inf
        else dict(vars(row))
        for row in rows
    ]
