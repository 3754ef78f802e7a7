"""Cutoffs: rules that remove tokens below a threshold set by the distribution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from . import validation
from .stage import Criterion, Stage, as_float

_TOP_H = 100
"""How many tokens transformers looks at for top-H."""


class Cutoff(Stage):
    """Remove every token less likely than a threshold; the most likely one stays."""

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every less likely token at -inf."""
        logits = as_float(logits)
        return logits.masked_fill(torch.lt(*self._compared(logits)), -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return each token's probability against the threshold."""
        probs, least = self._compared(as_float(logits))
        return Criterion("probability", probs, "<", least.item())

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        probs = logits.softmax(-1)
        highest = probs.amax(-1, keepdim=True)
        return probs, torch.minimum(self._threshold(probs, highest), highest)

    @abstractmethod
    def _threshold(self, probs: Tensor, highest: Tensor) -> Tensor:
        """Return the threshold (..., 1) for probabilities (..., V)."""


@dataclass(frozen=True)
class MinP(Cutoff):
    """Keep tokens at least `min_p` times as likely as the most likely one.

    Nguyen et al. 2024, arXiv:2407.01082; the arithmetic of transformers 5.

    Args:
        min_p: in [0, 1], a fraction of the highest probability.
    """

    min_p: float
    name: ClassVar[str] = "min-p"
    limits: ClassVar = {"min_p": validation.FRACTION}

    def _threshold(self, probs: Tensor, highest: Tensor) -> Tensor:
        return self.min_p * highest


@dataclass(frozen=True)
class TopA(Cutoff):
    """Keep tokens with at least `a` times the square of the highest probability.

    BlinkDL 2022, in RWKV-LM's samplers and KoboldAI. The more certain the model, the
    more is removed.

    Args:
        a: in [0, 1].
    """

    a: float
    name: ClassVar[str] = "top-a"
    limits: ClassVar = {"a": validation.FRACTION}

    def _threshold(self, probs: Tensor, highest: Tensor) -> Tensor:
        return self.a * highest.square()


@dataclass(frozen=True)
class EpsilonCutoff(Cutoff):
    """Keep tokens with a probability of at least epsilon.

    Hewitt et al. 2022, arXiv:2210.15191; the arithmetic of transformers 5.

    Args:
        epsilon: a probability in [0, 1); the paper has 3e-4 to 9e-4.
    """

    epsilon: float
    name: ClassVar[str] = "epsilon cutoff"
    limits: ClassVar = {"epsilon": validation.BELOW_ONE}

    def _threshold(self, probs: Tensor, highest: Tensor) -> Tensor:
        return torch.full_like(highest, self.epsilon)


@dataclass(frozen=True)
class EtaCutoff(Cutoff):
    """Keep tokens with at least min(epsilon, sqrt(epsilon) * exp(-entropy)).

    Hewitt et al. 2022, arXiv:2210.15191: an epsilon cutoff that a flat distribution
    lowers; the entropy is in nats, the arithmetic that of transformers 5.

    Args:
        epsilon: in [0, 1); the paper has 3e-4 to 4e-3.
    """

    epsilon: float
    name: ClassVar[str] = "eta cutoff"
    limits: ClassVar = {"epsilon": validation.BELOW_ONE}

    def _threshold(self, probs: Tensor, highest: Tensor) -> Tensor:
        entropy = torch.special.entr(probs).sum(-1, keepdim=True)
        eta: Tensor = (-entropy).exp() * self.epsilon**0.5
        return eta.clamp(max=self.epsilon)


@dataclass(frozen=True)
class PLess(Cutoff):
    """Keep tokens at least as likely as two draws are to agree: the sum of squares.

    Tan et al. 2025, arXiv:2509.23234. It has no parameter; the entropy meant is
    Rényi's of order two.
    """

    name: ClassVar[str] = "p-less"

    def _threshold(self, probs: Tensor, highest: Tensor) -> Tensor:
        return probs.square().sum(-1, keepdim=True)


@dataclass(frozen=True)
class TopH(Stage):
    """Keep the most likely tokens that hold a fraction of the entropy together.

    Potraghloo et al. 2025, arXiv:2509.02510; the arithmetic of transformers 5, which
    looks at the 100 highest logits only, and keeps the first in any case.

    Args:
        h: the fraction, in (0, 1]. 1 still removes what is beyond the 100 highest.
    """

    h: float
    name: ClassVar[str] = "top-H"
    limits: ClassVar = {"h": validation.PROBABILITY}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every token beyond that entropy at -inf."""
        logits = as_float(logits)
        entropy, most = self._compared(logits)
        return logits.masked_fill(entropy > most, -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return the entropy of each token and those above it, in nats."""
        entropy, most = self._compared(as_float(logits))
        return Criterion("entropy up to it", entropy, ">", most.item())

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        values, ids = logits.topk(min(_TOP_H, logits.shape[-1]))
        logs = values.log_softmax(-1)
        probs = logs.softmax(-1)
        entropy = torch.special.entr(probs).cumsum(-1)
        entropy[..., 0] = 0.0  # so that the first one stays
        lowest = torch.finfo(logs.dtype).min
        most = -(logs.clamp(min=lowest) * probs).sum(-1, keepdim=True) * self.h
        return torch.full_like(logits, torch.inf).scatter(-1, ids, entropy), most
