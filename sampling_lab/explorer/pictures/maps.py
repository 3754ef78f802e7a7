"""Temperature maps that follow a slider: remembered, and searched among few tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...counterfactuals import History, StepNoise, TemperatureMap, temperature_map
from ...sampling.chain import Chain
from ...sampling.draws import DrawResult
from ...sampling.params import SamplingParams
from .step_view import StepView

COLDEST, HOTTEST = 0.05, 5.0
"""The range of the maps."""


class Maps:
    """Find temperature maps; the last one is kept.

    The temperature is what a map is drawn over, so moving it finds the same map.
    """

    def __init__(self) -> None:
        self._known: tuple[_Question, TemperatureMap] | None = None

    def find(self, view: StepView, luck: StepNoise) -> TemperatureMap:
        """Return the map of a view's luck.

        Raises:
            ParameterError: a wheel of too many tokens; see `temperature_map`.
        """
        asked = _Question(
            view.ledger.raw_logits,
            view.params.replace(temperature=2.0),  # any but 1, which is no stage
            view.history,
            luck,
        )
        if self._known is None or not self._known[0].same_as(asked):
            self._known = (asked, asked.answer())
        return self._known[1]


@dataclass(frozen=True, eq=False)
class _Question:
    """All that a map depends on."""

    logits: Tensor
    params: SamplingParams
    history: History
    luck: StepNoise

    def same_as(self, other: _Question) -> bool:
        """Return whether the other has the same map."""
        mine, theirs = self.luck, other.luck
        return (
            (self.params, self.history) == (other.params, other.history)
            and (mine.method, mine.uniform) == (theirs.method, theirs.uniform)
            and _equal(self.logits, other.logits)
            and _equal(mine.exponentials, theirs.exponentials)
        )

    def answer(self) -> TemperatureMap:
        """Return the map, searched for among the tokens that can be chosen at all."""
        ids, asked = self._reduced()
        found = temperature_map(
            asked.logits,
            asked.params,
            drawn=_Replayed(asked.luck),
            history=asked.history,
            low=COLDEST,
            high=HOTTEST,
        )
        if ids is None:
            return found
        names = ids.tolist()
        segments = (s._replace(token_id=names[s.token_id]) for s in found.segments)
        return replace(found, segments=tuple(segments))

    def _reduced(self) -> tuple[Tensor | None, _Question]:
        """Leave out the tokens that are removed at every temperature.

        They are those that a stage before temperature removes, or a top-k right
        after it: dividing all logits leaves their order. Tens of tokens are searched
        a hundred times as fast as a vocabulary. What is left are cuts, which know
        tokens by their logits alone: every dialect adjusts before temperature.

        Returns:
            The ids that are left, ascending, with the same question about them
            alone; None with the question as it is where nothing can be left out.
        """
        names = self.params.stage_names
        at = names.index("temperature")
        done = list(range(at))
        if names[at + 1 : at + 2] == ("top_k",):
            done.append(at + 1)
        if not done:
            return None, self
        stages = self.params.chain(*self.history).stages
        logits = Chain(tuple(stages[index] for index in done))(self.logits).cpu()
        ids = (logits > -torch.inf).nonzero().squeeze(-1)  # ascending
        q = self.luck.exponentials
        luck = replace(self.luck, exponentials=None if q is None else q[ids])
        off = dict.fromkeys((names[index] for index in done), None)
        params = self.params.replace(**off)
        return ids, _Question(logits[ids], params, self.history, luck)


class _Replayed(DrawResult):
    """A draw whose luck is known, so that none has to be drawn again to find it."""

    def __init__(self, luck: StepNoise) -> None:
        super().__init__(-1, luck.method, luck.uniform)
        object.__setattr__(self, "_luck", luck)  # a `Drawn` is frozen

    def exponentials(self, probs: Tensor) -> Tensor:
        """Return every token's q of this race."""
        return self._luck.exponentials


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and one.equal(other)
