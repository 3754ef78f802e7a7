"""Speed of the explorer's tabs: from moved controls to the picture as PNG."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from sampling_lab import SamplingParams, generate
from sampling_lab.explorer.pictures.step_view import StepView, step_view
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from sampling_lab.generation.results import Generation
from sampling_lab.models.base import Model

PROMPT = "The sky is"
PARAMS = SamplingParams(temperature=0.8, top_k=50, top_p=0.9, seed=7)
ROUNDS = 24
GOAL = 0.040

MOVES: dict[str, Callable[[int], dict[str, object]]] = {
    "temperature": lambda at: {"temperature": 0.3 + 0.05 * (at % 30)},
    "top_k": lambda at: {"top_k": 5 + 7 * (at % 30)},
    "top_p": lambda at: {"top_p": 0.5 + 0.015 * (at % 30)},
    "min_p": lambda at: {"min_p": 0.005 * (at % 30)},
    "seed": lambda at: {"seed": 100 + at},
}
"""The values that each control is moved to, one after another."""


def run(model: Model, params: SamplingParams = PARAMS) -> Iterator[tuple[str, float]]:
    """Yield each tab with its median seconds per redraw, of the slowest control.

    A redraw includes everything that follows a moved control except the model's
    forward pass, which is cached: the chain over the logits, the random numbers, the
    tab's picture, caption and table.

    Args:
        model: any model.
        params: initial values of the controls.
    """
    made = generate(model, PROMPT, params, max_new_tokens=24)
    for tab in TABS:
        yield tab, max(seconds for _, seconds in moves(model, made, tab))


def moves(model: Model, made: Generation, tab: str) -> Iterator[tuple[str, float]]:
    """Yield each control with the median seconds of a tab's redraw."""
    pictures = Pictures()

    def redraw(step: int, params: SamplingParams | None) -> float:
        start = time.perf_counter()
        pictures.draw(tab, _view(model, made, step, params))
        return time.perf_counter() - start

    redraw(4, made.params)
    for name, changes in MOVES.items():
        changed = (made.params.replace(**changes(at)) for at in range(ROUNDS))
        yield name, statistics.median(redraw(4, params) for params in changed)
    steps = range(len(made.steps))
    yield "selected step", statistics.median(redraw(step, None) for step in steps)


def _view(
    model: Model, made: Generation, step: int, params: SamplingParams | None
) -> StepView:
    return step_view(model, made, made.steps[step], params)
