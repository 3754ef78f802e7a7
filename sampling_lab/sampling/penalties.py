"""Adjustments: penalties for earlier tokens, biases and bans.

The earlier tokens are a field of the stage, which is a pure function of logits like
any other; a chain with penalties is built again for every step. `StepContext.counted`
decides which tokens count: with or without the prompt, and how far back.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..errors import ParameterError
from . import validation
from .stage import Stage, as_float


@dataclass(frozen=True)
class Penalty(Stage):
    """A stage that lowers the logits of tokens that occurred before.

    Args:
        penalty: the amount; each kind has its own neutral value.
        token_ids: the tokens that count, in order, once for each occurrence.
    """

    penalty: float
    token_ids: tuple[int, ...] = ()
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {"penalty": validation.FINITE}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with those of earlier tokens changed."""
        result, counts = as_float(logits).clone(), Counter(self.token_ids)
        at = index_of(tuple(counts), result)
        times = result.new_tensor(list(counts.values()))
        result[..., at] = self._lowered(result[..., at], times)
        return result

    @abstractmethod
    def _lowered(self, values: Tensor, times: Tensor) -> Tensor:
        """Return new logits (..., n) for n tokens that occurred `times` (n,) times."""


@dataclass(frozen=True)
class RepetitionPenalty(Penalty):
    """Divide positive logits by the penalty and multiply negative ones by it.

    Keskar et al. 2019, arXiv:1909.05858, with the sign rule that every engine has
    added; the arithmetic of transformers 5. Once per token, however often it
    occurred; 1 is neutral.
    """

    name: ClassVar[str] = "repetition penalty"
    limits: ClassVar = {"penalty": validation.POSITIVE}

    def _lowered(self, values: Tensor, times: Tensor) -> Tensor:
        return torch.where(values < 0, values * self.penalty, values / self.penalty)


@dataclass(frozen=True)
class FrequencyPenalty(Penalty):
    """Subtract the penalty once for each occurrence of the token (OpenAI's API)."""

    name: ClassVar[str] = "frequency penalty"

    def _lowered(self, values: Tensor, times: Tensor) -> Tensor:
        return values - self.penalty * times


@dataclass(frozen=True)
class PresencePenalty(Penalty):
    """Subtract the penalty once if the token occurred at all (OpenAI's API)."""

    name: ClassVar[str] = "presence penalty"

    def _lowered(self, values: Tensor, times: Tensor) -> Tensor:
        return values - self.penalty


@dataclass(frozen=True)
class LogitBias(Stage):
    """Add a number to the logits of chosen tokens (OpenAI's API).

    Args:
        biases: a mapping of token ids to added numbers, or pairs of them.
        limit: a bias beyond plus or minus this acts as this, as vLLM's does.
    """

    biases: tuple[tuple[int, float], ...]
    limit: float = math.inf
    name: ClassVar[str] = "logit bias"
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {"biases": validation.biases}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with the biases added."""
        result, biases = as_float(logits).clone(), dict(self.biases or ())
        added = result.new_tensor(list(biases.values())).clamp(-self.limit, self.limit)
        result[..., index_of(tuple(biases), result)] += added
        return result


@dataclass(frozen=True)
class Ban(Stage):
    """Remove chosen tokens.

    Args:
        token_ids: the tokens that may never be drawn.
    """

    token_ids: tuple[int, ...]
    name: ClassVar[str] = "ban"
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {"token_ids": validation.token_ids}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with those of the banned tokens at -inf."""
        result = as_float(logits).clone()
        result[..., index_of(self.token_ids or (), result)] = -torch.inf
        return result


@dataclass(frozen=True, eq=False)
class Mask(Stage):
    """Remove what a grammar does not allow next (structured output).

    Each step is renormalised alone, so whole answers get other odds than the model
    would give them among all that the grammar allows.

    Args:
        allowed: bool, shape (V,), from `sampling_lab.generation.guide`.
    """

    allowed: Tensor
    name: ClassVar[str] = "grammar"
    adjusts: ClassVar[bool] = True

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with those of the other tokens at -inf."""
        return as_float(logits).masked_fill(~self.allowed, -torch.inf)

    def evidence(self, logits: Tensor) -> dict[str, float]:
        """Return the mass of what is forbidden, in [0, 1], and its tokens."""
        forbidden = ~self.allowed
        mass = as_float(logits).double().softmax(-1)[forbidden].sum().item()
        return {"forbidden mass": mass, "tokens": float(forbidden.sum().item())}


def index_of(token_ids: Sequence[int], logits: Tensor) -> Tensor:
    """Return token ids as an index tensor, or refuse those without a logit."""
    vocab_size = logits.shape[-1]
    for token_id in token_ids:
        if not 0 <= token_id < vocab_size:
            raise ParameterError(
                f"token ids must be in [0, {vocab_size}), the vocabulary, "
                f"got {token_id}"
            )
    return torch.tensor(token_ids, dtype=torch.long, device=logits.device)
