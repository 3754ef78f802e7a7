"""The steps of a text as numbers, as `plot_steps` draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..generation.results import Step
from ..sampling.arguments import checked
from .drawing.labels import drawable


@checked
def steps_table(steps: Sequence[Step]) -> list[dict[str, Any]]:
    r"""Return the numbers behind `plot_steps` as strict JSON data, a row for each step.

    Steps count from 1; surprisal and entropy are in bits, and a surprisal that is
    infinite is None.

    Args:
        steps: of a `Generation`, or some of them.

    Example:
        >>> from sampling_lab import generate, load, SamplingParams
        >>> model = load("checkpoints/xslm/model.json")
        >>> reply = generate(model, "Q: hi\nA: ", SamplingParams(temperature=0))
        >>> [(row["step"], row["token"]) for row in steps_table(reply.steps)][:2]
        [(1, 'he'), (2, 'l')]
    """
    return [
        {
            "step": step.index + 1,
            "token": drawable(step.token_text),
            "token_id": step.token_id,
            "surprisal": step.surprisal if step.surprisal < math.inf else None,
            "entropy": step.entropy,
            "kept_count": step.kept_count,
            "rank": step.rank,
            "raw": step.raw_prob,
            "final": step.final_prob,
            "is_given": step.is_given,
        }
        for step in steps
    ]
