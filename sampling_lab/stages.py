"""The stages of a chain: pure functions, logits in and logits out.

A stage takes float logits of shape (..., V) and returns the same shape in float32
or better. A removed token is -inf, at least one token stays, and the input is never
changed. `Stage.evidence` tells for each token the number that its rule compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .errors import LogitsError

_REACHED = 1e-6
"""A cumulative mass this close below p counts as p: float32 cannot tell better."""

_SAFE_TEMPERATURE = 1e-6
"""No model's logits are large enough to overflow at or above this."""

_SELECTED = 1024
_MARGIN = 2e-6
"""Selection instead of a full sort is used only when no decision is this close."""


@dataclass(frozen=True)
class Evidence:
    """What a stage compared: token i is removed when `values[i] relation threshold`."""

    quantity: str
    values: Tensor  # (V,)
    relation: str
    threshold: float


class Stage(ABC):
    """One step between a model's logits and the final ones."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits, shape (..., V), after this stage."""

    def evidence(self, logits: Tensor) -> Evidence | None:
        """Return what the rule compares over logits (V,); None if nothing is cut."""
        return None


@dataclass(frozen=True)
class Temperature(Stage):
    """Divide the logits by a temperature.

    At 0, and where the division would overflow, only the highest logit stays (the
    lowest id on a tie): the limit of the rule, which is greedy decoding.

    Args:
        temperature: >= 0; 0 means greedy.
        shifted: subtract the highest logit first, as XSLM does; the distribution is
            the same, the rounding is not.
    """

    temperature: float
    shifted: bool = False
    name: ClassVar[str] = "temperature"

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the scaled logits."""
        logits = _float(logits)
        if self.temperature == 0.0:
            return _only_highest(logits)
        scaled = logits
        if self.shifted:
            scaled = logits - logits.amax(-1, keepdim=True)  # (..., V)
        scaled = scaled / self.temperature
        if self.temperature >= _SAFE_TEMPERATURE:
            return scaled
        return torch.where(self._overflows(logits), _only_highest(logits), scaled)

    def evidence(self, logits: Tensor) -> Evidence | None:
        """Return the logits against the highest one, where this stage is greedy."""
        logits = _float(logits)
        if self.temperature > 0.0 and not self._overflows(logits).any():
            return None
        return Evidence("logit", logits, "<", logits.max().item())

    def _overflows(self, logits: Tensor) -> Tensor:
        """Return for each row, shape (..., 1), whether the division overflows."""
        largest = torch.finfo(logits.dtype).max * self.temperature
        finite = logits.masked_fill(logits == -torch.inf, 0.0)
        too_small = self.temperature < torch.finfo(logits.dtype).tiny
        return (finite.abs().amax(-1, keepdim=True) >= largest) | too_small


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

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with all but the k highest at -inf."""
        logits = _float(logits)
        if self.k >= logits.shape[-1]:
            return logits.clone()
        kth = logits.topk(self.k).values[..., -1:]  # (..., 1)
        removed = logits < kth
        if self.ties == "lowest_id":
            tied = logits == kth
            room = self.k - (logits > kth).sum(-1, keepdim=True)  # (..., 1)
            removed |= tied & (tied.cumsum(-1) > room)
        return logits.masked_fill(removed, -torch.inf)

    def evidence(self, logits: Tensor) -> Evidence:
        """Return each token's rank against k."""
        return Evidence("rank", ranks(_float(logits)), ">", float(self.k))


@dataclass(frozen=True)
class TopP(Stage):
    """Keep the nucleus: the most likely tokens that reach a mass of p together.

    Holtzman et al. 2020, arXiv:1904.09751. The token that reaches p stays.

    Args:
        p: in (0, 1].
        rule: "descending" adds up from the most likely token and keeps a token while
            the mass before it is below p (equal logits: lowest id first); "ascending"
            adds up from the least likely and removes while the mass is <= 1 - p, the
            arithmetic of transformers 5 to the last bit.
    """

    p: float
    rule: str = "descending"
    name: ClassVar[str] = "top-p"

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with everything outside the nucleus at -inf."""
        logits = _float(logits)
        if self.p >= 1.0:
            return logits.clone()
        removed = self._selected(logits) if logits.dim() == 1 else None
        if removed is None:
            removed = self._sorted(logits)
        return logits.masked_fill(removed, -torch.inf)

    def evidence(self, logits: Tensor) -> Evidence:
        """Return the cumulative mass that decides about each token."""
        order, mass = self._mass(_float(logits))
        values = torch.empty_like(mass).scatter_(-1, order, mass)
        if self.rule == "ascending":
            return Evidence("mass up to it from below", values, "<=", 1 - self.p)
        return Evidence("mass before it", values, ">=", self.p)

    def _mass(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the order (..., V) and, in it, the mass that the rule compares."""
        if self.rule == "ascending":
            ordered, order = torch.sort(logits, descending=False)
            return order, ordered.softmax(-1).cumsum(-1)
        ordered, order = torch.sort(logits, descending=True, stable=True)
        probs = ordered.double().softmax(-1)
        return order, probs.cumsum(-1) - probs

    def _sorted(self, logits: Tensor) -> Tensor:
        """Return the removed mask (..., V) by the rule itself, a full sort."""
        order, mass = self._mass(logits)
        if self.rule == "ascending":
            removed = mass <= (1 - self.p)
            removed[..., -1] = False
        else:
            removed = mass >= self.p - _REACHED
            removed[..., 0] = False
        return removed.scatter(-1, order, removed)

    def _selected(self, logits: Tensor) -> Tensor | None:
        """Return the removed mask (V,) from the highest logits alone.

        None where that is not provably what the full sort gives: the nucleus is
        larger than the selection, a mass lies within rounding of p, or the last
        token kept ties with the first one removed.
        """
        if logits.shape[-1] <= 2 * _SELECTED:
            return None
        highest, _ = logits.topk(_SELECTED)
        probs = (highest.double() - logits.double().logsumexp(-1)).exp()
        before = probs.cumsum(-1) - probs
        size = int((before < self.p).sum())
        near = (before - self.p).abs().min() < _REACHED + _MARGIN
        if size == _SELECTED or near or highest[size - 1] == highest[size]:
            return None
        return logits < highest[size - 1]


@dataclass(frozen=True)
class MinP(Stage):
    """Keep tokens at least `min_p` times as likely as the most likely one.

    Nguyen et al. 2024, arXiv:2407.01082; the arithmetic of transformers 5.

    Args:
        min_p: in (0, 1], a fraction of the highest probability.
    """

    min_p: float
    name: ClassVar[str] = "min-p"

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every less likely token at -inf."""
        logits = _float(logits)
        probs = logits.softmax(-1)  # (..., V)
        removed = probs < self.min_p * probs.amax(-1, keepdim=True)
        return logits.masked_fill(removed, -torch.inf)

    def evidence(self, logits: Tensor) -> Evidence:
        """Return each token's probability against the scaled highest one."""
        probs = _float(logits).softmax(-1)
        return Evidence("probability", probs, "<", self.min_p * probs.max().item())


def check_logits(logits: Tensor) -> None:
    """Refuse logits that no rule can make a distribution of.

    Raises:
        LogitsError: NaN or +inf (how many, where first), or no token allowed.
    """
    highest = logits.amax(-1)  # NaN wins over all, so one look finds every fault
    if bool(highest.isfinite().all()):
        return
    for fault, where in (("NaN", logits.isnan()), ("+inf", logits == torch.inf)):
        if count := int(where.sum()):
            first = where.nonzero()[0].tolist()
            position = first[0] if len(first) == 1 else tuple(first)
            raise LogitsError(
                f"logits must be finite or -inf, got {count} {fault} "
                f"(first at {position}); check the checkpoint's weights and dtype"
            )
    raise LogitsError("no token is allowed: every logit of a row is -inf")


def ranks(logits: Tensor) -> Tensor:
    """Return each token's rank, 1 for the highest, equal logits by id; shape (..., V).

    >>> ranks(torch.tensor([1.0, 3.0, 3.0])).tolist()
    [3, 1, 2]
    """
    order = torch.sort(logits, descending=True, stable=True).indices
    places = torch.arange(1, logits.shape[-1] + 1).expand_as(order).contiguous()
    return torch.empty_like(order).scatter_(-1, order, places.to(order.device))


def _float(logits: Tensor) -> Tensor:
    logits = logits.detach()
    if logits.dtype in (torch.float32, torch.float64):
        return logits
    return logits.float()


def _only_highest(logits: Tensor) -> Tensor:
    winner = logits.argmax(-1, keepdim=True)  # (..., 1), the lowest id on a tie
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, winner, True)
    return logits.masked_fill(~kept, -torch.inf)
