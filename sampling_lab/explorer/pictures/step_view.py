"""One step to display: its ledger, settings and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import torch

from ...counterfactuals import StepNoise, noise_of_step
from ...generation.guide import with_guide
from ...generation.results import Generation, Step
from ...models.base import Model
from ...plots.drawing.labels import Tokens
from ...sampling.draws import DrawResult
from ...sampling.history import NO_HISTORY, History
from ...sampling.ledger import Ledger
from ...sampling.one_thread import one_thread
from ...sampling.params import SamplingParams


@dataclass(frozen=True, eq=False)
class StepView:
    """One step: what the chain does to its logits, and what the draw chooses.

    Attributes:
        ledger: what the chain does to the step's logits.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        params: the settings; without a seed no random numbers can be shown.
        title: what is shown, in words.
        history: the tokens before the step.
        drawn: how it was drawn, to show a step as it was; None draws with the seed.
        steps: all steps of its text.
        selected: its index among them; -1 is the next token after the prompt.
    """

    ledger: Ledger
    tokens: Tokens
    params: SamplingParams
    title: str = ""
    history: History = NO_HISTORY
    drawn: DrawResult | None = None
    steps: Sequence[Step] = ()
    selected: int = -1

    @cached_property
    def noise(self) -> StepNoise | None:
        """The step's random numbers; None where each run has a fresh seed."""
        logits = self.ledger.raw_logits
        if self.drawn is not None and self.drawn.has_numbers:
            return noise_of_step(logits, self.params, drawn=self.drawn)
        if self.params.seed is None:
            return None
        method = self.params.draw_method or self.params.rules.draw
        return _noise(
            self.params.seed, method, self.history.step, len(logits), logits.dtype
        )

    @cached_property
    def chosen(self) -> int | None:
        """The token that was drawn, or that the seed draws; None without a seed."""
        if self.drawn is not None:
            return self.drawn.token_id
        logits = self.ledger.final.logits
        if self.params.is_greedy:
            return int(logits.argmax())
        if self.noise is None:
            return None
        with one_thread():
            return self.noise.choose(logits)


def next_token_view(
    ledger: Ledger,
    tokens: Callable[[int], str],
    params: SamplingParams,
    title: str,
    **place: Any,
) -> StepView:
    """Return a view of a token to come, whose title says what the seed draws."""
    view = StepView(ledger, tokens, params, **place)
    if view.chosen is None:
        told = "a fresh seed at each run"
    elif params.is_greedy:
        told = f"greedy takes {tokens(view.chosen)}"
    else:
        told = f"seed {params.seed} draws {tokens(view.chosen)}"
    return replace(view, title=f"{title} · {told}")


def step_view(
    model: Model,
    generation: Generation,
    step: Step,
    params: SamplingParams | None = None,
) -> StepView:
    """Return a view of a step of a text.

    Args:
        model: the model that wrote the text.
        generation: the text.
        step: one of its steps.
        params: other settings, to see what they would choose; None shows the step as
            it was.
    """
    asked = params or generation.params
    history = with_guide(model, asked, generation.history(step.index))
    place: dict[str, Any] = {
        "history": history,
        "steps": generation.all_steps,
        "selected": step.index,
    }
    tokens, title = model.token_text, f"step {step.index + 1}"
    if params is None:
        verb = "given" if step.is_given else "drew"
        title = f"{title} · {verb} {step.token_text}"
        place |= {"title": title, "drawn": step.drawn}
        return StepView(step.ledger(), tokens, generation.params, **place)
    ledger = params.chain(*history).ledger(model.logits(history.token_ids))
    view = next_token_view(
        ledger, tokens, params, f"{title} with these settings", **place
    )
    if view.chosen is None:
        return view
    is_same = view.chosen == step.token_id
    compared = "as it was" if is_same else f"in place of {step.token_text}"
    return replace(view, title=f"{view.title}, {compared}")


@lru_cache(maxsize=4)
def _noise(
    seed: int, method: str, step: int, size: int, dtype: torch.dtype
) -> StepNoise:
    """Return a step's random numbers; a moving slider needs the same ones again."""
    params = SamplingParams(seed=seed, draw_method=method)
    with one_thread():
        return noise_of_step(torch.zeros(size, dtype=dtype), params, step=step)
