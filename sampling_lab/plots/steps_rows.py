"""The steps of a text as numbers, before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..generation.results import Step
from .drawing.labels import drawable


@dataclass(frozen=True)
class StepRow:
    """One step of a text, as `plot_steps` draws it.

    Attributes:
        step: its number, from 1.
        token: its text, visible and drawable.
        token_id: its id.
        surprisal: -log2 of its raw probability, in bits; inf where that is 0.
        entropy: of the final distribution, in bits.
        kept_count: tokens the draw could choose from.
        rank: by raw logit, 1 for the highest.
        raw: its raw probability.
        final: its final probability.
        is_given: whether a person chose it.
    """

    step: int
    token: str
    token_id: int
    surprisal: float
    entropy: float
    kept_count: int
    rank: int
    raw: float
    final: float
    is_given: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the row as strict JSON data: an infinite surprisal is None."""
        surprisal = self.surprisal if self.surprisal < math.inf else None
        return {**vars(self), "surprisal": surprisal}


def steps_table(steps: Sequence[Step]) -> list[StepRow]:
    r"""Return the rows behind `plot_steps`, in the order of the text.

    Args:
        steps: of a `Generation`, or some of them.

    Example:
        >>> from sampling_lab import generate, load, SamplingParams
        >>> model = load("checkpoints/xslm/model.json")
        >>> reply = generate(model, "Q: hi\nA: ", SamplingParams(temperature=0))
        >>> [(row.step, row.token, row.rank) for row in steps_table(reply.steps)][:2]
        [(1, 'he', 1), (2, 'l', 1)]
    """
    return [
        StepRow(
            step=step.index + 1,
            token=drawable(step.token_text),
            token_id=step.token_id,
            surprisal=step.surprisal,
            entropy=step.entropy,
            kept_count=step.kept_count,
            rank=step.rank,
            raw=step.raw_prob,
            final=step.final_prob,
            is_given=step.is_given,
        )
        for step in steps
    ]
