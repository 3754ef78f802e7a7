"""What a stage of a chain is: a pure function, logits in and logits out.

A stage takes float logits of shape (..., V) and returns the same shape in float32
or better. A removed token is -inf, at least one token stays, and the input is never
changed. `Stage.criterion` gives the number that the rule compared for each token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..errors import LogitsError
from . import validation
from .sorting import by_rank


@dataclass(frozen=True)
class Criterion:
    """What a stage compared: token i is removed when `values[i] relation threshold`."""

    quantity: str
    values: Tensor  # (V,)
    relation: str
    threshold: float


class Stage(ABC):
    """One step between a model's logits and the final ones.

    Attributes:
        name: what people call it.
        adjusts: True for penalties, biases and bans, which greedy decoding applies
            too.
        limits: for each field, the rule that its value must follow.
    """

    name: ClassVar[str]
    adjusts: ClassVar[bool] = False
    limits: ClassVar[dict[str, validation.Rule]] = {}

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

    def criterion(self, logits: Tensor) -> Criterion | None:
        """Return what the rule compares for logits (V,); None if it removes nothing."""
        return None

    def evidence(self, logits: Tensor) -> dict[str, float]:
        """Return numbers that it took from logits (V,) or earlier steps, by name."""
        return {}


def check_logits(logits: Tensor, where: str = "") -> None:
    """Refuse logits from which no distribution can be made.

    Args:
        logits: shape (..., V).
        where: what the message begins with.

    Raises:
        LogitsError: NaN or +inf (how many, where first), or no token allowed.
    """
    if not isinstance(logits, Tensor):
        raise LogitsError(
            f"{where}logits must be a float tensor, got {validation.shown(logits)}"
        )
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
    if not isinstance(logits, Tensor):
        raise LogitsError(f"logits must be a tensor, got {validation.shown(logits)}")
    logits = logits.detach()
    if logits.dtype in (torch.float32, torch.float64):
        return logits
    return logits.float()
