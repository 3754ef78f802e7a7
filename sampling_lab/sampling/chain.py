"""A chain of stages and its ledger: what happened to every token, and where."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..errors import ParameterError
from .ledger import Ledger, StageRecord
from .one_thread import one_thread
from .stage import Stage, as_float, check_logits


@dataclass(frozen=True)
class Chain:
    """An ordered tuple of stages, applied from left to right.

    >>> import torch
    >>> from sampling_lab import TopK
    >>> Chain((TopK(1),))(torch.tensor([1.0, 2.0])).tolist()
    [-inf, 2.0]
    """

    stages: tuple[Stage, ...] = ()

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the final logits, shape (..., V), float32 or better.

        Raises:
            LogitsError: NaN or +inf among the logits, or nothing allowed.
        """
        return self._trace(logits)[-1]

    def probs(self, logits: Tensor) -> Tensor:
        """Return the final probabilities, shape (..., V); rows sum to 1."""
        return self(logits).softmax(-1)

    def ledger(self, logits: Tensor) -> Ledger:
        """Return the ledger of one row of logits, shape (V,)."""
        if isinstance(logits, Tensor) and logits.dim() != 1:
            raise ParameterError(
                f"a ledger takes one row, shape (V,), got {tuple(logits.shape)}; "
                "pass logits[i]"
            )
        with one_thread():
            first, *after = self._trace(logits)
        records, before = [], first
        for stage, result in zip(self.stages, after, strict=True):
            records.append(StageRecord(stage, before, result))
            before = result
        return Ledger(first, tuple(records))

    def _trace(self, logits: Tensor) -> list[Tensor]:
        """Return the logits before the first stage and after each one."""
        check_logits(logits)
        trace = [
            as_float(logits).clone()
        ]  # so that later changes of the input do not matter
        for stage in self.stages:
            trace.append(stage(trace[-1]))
            if stage.adjusts:  # a bias can overflow, and bans can remove all
                check_logits(trace[-1], f"after {stage.name}: ")
        return trace
