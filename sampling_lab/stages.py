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

from . import rules
from .errors import LogitsError
from .fast import by_rank, count_from, is_below, keep_from, kth_highest, sorted_values

_REACHED = 1e-6
"""A cumulative mass this close below p counts as p: float32 cannot tell better."""


@dataclass(frozen=True)
class Evidence:
    """What a stage compared: token i is removed when `values[i] relation threshold`."""

    quantity: str
    values: Tensor  # (V,)
    relation: str
    threshold: float


class Stage(ABC):
    """One step between a model's logits and the final ones.

    Attributes:
        name: what people call it.
        adjusts: whether it shifts logits or bans tokens whatever the rest is, as
            penalties do; greedy decoding then obeys it too.
        limits: for each field, the rule that its value must follow.
    """

    name: ClassVar[str]
    adjusts: ClassVar[bool] = False
    limits: ClassVar[dict[str, rules.Rule]] = {}

    def __post_init__(self) -> None:
        """Validate the fields.

        Raises:
            ParameterError: a value outside its rule; names the rule and the value.
        """
        for field, rule in self.limits.items():
            object.__setattr__(self, field, rule(field, getattr(self, field)))

    @abstractmethod
    def __call__(self, logits: Tensor) -> Tensor:
        """Return the logits, shape (..., V), after this stage."""

    def evidence(self, logits: Tensor) -> Evidence | None:
        """Return what the rule compares over logits (V,); None if nothing is cut."""
        return None


@dataclass(frozen=True)
class Temperature(Stage):
    """Divide the logits by a temperature.

    At 0, and where the division overflows, only the highest logit stays (the lowest
    id on a tie): the limit of the rule, which is greedy decoding.

    Args:
        temperature: >= 0; 0 means greedy.
        shifted: subtract the highest logit first, as XSLM does; the distribution is
            the same, the rounding is not.
    """

    temperature: float
    shifted: bool = False
    name: ClassVar[str] = "temperature"
    limits: ClassVar = {"temperature": rules.TEMPERATURE}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the scaled logits."""
        logits = as_float(logits)
        if self.temperature < torch.finfo(logits.dtype).tiny:
            return _only_highest(logits)
        scaled = self._scaled(logits)
        overflows = ~scaled.amax(-1, keepdim=True).isfinite()  # (..., 1)
        if not overflows.any():
            return scaled
        return torch.where(overflows, _only_highest(logits), scaled)

    def evidence(self, logits: Tensor) -> Evidence | None:
        """Return each token's rank against 1, where this stage is greedy."""
        kept = self(logits) > -torch.inf
        if bool((kept == (logits > -torch.inf)).all()):
            return None
        return Evidence("rank", ranks(as_float(logits)), ">", 1.0)

    def _scaled(self, logits: Tensor) -> Tensor:
        if self.shifted:
            logits = logits - logits.amax(-1, keepdim=True)  # (..., V)
        return logits / self.temperature


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
    limits: ClassVar = {"k": rules.COUNT, "ties": rules.one_of("kept", "lowest_id")}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with all but the k highest at -inf."""
        logits = as_float(logits)
        if self.k >= logits.shape[-1]:
            return logits.clone()
        kth = kth_highest(logits, self.k)  # (..., 1)
        if self.ties == "lowest_id":
            return _keep(logits, kth, self.k)
        return keep_from(logits, kth)

    def evidence(self, logits: Tensor) -> Evidence:
        """Return each token's rank against k."""
        return Evidence("rank", ranks(as_float(logits)), ">", float(self.k))


@dataclass(frozen=True)
class TopP(Stage):
    """Keep the nucleus: the most likely tokens that reach a mass of p together.

    Holtzman et al. 2020, arXiv:1904.09751.

    Args:
        p: in (0, 1].
        rule: "descending" adds up from the most likely token and keeps a token while
            the mass before it is below p (equal logits: lowest id first), so that
            the token that reaches p stays; "exceeding" keeps one while that mass is
            at most p, so that the token that passes p stays; "ascending" adds up
            from the least likely and removes while the mass is <= 1 - p, the
            arithmetic of transformers 5 to the last bit.
    """

    p: float
    rule: str = "descending"
    name: ClassVar[str] = "top-p"
    limits: ClassVar = {
        "p": rules.MASS,
        "rule": rules.one_of("descending", "exceeding", "ascending"),
    }

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with everything outside the nucleus at -inf."""
        logits = as_float(logits)
        if self.p >= 1.0:
            return logits.clone()
        if self.rule == "ascending":
            return self._ascending(logits)
        ordered = sorted_values(logits).flip(-1)
        reached = _REACHED if self.rule == "exceeding" else -_REACHED
        mass = _mass_before(ordered)
        size = _count_below(mass, self.p + reached).clamp(min=1)  # (..., 1)
        return _keep(logits, ordered.gather(-1, size - 1), size)

    def evidence(self, logits: Tensor) -> Evidence:
        """Return the cumulative mass that decides about each token."""
        logits = as_float(logits)
        if self.rule == "ascending":
            ordered, order = torch.sort(logits, descending=False)
            mass, what = ordered.softmax(-1).cumsum(-1), "mass up to it from below"
            relation, threshold = "<=", 1 - self.p
        else:
            ordered, order = torch.sort(logits, descending=True, stable=True)
            mass, what = _mass_before(ordered), "mass before it"
            relation = ">" if self.rule == "exceeding" else ">="
            threshold = self.p
        values = torch.empty_like(mass).scatter_(-1, order, mass)
        return Evidence(what, values, relation, threshold)

    def _ascending(self, logits: Tensor) -> Tensor:
        """Return logits cut by the ascending rule."""
        ordered = sorted_values(logits)
        mass = ordered.softmax(-1).cumsum(-1)
        count = _count_below(mass, 1 - self.p, equal=True)  # (..., 1)
        count.clamp_(max=ordered.shape[-1] - 1)
        least_kept = ordered.gather(-1, count)
        highest_removed = ordered.gather(-1, (count - 1).clamp(min=0))
        if not ((count > 0) & (highest_removed == least_kept)).any():
            return keep_from(logits, least_kept)
        # The cut goes through a tie, and torch.sort's own order of equal values,
        # which is not by id, says which of them the library removes.
        order = torch.sort(logits, descending=False).indices
        count += logits.shape[-1] - ordered.shape[-1]
        lowest = torch.arange(logits.shape[-1], device=logits.device) < count
        removed = torch.zeros_like(lowest).scatter_(-1, order, lowest)
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
    limits: ClassVar = {"min_p": rules.FRACTION}

    def __call__(self, logits: Tensor) -> Tensor:
        """Return logits with every less likely token at -inf."""
        logits = as_float(logits)
        probs = logits.softmax(-1)  # (..., V)
        removed = is_below(probs, self.min_p * probs.amax(-1, keepdim=True))
        return logits.masked_fill(removed, -torch.inf)

    def evidence(self, logits: Tensor) -> Evidence:
        """Return each token's probability against the scaled highest one."""
        probs = as_float(logits).softmax(-1)
        return Evidence("probability", probs, "<", self.min_p * probs.max().item())


def check_logits(logits: Tensor, where: str = "") -> None:
    """Refuse logits that no rule can make a distribution of.

    Args:
        logits: shape (..., V).
        where: what the message begins with.

    Raises:
        LogitsError: NaN or +inf (how many, where first), or no token allowed.
    """
    if logits.numel() == 0 or not logits.is_floating_point():
        raise LogitsError(
            f"{where}logits must be a float tensor of at least one token, got "
            f"{logits.dtype} of shape {tuple(logits.shape)}"
        )
    highest = logits.amax(-1)  # NaN wins over all, so one look finds every fault
    if bool(highest.isfinite().all()):
        return
    for fault, faulty in (("NaN", logits.isnan()), ("+inf", logits == torch.inf)):
        if count := int(faulty.sum()):
            first = faulty.nonzero()[0].tolist()
            position = first[0] if len(first) == 1 else tuple(first)
            raise LogitsError(
                f"{where}logits must be finite or -inf, got {count} {fault} "
                f"(first at {position}); check the checkpoint's weights and dtype"
            )
    raise LogitsError(f"{where}no token is allowed: every logit of a row is -inf")


def ranks(logits: Tensor) -> Tensor:
    """Return each token's rank, 1 for the highest, equal logits by id; shape (..., V).

    >>> ranks(torch.tensor([1.0, 3.0, 3.0])).tolist()
    [3, 1, 2]
    """
    if logits.dim() == 1:
        order = torch.cat((by_rank(logits), (logits == -torch.inf).nonzero()[:, 0]))
    else:
        order = torch.sort(logits, descending=True, stable=True).indices
    places = torch.arange(1, logits.shape[-1] + 1, device=logits.device)
    return torch.empty_like(order).scatter_(-1, order, places.expand_as(order))


def as_float(logits: Tensor) -> Tensor:
    """Return logits without a gradient, float32 or float64."""
    logits = logits.detach()
    if logits.dtype in (torch.float32, torch.float64):
        return logits
    return logits.float()


def _mass_before(ordered: Tensor) -> Tensor:
    """Return for logits in descending order the probability before each, (..., V).

    It is summed in float64 and scaled so that all of it is 1, which takes out the
    rounding of a float32 softmax's sum.
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
    if bool((count_from(logits, least) == count).all()):
        return keep_from(logits, least)
    tied = logits == least
    room = count - (logits > least).sum(-1, keepdim=True)  # (..., 1)
    removed = (logits < least) | (tied & (tied.cumsum(-1) > room))
    return logits.masked_fill(removed, -torch.inf)


def _only_highest(logits: Tensor) -> Tensor:
    winner = logits.argmax(-1, keepdim=True)  # (..., 1), the lowest id on a tie
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, winner, True)
    return logits.masked_fill(~kept, -torch.inf)
