"""The ledger of one step: what every stage did to every token, and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .arguments import checked
from .stage import Criterion, Stage
from .validation import rule_error


class Distribution:
    """Logits (V,) with lazily computed statistics."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    @cached_property
    def probs(self) -> Tensor:
        """Probabilities, shape (V,)."""
        return self.logits.softmax(-1)

    @cached_property
    def kept(self) -> Tensor:
        """Boolean, shape (V,): the tokens that are still possible."""
        return self.logits > -torch.inf

    @cached_property
    def kept_count(self) -> int:
        """How many tokens are still possible."""
        return int(np.count_nonzero(self.logits.cpu().numpy() > -np.inf))

    @cached_property
    def entropy(self) -> float:
        """Entropy in bits."""
        probs = self.probs.cpu().numpy()
        probs = probs[probs > 0]
        bits: np.float64 = (probs * np.log2(probs)).sum(dtype=np.float64)
        return abs(float(bits))

    @property
    def effective_count(self) -> float:
        """2 ** entropy: the number of equally likely tokens with this entropy."""
        return float(2.0**self.entropy)


@dataclass(frozen=True, eq=False)
class StageRecord:
    """One stage with the logits (V,) before and after it."""

    stage: Stage
    before: Tensor
    logits: Tensor

    @cached_property
    def after(self) -> Distribution:
        """The distribution after this stage."""
        return Distribution(self.logits)

    @cached_property
    def removed(self) -> Tensor:
        """Boolean, shape (V,): the tokens that this stage removed."""
        return (self.before > -torch.inf) & ~self.after.kept

    @cached_property
    def criterion(self) -> Criterion | None:
        """What the stage compared, for every token."""
        return self.stage.criterion(self.before)

    @cached_property
    def evidence(self) -> dict[str, float]:
        """The numbers that the stage took from the logits or the steps before."""
        return self.stage.evidence(self.before)

    def shift(self, token_id: int) -> tuple[float, float] | None:
        """Return a token's logit before and after, where the stage adjusted it."""
        before, after = self.before[token_id].item(), self.logits[token_id].item()
        if not self.stage.adjusts or before == after or after == -torch.inf:
            return None
        return before, after


def _is_record(value: object) -> bool:
    return isinstance(value, StageRecord)


class Ledger:
    """What a chain did to one row of logits.

    *Raw* is the softmax of the model's logits, *final* is after the whole chain.

    Attributes:
        raw: the distribution before the first stage.
        final: the distribution after the last one.
        stages: a `StageRecord` for each stage, in order.
    """

    def __init__(self, logits: Tensor, stages: tuple[StageRecord, ...]) -> None:
        if not (isinstance(stages, tuple) and all(map(_is_record, stages))):
            raise rule_error("stages", "a tuple of StageRecord", stages)
        self.raw = Distribution(logits)
        self.stages = stages
        self.final = stages[-1].after if stages else self.raw

    @property
    def raw_logits(self) -> Tensor:
        """The model's logits, shape (V,)."""
        return self.raw.logits

    @property
    def raw_probs(self) -> Tensor:
        """Raw probabilities, shape (V,)."""
        return self.raw.probs

    @property
    def final_probs(self) -> Tensor:
        """Final probabilities, shape (V,); 0 for a removed token."""
        return self.final.probs

    @property
    def kept(self) -> Tensor:
        """Boolean, shape (V,): the tokens that the draw can choose."""
        return self.final.kept

    @property
    def kept_count(self) -> int:
        """How many tokens the draw can choose from."""
        return self.final.kept_count

    @cached_property
    def kept_mass(self) -> float:
        """The kept tokens' raw probability together, in [0, 1]."""
        return min(1.0, self.raw_probs[self.kept].sum(dtype=torch.float64).item())

    @property
    def entropy(self) -> float:
        """Entropy of the final distribution, in bits."""
        return self.final.entropy

    @property
    def effective_count(self) -> float:
        """2 ** entropy of the final distribution."""
        return self.final.effective_count

    @property
    def evidence(self) -> dict[str, dict[str, float]]:
        """What stages took from the logits or the steps before, by stage."""
        found = {record.stage.name: record.evidence for record in self.stages}
        return {name: numbers for name, numbers in found.items() if numbers}

    @checked
    def rank(self, token_id: int) -> int:
        """Return the rank by raw logit, 1 for the highest, equal ones by id."""
        logits = self.raw_logits.cpu().numpy()
        higher = np.count_nonzero(logits > logits[token_id])
        tied_before = np.count_nonzero(logits[:token_id] == logits[token_id])
        return int(higher + tied_before) + 1

    @checked
    def top(self, n: int) -> list[int]:
        """Return the ids of the n highest raw logits, equal ones by id."""
        logits, n = self.raw_logits, min(n, self.raw_logits.shape[-1])
        nth = logits.topk(n).values[-1]
        candidates = (logits >= nth).nonzero().squeeze(-1)  # ids, ascending
        order = logits[candidates].sort(descending=True, stable=True).indices
        return candidates[order[:n]].tolist()

    @checked
    def removed_by(self, token_id: int) -> StageRecord | None:
        """Return the record of the stage that removed a token; None if it is kept."""
        if self.kept[token_id]:
            return None
        records = (record for record in self.stages if record.removed[token_id])
        return next(records, None)

    @checked
    def why(self, token_id: int) -> str:
        """Return one sentence about a token: its rank and why it was kept or removed.

        >>> from sampling_lab import Chain, MinP
        >>> ledger = Chain((MinP(0.5),)).ledger(torch.tensor([2.0, 1.0]))
        >>> ledger.why(1)
        'rank 2: removed by min-p, probability 0.269 < 0.366'
        """
        record, rank = self.removed_by(token_id), self.rank(token_id)
        shifts = "".join(f"; {shift}" for shift in self._shifts(token_id))
        if record is not None:
            because = _because(record, token_id)
            return f"rank {rank}: removed by {record.stage.name}{because}{shifts}"
        if self.final.logits[token_id] == -torch.inf:
            return f"rank {rank}: its logit is -inf in the model itself"
        raw, final = self.raw_probs[token_id], self.final_probs[token_id]
        return f"rank {rank}: kept, raw {raw:.3f}, final {final:.3f}{shifts}"

    def _shifts(self, token_id: int) -> list[str]:
        """Return how adjustments changed a token's logit, in words."""
        return [
            f"{record.stage.name}: logit {' → '.join(_apart(*shift))}"
            for record in self.stages
            if (shift := record.shift(token_id))
        ]

    @checked
    def table(self, n: int = 20) -> list[dict[str, Any]]:
        """Return rows for the n highest raw logits; removed tokens are marked."""
        return [self._row(token_id) for token_id in self.top(n)]

    def _row(self, token_id: int) -> dict[str, Any]:
        record = self.removed_by(token_id)
        return {
            "token_id": token_id,
            "rank": self.rank(token_id),
            "logit": _finite(self.raw_logits[token_id]),
            "raw": self.raw_probs[token_id].item(),
            "final": self.final_probs[token_id].item(),
            "removed_by": record.stage.name if record else None,
            "shifts": self._shifts(token_id),
        }


def _because(record: StageRecord, token_id: int) -> str:
    criterion = record.criterion
    if criterion is None:
        return ""
    value, threshold = _apart(criterion.values[token_id].item(), criterion.threshold)
    return f", {criterion.quantity} {value} {criterion.relation} {threshold}"


def _apart(value: float, threshold: float) -> tuple[str, str]:
    """Write two numbers with three digits, or with as many as make them differ."""
    if float(value).is_integer() and threshold.is_integer():
        return f"{value:.0f}", f"{threshold:.0f}"
    for digits in range(3, 18):
        texts = f"{value:.{digits}g}", f"{threshold:.{digits}g}"
        if texts[0] != texts[1] or value == threshold:
            break
    return texts


def _finite(value: Tensor) -> float | None:
    number = value.item()
    return number if number > float("-inf") else None
