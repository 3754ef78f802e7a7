"""Temperature and what takes its place: stages that change how sharp a row is.

None of them changes the order of the tokens, so greedy decoding ignores them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from . import validation
from .stage import Criterion, Stage, as_float, ranks


@dataclass(frozen=True)
class Temperature(Stage):
    """Divide the logits by a temperature.

    At 0, and where the division overflows, only the highest logit stays (the lowest
    id on a tie): the limit of the rule, which is greedy decoding.

    Args:
        temperature: >= 0; 0 means greedy.
        shifted: subtract the highest logit first, as XSLM does; the distribution is
            the same, the rounding is not.
        normalized: multiply log-probabilities by 1 / temperature, as mlx-lm does; only
            the rounding differs here too.
        least: a temperature between 0 and this one acts as this, as vLLM's does.
    """

    temperature: float
    shifted: bool = False
    normalized: bool = False
    least: float = 0.0
    name: ClassVar[str] = "temperature"
    limits: ClassVar = {"temperature": validation.TEMPERATURE}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the scaled logits."""
        logits = as_float(logits)
        if self._acting < torch.finfo(logits.dtype).tiny:
            return _only_highest(logits)
        return _or_greedy(self._scaled(logits), logits)

    def criterion(self, logits: Tensor) -> Criterion | None:
        """Return each token's rank against 1, where this stage is greedy."""
        kept = self(logits) > -torch.inf
        if bool((kept == (logits > -torch.inf)).all()):
            return None
        return Criterion("rank", ranks(as_float(logits)), ">", 1.0)

    def _scaled(self, logits: Tensor) -> Tensor:
        if self.shifted:
            logits = logits - logits.amax(-1, keepdim=True)  # (..., V)
        if self.normalized:
            return (logits - logits.logsumexp(-1, keepdim=True)) * (1 / self._acting)
        return logits / self._acting

    @property
    def _acting(self) -> float:
        return self.temperature and max(self.temperature, self.least)


@dataclass(frozen=True)
class DynamicTemperature(Stage):
    """Divide the logits by a temperature that grows with their entropy.

    By kalomaze (2023), in llama.cpp: from `temperature - range`, but not below 0, for a
    certain row, to `temperature + range` for a flat one.

    Args:
        temperature: >= 0.
        range: how far it may move to either side, >= 0.
        exponent: of the entropy as a fraction of the greatest possible, > 0.
    """

    temperature: float
    range: float
    exponent: float = 1.0
    name: ClassVar[str] = "dynamic temperature"
    limits: ClassVar = {
        "temperature": validation.TEMPERATURE,
        "range": validation.TEMPERATURE,
        "exponent": validation.POSITIVE,
    }

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the scaled logits."""
        logits = as_float(logits)
        return _or_greedy(logits / self.acting(logits), logits)

    def acting(self, logits: Tensor) -> Tensor:
        """Return the temperature of each row, (..., 1); 1 where one token is left."""
        entropy = torch.special.entr(logits.softmax(-1)).sum(-1, keepdim=True)
        count = (logits > -torch.inf).sum(-1, keepdim=True)
        flatness = (entropy / count.log()).clamp(0.0, 1.0)
        low = max(0.0, self.temperature - self.range)
        high = self.temperature + self.range
        acting: Tensor = low + (high - low) * flatness**self.exponent
        return acting.masked_fill(count == 1, 1.0)

    def evidence(self, logits: Tensor) -> dict[str, float]:
        """Return the temperature that acts on a row."""
        return {"T": self.acting(as_float(logits)).item()}


@dataclass(frozen=True)
class QuadraticSmoothing(Stage):
    """Bend the logits by a parabola around the highest one.

    By kalomaze (2024), in text-generation-webui and KoboldCpp. With d the distance from
    the highest logit, the new distance is factor * (k * d**2 + s * d**3), where
    k = (3 - curve) / 2 and s = (curve - 1) / 2: tokens near the highest one come
    closer, the others fall away.

    Args:
        factor: > 0.
        curve: in [1, 3]: 1 is a parabola, 3 a cubic, which falls away faster.
    """

    factor: float
    curve: float = 1.0
    name: ClassVar[str] = "quadratic smoothing"
    limits: ClassVar = {
        "factor": validation.POSITIVE,
        "curve": validation.CURVE,
    }

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the bent logits."""
        logits = as_float(logits)
        highest = logits.amax(-1, keepdim=True)
        below = highest - logits  # (..., V)
        bent = (3 - self.curve) * below**2 + (self.curve - 1) * below**3
        result: Tensor = highest - self.factor / 2 * bent
        return result.masked_fill(logits == -torch.inf, -torch.inf)  # 0 * inf


def _or_greedy(scaled: Tensor, logits: Tensor) -> Tensor:
    """Return scaled logits, or where a row overflowed its highest logit alone."""
    overflows = ~scaled.amax(-1, keepdim=True).isfinite()  # (..., 1)
    if not overflows.any():
        return scaled
    return torch.where(overflows, _only_highest(logits), scaled)


def _only_highest(logits: Tensor) -> Tensor:
    winner = logits.argmax(-1, keepdim=True)  # (..., 1), the lowest id on a tie
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, winner, True)
    return logits.masked_fill(~kept, -torch.inf)
