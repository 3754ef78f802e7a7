"""Adjustments that look at how a text goes on: repeated passages, phrases, its length.

As in `penalties`, what came before is a field of the stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from . import validation
from .penalties import index_of
from .stage import Stage, as_float

_LOG_MAX = math.log(torch.finfo(torch.float32).max)


@dataclass(frozen=True)
class NoRepeatNGram(Stage):
    """Remove every token that would complete an n-gram for the second time.

    Paulus et al. 2018, arXiv:1705.04304 (n = 3), as in fairseq and transformers.
    With n = 1 no token is generated twice.

    Args:
        n: how many tokens in a row, >= 1.
        token_ids: the tokens so far, in order.
    """

    n: int
    token_ids: tuple[int, ...] = ()
    name: ClassVar[str] = "no-repeat-ngram"
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {"n": validation.COUNT}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with those of the tokens that would repeat at -inf."""
        return _changed(logits, dict.fromkeys(self.repeating(), -math.inf))

    def repeating(self) -> tuple[int, ...]:
        """Return the tokens that would complete an earlier n-gram, sorted.

        >>> NoRepeatNGram(2, (5, 7, 5, 8, 5)).repeating()
        (7, 8)
        """
        ids, before = self.token_ids, self.n - 1
        begun = ids[len(ids) - before :]
        places = range(before, len(ids))
        return tuple(sorted({ids[i] for i in places if ids[i - before : i] == begun}))


@dataclass(frozen=True)
class DRY(Stage):
    """Don't repeat yourself: lower the token that would go on with a repeated passage.

    By p-e-w (2024), in text-generation-webui and llama.cpp. Where the last L tokens
    occurred before, the token that followed them then loses
    `multiplier * base ** (L - allowed_length)`, for the greatest such L.

    Args:
        multiplier: > 0, in nats.
        base: >= 1; below it, longer repetitions would cost less.
        allowed_length: the longest repetition that costs nothing is one shorter, >= 1.
        token_ids: the tokens that count, in order.
        breakers: tokens that end a passage; none of it reaches back over one.
    """

    multiplier: float
    base: float = 1.75
    allowed_length: int = 2
    token_ids: tuple[int, ...] = ()
    breakers: tuple[int, ...] = ()
    name: ClassVar[str] = "DRY"
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {
        "multiplier": validation.POSITIVE,
        "base": validation.AT_LEAST_ONE,
        "allowed_length": validation.COUNT,
    }

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with those of tokens that would repeat lowered."""
        lengths = self.repeating()
        return _changed(logits, {i: -self._penalty(n) for i, n in lengths.items()})

    def _penalty(self, length: int) -> float:
        too_long = length - self.allowed_length
        if self.base > 1:  # no more than a float32 can hold
            too_long = min(too_long, int(_LOG_MAX / math.log(self.base)))
        return self.multiplier * float(self.base**too_long)

    def repeating(self) -> dict[int, int]:
        """Return for each token how long the passage is that it would go on with.

        >>> DRY(0.8, token_ids=(1, 2, 3, 1, 2)).repeating()
        {3: 2}
        """
        recent = self.token_ids[::-1]
        ends = (i for i, token_id in enumerate(recent) if token_id in self.breakers)
        limit = next(ends, len(recent))
        found: dict[int, int] = {}
        for place, length in enumerate(_matches(recent)):
            length = min(length, limit)
            if place and length >= self.allowed_length:
                token_id = recent[place - 1]
                found[token_id] = max(length, found.get(token_id, 0))
        return found


@dataclass(frozen=True)
class SequenceBias(Stage):
    """Add a number to the logit of the last token of a sequence that has begun.

    As `sequence_bias` of transformers 5: a bias for one token always counts, for
    several where all but the last of them stand at the end of the text.

    Args:
        biases: pairs of token ids, at least one, and the number that is added.
        token_ids: the tokens so far, in order.
    """

    biases: tuple[tuple[tuple[int, ...], float], ...]
    token_ids: tuple[int, ...] = ()
    name: ClassVar[str] = "sequence bias"
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {"biases": validation.sequence_biases}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with the biases added."""
        added: dict[int, float] = {}
        for (*begun, last), bias in self.biases or ():
            if tuple(begun) == self.token_ids[len(self.token_ids) - len(begun) :]:
                added[last] = added.get(last, 0.0) + bias
        return _changed(logits, added)


@dataclass(frozen=True)
class MinNewTokens(Stage):
    """Remove the stop tokens until there are enough new tokens.

    As `min_new_tokens` of transformers 5 and `min_tokens` of vLLM.

    Args:
        count: how many new tokens there have to be before a stop token, >= 1.
        made: how many there are.
        stop_token_ids: the tokens that end a text.
    """

    count: int
    made: int = 0
    stop_token_ids: tuple[int, ...] = ()
    name: ClassVar[str] = "minimum length"
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {"count": validation.COUNT}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits without stop tokens while it is too soon."""
        removed = self.stop_token_ids if self.made < self.count else ()
        return _changed(logits, dict.fromkeys(removed, -math.inf))


@dataclass(frozen=True)
class LengthDecay(Stage):
    """Raise the stop tokens more and more after some new tokens.

    As `exponential_decay_length_penalty` of transformers 5: its logit x gains
    |x| * (factor ** n - 1), where n new tokens came after `start` ones.

    Args:
        factor: > 0; above 1 texts become shorter.
        start: how many new tokens come before it acts, >= 0.
        made: how many there are.
        stop_token_ids: the tokens that end a text.
    """

    factor: float
    start: int = 0
    made: int = 0
    stop_token_ids: tuple[int, ...] = ()
    name: ClassVar[str] = "length decay"
    adjusts: ClassVar[bool] = True
    limits: ClassVar = {"factor": validation.POSITIVE}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits with those of the stop tokens raised."""
        logits = as_float(logits)
        at = index_of(self.stop_token_ids, logits)
        values = logits[..., at]  # (..., stop tokens)
        gain = values.abs() * (self.factor ** max(0, self.made - self.start) - 1)
        result = logits.clone()
        result[..., at] = values + gain.masked_fill(~values.isfinite(), 0.0)
        return result


def _changed(logits: Tensor, added: dict[int, float]) -> Tensor:
    """Return logits (..., V) with a number added to those of some tokens."""
    result = as_float(logits).clone()
    numbers = result.new_tensor(list(added.values()))
    result[..., index_of(tuple(added), result)] += numbers
    return result


def _matches(recent: tuple[int, ...]) -> list[int]:
    """Return for each place how many tokens from there on equal those from 0 on.

    The Z-algorithm: linear in the number of tokens.
    """
    lengths, left, right = [0] * len(recent), 0, 0
    for i in range(1, len(recent)):
        length = max(0, min(right - i, lengths[i - left]))
        while i + length < len(recent) and recent[length] == recent[i + length]:
            length += 1
        lengths[i] = length
        if i + length > right:
            left, right = i, i + length
    return lengths
