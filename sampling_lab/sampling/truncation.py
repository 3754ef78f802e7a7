"""Truncation: rules that remove unlikely tokens, and XTC, which removes likely ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from . import validation
from .nucleus import NUCLEI, typical_masses
from .sorting import sorted_values
from .stage import Criterion, Stage, as_float, ranks

_ZIPF = 100
"""How many tokens Mirostat 1 estimates from."""


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
        return _keep(logits, kth, self.k, self.ties)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return each token's rank against k."""
        return Criterion("rank", ranks(as_float(logits)), ">", float(self.k))


@dataclass(frozen=True)
class TopP(Stage):
    """Keep the nucleus: the most likely tokens that reach a mass of p together.

    Holtzman et al. 2020, arXiv:1904.09751.

    Args:
        p: in (0, 1].
        rule: a name in `nucleus.NUCLEI`: what an engine adds up and compares, and
            which of several equal logits it keeps.
        by_rank: whether an earlier stage has sorted the logits, for a rule whose sum
            depends on their order.
    """

    p: float
    rule: str = "descending"
    by_rank: bool = False
    name: ClassVar[str] = "top-p"
    limits: ClassVar = {
        "p": validation.PROBABILITY,
        "rule": validation.one_of(*NUCLEI),
    }

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with everything outside the nucleus at -inf."""
        logits = as_float(logits)
        if self.p >= 1.0:
            return logits.clone()
        nucleus, ordered = NUCLEI[self.rule], sorted_values(logits)
        down, size = nucleus.removed != "<=", ordered.shape[-1]
        ordered = ordered.flip(-1) if down else ordered
        given = ordered if self.by_rank else logits
        mass, bound = nucleus.compare(ordered, given, self.p)
        count = _count_below(mass, bound, equal=nucleus.removed != ">=")  # (..., 1)
        count = (count if down else size - count).clamp(min=1)
        least = ordered.gather(-1, count - 1 if down else size - count)
        if nucleus.ties != "sort":
            return _keep(logits, least, count, nucleus.ties)
        beyond = ordered.gather(-1, (count if down else size - count - 1) % size)
        if bool((beyond != least).all()):
            return logits.masked_fill(logits < least, -torch.inf)
        # The cut goes through a tie, and torch.sort's own order of equal values,
        # which is not by id, says which of them are removed.
        order = torch.sort(logits, descending=down).indices
        place = torch.arange(logits.shape[-1], device=logits.device)
        beyond = place >= count if down else place < logits.shape[-1] - count
        removed = torch.zeros_like(beyond).scatter_(-1, order, beyond)
        return logits.masked_fill(removed, -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return the cumulative mass that decides about each token."""
        logits, nucleus = as_float(logits), NUCLEI[self.rule]
        down, stable = nucleus.removed != "<=", nucleus.ties != "sort"
        ordered, order = torch.sort(logits, descending=down, stable=stable)
        given = ordered if self.by_rank else logits
        mass, bound = nucleus.compare(ordered, given, self.p)
        values = torch.empty_like(mass).scatter_(-1, order, mass)
        what = "mass before it" if down else "mass up to it from below"
        return Criterion(what, values, nucleus.removed, float(bound))


@dataclass(frozen=True)
class TypicalP(Stage):
    """Keep the tokens whose surprise is nearest the entropy, up to a mass of p.

    Meister et al. 2022, arXiv:2202.00666; the arithmetic of transformers 5. The token
    that reaches p is kept, and so is every other token equally far from the entropy.
    The most likely token may be removed.

    Args:
        p: in (0, 1].
        listed: how many candidates llama.cpp's list holds, 0 for all; it walks down the
            list, so that one of several tokens equally far may be removed (see
            `typical_masses`). None follows transformers.
    """

    p: float
    listed: int | None = None
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
        """Return each token's distance from the entropy, in nats, or mass nearer it."""
        distance, farthest = self._compared(as_float(logits))
        what = "distance from entropy" if self.listed is None else "mass nearer entropy"
        return Criterion(what, distance, ">", farthest.item())

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return distances (..., V) and the greatest one that is kept (..., 1)."""
        if self.listed is not None:
            masses = typical_masses(logits, self.listed or logits.shape[-1])
            return masses, masses.new_tensor(self.p)
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
        above: whether a token must be above the threshold, as in mlx-lm.
        ties: "kept" keeps all tokens equal to the least likely one that counts;
            "one" keeps one of them, the highest id, as llama.cpp does.
    """

    probability: float
    threshold: float = 0.1
    coin: float = 0.0
    above: bool = False
    ties: str = "kept"
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
        removed = probs > least
        if self.ties == "one":
            tied = probs == least
            removed |= tied & (tied.cumsum(-1) < tied.sum(-1, keepdim=True))
        return logits.masked_fill(removed, -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion | None:
        """Return each probability against that of the likely token that is kept."""
        if not self.acts:
            return None
        probs, least = self._compared(as_float(logits))
        relation = ">=" if self.ties == "one" else ">"
        return Criterion("probability", probs, relation, least.item())

    @property
    def acts(self) -> bool:
        """Whether it acts at this step."""
        return self.coin < self.probability

    def _compared(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        probs = logits.softmax(-1)
        unlikely = probs <= self.threshold if self.above else probs < self.threshold
        return probs, probs.masked_fill(unlikely, torch.inf).amin(-1, keepdim=True)


@dataclass(frozen=True)
class Mirostat(Stage):
    """Keep tokens so that the text stays about as surprising as was asked for.

    Basu et al. 2021, arXiv:2007.14966; the arithmetic of llama.cpp. The limit mu starts
    at twice the target and after every token moves against the difference from it: see
    `StepContext.limit`.

    Args:
        version: 2 removes what is more surprising than mu; 1 estimates from the 100
            most likely tokens how fast probabilities fall (Zipf's law), and from that
            the k of top-k with this surprise.
        mu: the greatest surprise, in bits.
        target: the surprise that was asked for, in bits.
    """

    version: int
    mu: float
    target: float = 5.0
    name: ClassVar[str] = "mirostat"
    limits: ClassVar = {"version": validation.one_of(1, 2)}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with the tokens that are too surprising at -inf."""
        logits = as_float(logits)
        if self.version == 1:
            return TopK(self._k(logits), "lowest_id")(logits)
        surprise = -logits.log_softmax(-1) / math.log(2)
        kept = surprise <= self.mu
        first = (
            TopK(1, "lowest_id")(logits) > -torch.inf
        )  # where all are too surprising
        return logits.masked_fill(~kept & ~(first & ~kept.any(-1, True)), -torch.inf)

    def criterion(self, logits: Tensor) -> Criterion:
        """Return each token's surprise in bits against mu, or its rank against k."""
        logits = as_float(logits)
        if self.version == 1:
            return TopK(self._k(logits)).criterion(logits)
        surprise = -logits.log_softmax(-1) / math.log(2)
        return Criterion("surprise", surprise, ">", self.mu)

    def evidence(self, logits: Tensor) -> dict[str, float]:
        """Return the limit mu and the target, in bits."""
        return {"mu": self.mu, "target": self.target}

    def _k(self, logits: Tensor) -> int:
        """Return the k of one row (V,) in which a surprise of mu is expected."""
        probs = logits.double().softmax(-1).topk(min(_ZIPF, logits.shape[-1])).values
        if len(probs) < 2 or not probs[-1]:  # llama.cpp divides by zero
            return 1
        falls = -probs.log().cpu().diff()
        steps = torch.arange(1, len(probs) + 1, dtype=falls.dtype).log().diff()
        slope = float((steps * falls).sum() / steps.square().sum())
        excess, size = slope - 1, logits.shape[-1]
        if slope <= 0 or not excess:
            return size
        mass = excess * 2**self.mu / (1 - size**-excess)
        return max(1, int(min(size, mass ** (1 / slope))))


@dataclass(frozen=True)
class AtLeast(Stage):
    """Apply a truncation, but keep the n highest logits whatever it says.

    As `min_tokens_to_keep` of transformers 5 and mlx-lm. Of tokens equal to the
    n-th the lowest ids stay.

    Args:
        stage: the truncation; this one has its name and what it compares.
        n: >= 1.
    """

    stage: Stage
    n: int

    def __post_init__(self) -> None:
        """Take the name of the truncation, and check the fields."""
        if not isinstance(self.stage, Stage):
            raise validation.rule_error("stage", "a truncation", self.stage)
        validation.COUNT("n", self.n)
        object.__setattr__(self, "name", self.stage.name)

    def __call__(self, logits: Tensor) -> Tensor:
        """Return what the truncation gives, with the n highest logits as they were."""
        logits = as_float(logits)
        highest = TopK(self.n, "lowest_id")(logits) > -torch.inf
        return torch.where(highest, logits, self.stage(logits))

    def criterion(self, logits: Tensor) -> Criterion | None:
        """Return what the truncation compares."""
        return self.stage.criterion(logits)

    def evidence(self, logits: Tensor) -> dict[str, float]:
        """Return what the truncation found."""
        return self.stage.evidence(logits)


def _count_below(mass: Tensor, bound: Tensor | float, *, equal: bool = False) -> Tensor:
    """Return how many of an ascending mass (..., V) lie below a bound, (..., 1)."""
    bounds = torch.zeros_like(mass[..., :1]) + bound
    return torch.searchsorted(mass, bounds, right=equal)


def _keep(logits: Tensor, least: Tensor, count: Tensor | int, ties: str) -> Tensor:
    """Keep the `count` highest logits, of which `least` is the lowest; ties by id."""
    exactly = ties == "kept" or (logits >= least).sum(-1, keepdim=True) == count
    if bool(torch.as_tensor(exactly).all()):
        return logits.masked_fill(logits < least, -torch.inf)
    tied = logits == least
    room = count - (logits > least).sum(-1, keepdim=True)  # (..., 1)
    removed = (logits < least) | (tied & (tied.cumsum(-1) > room))
    return logits.masked_fill(removed, -torch.inf)
