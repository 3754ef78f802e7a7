"""Truncation: rules that remove unlikely tokens, and XTC, which removes likely ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from . import validation
from .sorting import sorted_values
from .stage import Criterion, Stage, as_float, ranks

_REACHED = 1e-6
"""A cumulative mass this close below p counts as p: float32 cannot tell better."""


@dataclass(frozen=True)
class TopK(Stage):
    """Keep the k highest logits (Fan et al. 2018, arXiv:1805.04833).

    Args:
        k: >= 1; more than V keeps all.
        ties: "kept" keeps every token equal to the k-th, as transformers 5 does;
            "lowest_id" keeps exactly k, the lowest ids of the tie.
    """

    k: int
    ties: str = "kept"
    name: ClassVar[str] = "top-k"
    limits: ClassVar = {
        "k": validation.COUNT,
        "ties": validation.one_of("kept", "lowest_id"),
    }

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with all but the k highest at -inf."""
        logits = as_float(logits)
        if self.k >= logits.shape[-1]:
            return logits.clone()
        kth = logits.topk(self.k).values[..., -1:]  # (..., 1)
        if self.ties == "lowest_id":
            return _keep(logits, kth, self.k)
        return logits.masked_fill(logits < kth, -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return each token's rank against k."""
        return Criterion("rank", ranks(as_float(logits)), ">", float(self.k))


@dataclass(frozen=True)
class TopP(Stage):
    """Keep the nucleus: the most likely tokens that reach a mass of p together.

    Holtzman et al. 2020, arXiv:1904.09751.

    Args:
        p: in (0, 1].
        rule: "descending" adds up from the most likely token and keeps a token while
            the mass before it is below p (equal logits: lowest id first), so that
            the token that reaches p stays; "exceeding" keeps one while that mass is
            at most p, so that the token that passes p stays, the arithmetic of
            train-llm-from-scratch to the last bit; "ascending" adds up from the
            least likely and removes while the mass is <= 1 - p, the arithmetic of
            transformers 5 to the last bit.
    """

    p: float
    rule: str = "descending"
    name: ClassVar[str] = "top-p"
    limits: ClassVar = {
        "p": validation.PROBABILITY,
        "rule": validation.one_of("descending", "exceeding", "ascending"),
    }

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with everything outside the nucleus at -inf."""
        logits = as_float(logits)
        if self.p >= 1.0:
            return logits.clone()
        if self.rule != "descending":
            return self._as_sorted(logits)
        ordered = sorted_values(logits).flip(-1)
        mass = _mass_before(ordered)
        size = _count_below(mass, self.p - _REACHED).clamp(min=1)  # (..., 1)
        return _keep(logits, ordered.gather(-1, size - 1), size)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return the cumulative mass that decides about each token."""
        logits = as_float(logits)
        down, stable = self.rule != "ascending", self.rule == "descending"
        ordered, order = torch.sort(logits, descending=down, stable=stable)
        mass, threshold = ordered.softmax(-1).cumsum(-1), self.p
        what, relation = "mass before it", ">"
        if self.rule == "descending":
            mass, relation = _mass_before(ordered), ">="
        elif self.rule == "exceeding":
            mass = mass.roll(1, -1)
            mass[..., 0] = 0.0
        else:
            what, relation, threshold = "mass up to it from below", "<=", 1 - self.p
        values = torch.empty_like(mass).scatter_(-1, order, mass)
        return Criterion(what, values, relation, threshold)

    def _as_sorted(self, logits: Tensor) -> Tensor:
        """Return logits cut by a rule that follows `torch.sort`, in ties too."""
        down, ordered = self.rule == "exceeding", sorted_values(logits)
        ordered = ordered.flip(-1) if down else ordered
        last = ordered.shape[-1] - 1
        mass = ordered.softmax(-1).cumsum(-1)
        cut = _count_below(mass, self.p if down else 1 - self.p, equal=True)
        cut = cut + 1 if down else cut.clamp(max=last)  # (..., 1)
        before = ordered.gather(-1, (cut - 1).clamp(0, last))
        after = ordered.gather(-1, cut.clamp(max=last))
        if not (before == after).any():
            least_kept = before if down else after
            return logits.masked_fill(logits < least_kept, -torch.inf)
        # The cut goes through a tie, and torch.sort's own order of equal values,
        # which is not by id, says which of them are removed.
        order = torch.sort(logits, descending=down).indices
        place = torch.arange(logits.shape[-1], device=logits.device)
        dropped = logits.shape[-1] - 1 - last
        beyond = place >= cut if down else place < cut + dropped
        removed = torch.zeros_like(beyond).scatter_(-1, order, beyond)
        return logits.masked_fill(removed, -torch.inf)


@dataclass(frozen=True)
class MinP(Stage):
    """Keep tokens at least `min_p` times as likely as the most likely one.

    Nguyen et al. 2024, arXiv:2407.01082; the arithmetic of transformers 5.

    Args:
        min_p: in [0, 1], a fraction of the highest probability.
    """

    min_p: float
    name: ClassVar[str] = "min-p"
    limits: ClassVar = {"min_p": validation.FRACTION}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every less likely token at -inf."""
        logits = as_float(logits)
        probs = logits.softmax(-1)  # (..., V)
        removed = probs < self.min_p * probs.amax(-1, keepdim=True)
        return logits.masked_fill(removed, -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return each token's probability against the scaled highest one."""
        probs = as_float(logits).softmax(-1)
        return Criterion("probability", probs, "<", self.min_p * probs.max().item())


@dataclass(frozen=True)
class TypicalP(Stage):
    """Keep the tokens whose surprise is nearest the entropy, up to a mass of p.

    Meister et al. 2022, arXiv:2202.00666; the arithmetic of transformers 5. The token
    that reaches p is kept, and so is every other token equally far from the entropy.
    The most likely token may be removed.

    Args:
        p: in (0, 1].
    """

    p: float
    name: ClassVar[str] = "typical-p"
    limits: ClassVar = {"p": validation.PROBABILITY}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every token too far from the entropy at -inf."""
        logits = as_float(logits)
        if self.p >= 1.0:
            return logits.clone()
        distance, farthest = self._compared(logits)
        return logits.masked_fill(distance > farthest, -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return each token's distance from the entropy, in nats."""
        distance, farthest = self._compared(as_float(logits))
        return Criterion("distance from entropy", distance, ">", farthest.item())

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return distances (..., V) and the greatest one that is kept (..., 1)."""
        log_probs = logits.log_softmax(-1)
        entropy = -(log_probs * log_probs.exp()).nansum(-1, keepdim=True)
        distance = (-log_probs - entropy).abs()
        ordered, order = torch.sort(distance)
        nearest_first = logits.gather(-1, order)
        mass = nearest_first.softmax(-1).cumsum(-1)
        last = (mass < self.p).sum(-1, keepdim=True)
        return distance, ordered.gather(-1, last.clamp(max=ordered.shape[-1] - 1))


@dataclass(frozen=True)
class TopNSigma(Stage):
    """Keep the logits within n standard deviations of the highest one.

    Tang et al. 2024, arXiv:2411.07641. As in llama.cpp, the deviation is taken over
    the tokens that earlier stages kept, divided by their number. An earlier
    temperature changes nothing.

    Args:
        n: > 0, in standard deviations.
    """

    n: float
    name: ClassVar[str] = "top-nσ"
    limits: ClassVar = {"n": validation.POSITIVE}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every lower one at -inf."""
        logits = as_float(logits)
        return logits.masked_fill(logits < self._lowest(logits), -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return each logit against the lowest that is kept."""
        logits = as_float(logits)
        return Criterion("logit", logits, "<", self._lowest(logits).item())

    def _lowest(self, logits: Tensor) -> Tensor:
        """Return the lowest logit that is kept, (..., 1)."""
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
    """Exclude top choices: sometimes remove all likely tokens except the least likely.

    By p-e-w (2024), in text-generation-webui and llama.cpp. If `coin` is below
    `probability`, every token is removed that is more likely than the least likely
    one that reaches `threshold`. With fewer than two such tokens, or a threshold
    above 0.5, none is.

    Args:
        probability: how often it acts, in [0, 1].
        threshold: what counts as likely, a probability in [0, 1].
        coin: this step's random number in [0, 1]; see `draws.coin`.
    """

    probability: float
    threshold: float = 0.1
    coin: float = 0.0
    name: ClassVar[str] = "XTC"
    limits: ClassVar = dict.fromkeys(
        ("probability", "threshold", "coin"), validation.FRACTION
    )

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with the top choices at -inf, if it acts at this step."""
        logits = as_float(logits)
        if not self.acts:
            return logits.clone()
        probs, least = self._compared(logits)
        return logits.masked_fill(probs > least, -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion | None:
        """Return each probability against that of the likely token that is kept."""
        if not self.acts:
            return None
        probs, least = self._compared(as_float(logits))
        return Criterion("probability", probs, ">", least.item())

    @property
    def acts(self) -> bool:
        """Whether it acts at this step."""
        return self.coin < self.probability

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        probs = logits.softmax(-1)
        likely = probs.masked_fill(probs < self.threshold, torch.inf)
        return probs, likely.amin(-1, keepdim=True)


def _mass_before(ordered: Tensor) -> Tensor:
    """Return for logits in descending order the probability before each, (..., V).

    It is summed in float64 and scaled to a total of 1, which removes the rounding of
    a float32 softmax.
    """
    probs = ordered.softmax(-1).double()
    mass = probs.cumsum(-1)
    return (mass - probs) / mass[..., -1:]


def _count_below(mass: Tensor, bound: float, *, equal: bool = False) -> Tensor:
    """Return how many of an ascending mass (..., V) lie below a bound, (..., 1)."""
    bounds = mass.new_full((*mass.shape[:-1], 1), bound)
    return torch.searchsorted(mass, bounds, right=equal)


def _keep(logits: Tensor, least: Tensor, count: Tensor | int) -> Tensor:
    """Keep the `count` highest logits, of which `least` is the lowest; ties by id."""
    if bool(((logits >= least).sum(-1, keepdim=True) == count).all()):
        return logits.masked_fill(logits < least, -torch.inf)
    tied = logits == least
    room = count - (logits > least).sum(-1, keepdim=True)  # (..., 1)
    removed = (logits < least) | (tied & (tied.cumsum(-1) > room))
    return logits.masked_fill(removed, -torch.inf)
