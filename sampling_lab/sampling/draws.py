"""The ways to turn final logits and a seed into one token.

Each draw has its own random generator, so no global one is ever touched, and returns
a `DrawResult` with the number that decided.
"""

from __future__ import annotations

import hashlib
import math
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import LogitsError, ParameterError
from .sorting import by_rank

GIVEN = "given"
"""The method of a token that a person chose instead of the draw."""


@dataclass(frozen=True)
class DrawResult:
    """One chosen token and the random number that decided.

    Attributes:
        token_id: the chosen token.
        method: how it was drawn. "race" is the exponential race, equivalent to the
            Gumbel-max trick; "choices" and "keyed" look a uniform number up in the
            inverse CDF, the "wheel"; "greedy" uses no number; "given" is a token that
            a person chose.
        uniform: the uniform number in [0, 1); None for a race.
        segment: the chosen token's part (low, high) of the 0-1 axis.
        exponential: the chosen token's Exp(1) number q; None unless a race.
        score: its p / q, the highest of all; None unless a race.
    """

    token_id: int
    method: str
    uniform: float | None = None
    segment: tuple[float, float] | None = None
    exponential: float | None = None
    score: float | None = None
    _state: Tensor | None = field(default=None, repr=False, compare=False)

    @property
    def has_numbers(self) -> bool:
        """Whether the step's random numbers can be computed again from this alone."""
        return self.uniform is not None or self._state is not None

    def exponentials(self, probs: Tensor) -> Tensor:
        """Return every token's q of this race again, shape (V,).

        Args:
            probs: the final probabilities of this step (their shape and dtype count).
        """
        if self._state is None:
            raise ParameterError(
                "exponentials exist for a race drawn in this process, "
                f"not {self.method}"
            )
        generator = torch.Generator(device="cpu")
        generator.set_state(self._state)
        return _exponentials(probs.cpu(), generator)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers that decided, without fields that do not apply."""
        names = ("method", "uniform", "segment", "exponential", "score")
        numbers = {name: getattr(self, name) for name in names}
        if self.segment:
            numbers["segment"] = list(self.segment)
        return {name: number for name, number in numbers.items() if number is not None}


class Draw(ABC):
    """A seeded sampler; each call draws the next token."""

    name: ClassVar[str]

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, logits: Tensor) -> DrawResult:
        """Choose from final logits, shape (V,).

        Raises:
            LogitsError: the draw fell on a removed token, which no rule allows.
        """
        drawn = self._draw(logits)
        if logits[drawn.token_id] == -torch.inf:
            raise LogitsError(
                f"the {self.name} draw chose removed token {drawn.token_id}"
            )
        return drawn

    @abstractmethod
    def _draw(self, logits: Tensor) -> DrawResult:
        """Choose one token id and return the numbers that decided."""

    @abstractmethod
    def skip(self, count: int, logits: Tensor) -> None:
        """Advance the generator as if `count` tokens had been drawn.

        Args:
            count: how many, >= 0.
            logits: of any step, shape (V,); only their shape and dtype matter.
        """


class Greedy(Draw):
    """Take the highest logit, the lowest id on a tie; the seed has no effect."""

    name = "greedy"

    def _draw(self, logits: Tensor) -> DrawResult:
        return DrawResult(int(logits.argmax()), self.name)

    def skip(self, count: int, logits: Tensor) -> None:
        """Do nothing: there are no random numbers."""


class UniformDraw(Draw):
    """A draw by inverse CDF: one uniform number on a 0-1 axis cut into segments."""

    @abstractmethod
    def next_uniform(self) -> float:
        """Return the next step's number, in [0, 1)."""

    def _draw(self, logits: Tensor) -> DrawResult:
        return uniform_result(self.name, self.next_uniform(), logits)

    def skip(self, count: int, logits: Tensor) -> None:
        """Pass over `count` numbers."""
        for _ in range(count):
            self.next_uniform()


class Choices(UniformDraw):
    """Draw as `random.Random(seed).choices` does over candidates in rank order.

    One uniform number per token lands on a 0-1 axis cut into segments, the most
    likely token first and equal ones by id. The weights are exp(logit - highest)
    in Python floats, the arithmetic of XSLM.

    >>> draw = Choices(7)
    >>> weights = torch.tensor([5.0, 3.0, 2.0], dtype=torch.float64)
    >>> "".join("abc"[draw(weights.log()).token_id] for _ in range(12))
    'aababaabaaaa'
    """

    name = "choices"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._random = random.Random(seed)

    def next_uniform(self) -> float:
        """Return the next number of `random.Random(seed)`."""
        return self._random.random()


class Keyed(UniformDraw):
    """Draw with a uniform number that is a function of (seed, step) alone.

    A counter-based generator (Salmon et al. 2011): the number is the first 53 bits of
    BLAKE2b over "seed/step", the same on every machine, for every vocabulary and
    every earlier draw.
    """

    name = "keyed"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._step = 0

    def next_uniform(self) -> float:
        """Return the number that belongs to (seed, step)."""
        self._step += 1
        return _hashed(f"{self.seed}/{self._step - 1}")


class Race(Draw):
    """Draw as `torch.multinomial` with one sample does on the CPU (torch 2).

    Every token of the vocabulary gets an Exp(1) number q from
    `torch.Generator().manual_seed(seed)`, and the highest p / q wins: the exponential
    race = Gumbel-max trick, for -log q is a Gumbel number (Maddison et al. 2014,
    arXiv:1411.0030). The numbers do not depend on the probabilities, so runs with one
    seed share their noise.
    """

    name = "race"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._generator = torch.Generator(device="cpu").manual_seed(seed)

    def exponentials(self, probs: Tensor) -> Tensor:
        """Return the next step's q for every token, shape (V,)."""
        return _exponentials(probs.cpu(), self._generator)

    def _draw(self, logits: Tensor) -> DrawResult:
        state = self._generator.get_state()
        return race_result(logits, self.exponentials(logits), state)

    def skip(self, count: int, logits: Tensor) -> None:
        """Pass over `count` races of V tokens."""
        for _ in range(count):
            self.exponentials(logits)


DRAWS: dict[str, type[Draw]] = {draw.name: draw for draw in (Choices, Race, Keyed)}
"""The draws by name."""


def coin(seed: int, step: int) -> float:
    """Return the uniform number of XTC, in [0, 1): a function of (seed, step) alone.

    It is hashed as in `Keyed`, from "seed/step/xtc", and takes no number from a draw:
    with XTC on or off, a seed draws with the same noise.
    """
    return _hashed(f"{seed}/{step}/xtc")


def _hashed(key: str) -> float:
    word = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest())
    return (word >> 11) * 2.0**-53


def _exponentials(probs: Tensor, generator: torch.Generator) -> Tensor:
    return torch.empty_like(probs).exponential_(1, generator=generator)


def segments(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the "wheel" of final logits (V,): kept ids and the CDF of their weights.

    Ids are in rank order, equal ones by id. The CDF is not normalised: float64 sums of
    the weights exp(logit - highest), so the last one is the total.
    """
    logits = logits.cpu()
    candidates = by_rank(logits)
    values = logits[candidates].double().numpy()
    below = values - values[0]
    if len(below) <= _FEW:
        weights = np.array([math.exp(value) for value in below.tolist()])
    else:
        weights = np.exp(below)
    return candidates, torch.from_numpy(weights).cumsum(0)


_FEW = 4096
"""Up to here weights are Python's exp; its last bit may differ from NumPy's."""


def inverse_cdf(
    logits: Tensor, uniforms: Tensor | float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tokens that uniform numbers choose: the segments they fall on.

    Args:
        logits: final logits, shape (V,).
        uniforms: numbers in [0, 1), any shape.

    Returns:
        Token ids, and the low and high ends of their segments of the 0-1 axis, each of
        the shape of `uniforms`.
    """
    candidates, ends = segments(logits)
    uniforms, total = torch.as_tensor(uniforms, dtype=torch.float64), ends[-1]
    at = torch.searchsorted(ends, uniforms * total, right=True)
    at = at.clamp(max=len(candidates) - 1)
    lows = torch.where(at > 0, ends[at - 1], 0.0)
    return candidates[at], lows / total, ends[at] / total


def uniform_result(method: str, uniform: float, logits: Tensor) -> DrawResult:
    """Return the result of a draw by inverse CDF from final logits, shape (V,)."""
    token_id, *segment = inverse_cdf(logits, uniform)
    low, high = (end.item() for end in segment)
    return DrawResult(int(token_id), method, uniform, segment=(low, high))


def race_scores(probs: Tensor, exponentials: Tensor) -> Tensor:
    """Return p / q for every token, shape (V,); the first of the highest wins."""
    return probs.cpu() / exponentials


def race_result(
    logits: Tensor, exponentials: Tensor, state: Tensor | None = None
) -> DrawResult:
    """Return the result of a race over final logits.

    Args:
        logits: final logits, shape (V,).
        exponentials: every token's q, shape (V,).
        state: of the generator before it made them.
    """
    scores = race_scores(logits.cpu().softmax(-1), exponentials)
    winner = int(scores.numpy().argmax())  # the first of equals, as in torch
    return DrawResult(
        winner,
        Race.name,
        exponential=exponentials[winner].item(),
        score=scores[winner].item(),
        _state=state,
    )
