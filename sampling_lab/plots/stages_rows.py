"""What each stage of a chain does, as numbers, before anything is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..sampling.arguments import checked
from ..sampling.ledger import Distribution, Ledger, StageRecord
from ..sampling.stage import Stage
from .drawing.labels import Tokens, token_text

KEPT = "kept"
"""The verdict on a token that no stage removed."""


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
        stage: the stage's name; "raw" for what the model says.
    """

    title: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    removed: tuple[bool, ...]
    kept_count: int
    entropy: float
    stage: str = "raw"


@checked
def stages_table(
    ledger: Ledger, *, n: int = 10, top: Sequence[int] | None = None
) -> list[StageColumn]:
    """Return the panels behind `plot_stages`: raw, then one for each stage.

    Args:
        ledger: what a chain did to one row of logits.
        n: how many tokens, by raw rank.
        top: `ledger.top(n)`, for whoever has it already.
    """
    ids = list(ledger.top(n) if top is None else top)
    raw = tuple(ledger.raw_probs[ids].tolist())
    nothing = (False,) * len(ids)
    first = StageColumn(
        "raw", raw, raw, nothing, ledger.raw.kept_count, ledger.raw.entropy
    )
    before, columns = ledger.raw, [first]
    for record in ledger.stages:
        columns.append(_column(record, before, ids))
        before = record.after
    return columns


def _column(record: StageRecord, before: Distribution, ids: list[int]) -> StageColumn:
    return StageColumn(
        title=stage_title(record.stage, record.evidence),
        before=tuple(before.probs[ids].tolist()),
        after=tuple(record.after.probs[ids].tolist()),
        removed=tuple(record.removed[ids].tolist()),
        kept_count=record.after.kept_count,
        entropy=record.after.entropy,
        stage=record.stage.name,
    )


def stage_title(stage: Stage, evidence: Mapping[str, float] | None = None) -> str:
    """Return a stage's name with what it found out, or its first number.

    >>> from sampling_lab import TopP
    >>> stage_title(TopP(0.8))
    'top-p 0.8'
    """
    if evidence:
        found = ", ".join(f"{name} {value:.3g}" for name, value in evidence.items())
        return f"{stage.name} {found}"
    fields = dataclasses.fields(stage) if dataclasses.is_dataclass(stage) else ()
    value = getattr(stage, fields[0].name) if fields else None
    return f"{stage.name} {value:g}" if isinstance(value, int | float) else stage.name


def removed_by(ledger: Ledger, token_ids: Sequence[int]) -> list[str]:
    """Return for each token the stage that removed it, `KEPT`, or "-inf".

    >>> import torch
    >>> from sampling_lab import SamplingParams
    >>> ledger = SamplingParams(top_k=1).chain().ledger(torch.tensor([2.0, 1.0]))
    >>> removed_by(ledger, [0, 1])
    ['kept', 'top-k']
    """
    records = map(ledger.removed_by, token_ids)
    return [
        record.stage.name if record else KEPT if ledger.kept[token_id] else "-inf"
        for token_id, record in zip(token_ids, records, strict=True)
    ]


def stages_rows(
    columns: Sequence[StageColumn],
    token_ids: Sequence[int],
    verdicts: Sequence[str],
    tokens: Tokens = None,
) -> list[dict[str, Any]]:
    """Return a row for each token: its probability after each stage, and its end.

    `columns` are from `stages_table`, and `verdicts` from `removed_by`.
    """
    titles: list[str] = []
    for at, column in enumerate(columns):  # tell two stages with one title apart
        is_known = column.title in titles
        titles.append(f"{column.title} ({at})" if is_known else column.title)
    probs = zip(*(column.after for column in columns), strict=True)
    return [
        {
            "rank": rank,
            "token_id": token_id,
            "token": token_text(tokens, token_id),
            **dict(zip(titles, after, strict=True)),
            "removed_by": verdict,
        }
        for rank, (token_id, after, verdict) in enumerate(
            zip(token_ids, probs, verdicts, strict=True), 1
        )
    ]
