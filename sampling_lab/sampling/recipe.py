"""From parameters and a history to a chain: which stages, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ParameterError
from .chain import Chain
from .dialects import PENALTIES, TRUNCATIONS
from .draws import coin
from .penalties import (
    Ban,
    FrequencyPenalty,
    LogitBias,
    NoRepeatNGram,
    PresencePenalty,
    RepetitionPenalty,
)
from .stage import Stage, Temperature
from .truncation import XTC, MinP, TopK, TopNSigma, TopP, TypicalP

if TYPE_CHECKING:
    from .params import SamplingParams


def build_chain(
    params: SamplingParams, token_ids: Sequence[int] = (), prompt_length: int = 0
) -> Chain:
    """Return the chain that parameters stand for, in their dialect's order.

    Neutral stages are left out. So are the cuts where the temperature is 0: greedy
    decoding takes the highest logit after the adjustments.

    Args:
        params: the parameters.
        token_ids: the prompt and what was generated after it.
        prompt_length: how many of `token_ids` are the prompt.
    """
    history = StepContext(params, tuple(token_ids), prompt_length)
    names = params.rules.order
    if params.is_greedy:
        names = tuple(name for name in names if name not in TRUNCATIONS)
    return Chain(tuple(history.stage(name) for name in names if params.is_on(name)))


@dataclass(frozen=True)
class StepContext:
    """What a stage can depend on."""

    params: SamplingParams
    token_ids: tuple[int, ...]
    prompt_length: int

    def stage(self, name: str) -> Stage:
        """Return the stage of a parameter that is on."""
        return _STAGES[name](self, getattr(self.params, name))

    def counted(self, name: str) -> tuple[int, ...]:
        """Return the tokens that count for a parameter."""
        with_prompt = self.params.penalize_prompt
        if with_prompt is None:
            with_prompt = name in self.params.rules.counts_prompt
        ids = self.token_ids if with_prompt else self.token_ids[self.prompt_length :]
        window = self.params.penalty_window if name in PENALTIES else None
        return ids[-window:] if window else ids

    def coin(self) -> float:
        """Return this step's coin."""
        if self.params.seed is None:
            raise ParameterError("seed must be an integer to toss XTC's coin, got None")
        return coin(self.params.seed, len(self.token_ids) - self.prompt_length)


_STAGES: dict[str, Callable[[StepContext, float], Stage]] = {
    "logit_bias": lambda at, value: LogitBias(value),
    "repetition_penalty": lambda at, value: RepetitionPenalty(
        value, at.counted("repetition_penalty")
    ),
    "frequency_penalty": lambda at, value: FrequencyPenalty(
        value, at.counted("frequency_penalty")
    ),
    "presence_penalty": lambda at, value: PresencePenalty(
        value, at.counted("presence_penalty")
    ),
    "no_repeat_ngram_size": lambda at, value: NoRepeatNGram(
        value, at.counted("no_repeat_ngram_size")
    ),
    "banned_token_ids": lambda at, value: Ban(value),
    "temperature": lambda at, value: Temperature(value, at.params.rules.shifted),
    "top_k": lambda at, value: TopK(value, at.params.rules.ties),
    "top_p": lambda at, value: TopP(value, at.params.rules.nucleus),
    "min_p": lambda at, value: MinP(value),
    "typical_p": lambda at, value: TypicalP(value),
    "top_n_sigma": lambda at, value: TopNSigma(value),
    "xtc_probability": lambda at, value: XTC(value, at.params.xtc_threshold, at.coin()),
}
