"""The less common cuts: locally typical, top-nσ, and XTC, which cuts from above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from . import rules
from .fast import keep_from, sorted_by
from .stages import Evidence, Stage, as_float


@dataclass(frozen=True)
class TypicalP(Stage):
    """Keep the tokens whose surprise is nearest the entropy, up to a mass of p.

    Meister et al. 2022, arXiv:2202.00666; the arithmetic of transformers 5. The token
    that reaches p stays, and so does every other as far from the entropy as it is.
    The most likely token may go.

    Args:
        p: in (0, 1].
    """

    p: float
    name: ClassVar[str] = "typical-p"
    limits: ClassVar = {"p": rules.MASS}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every token too far from the entropy at -inf."""
        logits = as_float(logits)
        if self.p >= 1.0:
            return logits.clone()
        distance, farthest = self._compared(logits)
        return logits.masked_fill(distance > farthest, -torch.inf)

    def evidence(self, logits: Tensor) -> Evidence:
        """Return each token's distance from the entropy, in nats."""
        distance, farthest = self._compared(as_float(logits))
        return Evidence("distance from entropy", distance, ">", farthest.item())

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return distances (..., V) and the greatest one that stays (..., 1)."""
        log_probs = logits.log_softmax(-1)
        entropy = -(log_probs * log_probs.exp()).nansum(-1, keepdim=True)
        distance = (-log_probs - entropy).abs()
        ordered, nearest_first = sorted_by(distance, logits)
        mass = nearest_first.softmax(-1).cumsum(-1)
        last = (mass < self.p).sum(-1, keepdim=True)
        return distance, ordered.gather(-1, last.clamp(max=ordered.shape[-1] - 1))


@dataclass(frozen=True)
class TopNSigma(Stage):
    """Keep the logits within n standard deviations of the highest one.

    Tang et al. 2024, arXiv:2411.07641. As in llama.cpp, the deviation is that of the
    tokens still possible, over their number. Temperature before it changes nothing.

    Args:
        n: > 0, in standard deviations.
    """

    n: float
    name: ClassVar[str] = "top-nσ"
    limits: ClassVar = {"n": rules.POSITIVE}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every lower one at -inf."""
        logits = as_float(logits)
        return keep_from(logits, self._lowest(logits))

    def evidence(self, logits: Tensor) -> Evidence:
        """Return each logit against the lowest that stays."""
        logits = as_float(logits)
        return Evidence("logit", logits, "<", self._lowest(logits).item())

    def _lowest(self, logits: Tensor) -> Tensor:
        """Return the lowest logit that stays, (..., 1)."""
        removed = logits == -torch.inf
        count = (~removed).sum(-1, keepdim=True)  # (..., 1)
        highest = logits.amax(-1, keepdim=True)
        below = (highest - logits).double().masked_fill_(removed, 0.0)  # (..., V)
        mean = below.sum(-1, keepdim=True) / count
        squares = (below - mean).square_().masked_fill_(removed, 0.0)
        deviation = (squares.sum(-1, keepdim=True) / count).sqrt()
        return (highest - self.n * deviation).to(logits.dtype)


@dataclass(frozen=True)
class XTC(Stage):
    """Exclude top choices: now and then remove all likely tokens but the least one.

    By p-e-w (2024), in text-generation-webui and llama.cpp. If the coin falls below
    `probability`, every token more likely than the least likely one that reaches
    `threshold` goes. With fewer than two such tokens, or a threshold above 0.5,
    nothing does.

    Args:
        probability: how often it acts, in [0, 1].
        threshold: what counts as likely, a probability in [0, 1].
        coin: this step's number in [0, 1]; see `sampling_lab.draws.coin`.
    """

    probability: float
    threshold: float = 0.1
    coin: float = 0.0
    name: ClassVar[str] = "XTC"
    limits: ClassVar = dict.fromkeys(
        ("probability", "threshold", "coin"), rules.FRACTION
    )

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with the top choices at -inf, if the coin says so."""
        logits = as_float(logits)
        if not self.acts:
            return logits.clone()
        probs, least = self._compared(logits)
        return logits.masked_fill(probs > least, -torch.inf)

    def evidence(self, logits: Tensor) -> Evidence | None:
        """Return each probability against that of the likely token that stays."""
        if not self.acts:
            return None
        probs, least = self._compared(as_float(logits))
        return Evidence("probability", probs, ">", least.item())

    @property
    def acts(self) -> bool:
        """Whether the coin lets it act at this step."""
        return self.coin < self.probability

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        probs = logits.softmax(-1)
        likely = probs.masked_fill(probs < self.threshold, torch.inf)
        return probs, likely.amin(-1, keepdim=True)
