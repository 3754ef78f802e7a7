"""Which token one seed chooses at every temperature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.chain import Chain
from ..sampling.draws import DrawResult
from ..sampling.params import SamplingParams
from ..sampling.stage import Stage, Temperature
from ..sampling.truncation import MinP, TopK, TopNSigma, TopP
from .envelope import Line, Segment, contenders, upper_envelope
from .noise import NO_HISTORY, History, StepNoise, noise_of_step

_PRECISION = 1e-7
"""Bisection ends when an interval is this narrow, relative to its temperature."""

_GRID = 128
_LARGEST_WHEEL = 256


class Flip(NamedTuple):
    """A temperature at which the choice changes, upwards from `before` to `after`."""

    temperature: float
    before: int
    after: int


@dataclass(frozen=True)
class TemperatureMap:
    """The token that one seed chooses, for every temperature in a range.

    Attributes:
        segments: touching, from the lowest temperature to the highest.
        exact: whether the ends are formulas; otherwise they were searched for.
        note: one sentence on how they were found and what could be missed.
    """

    segments: tuple[Segment, ...]
    exact: bool
    note: str

    @property
    def flips(self) -> tuple[Flip, ...]:
        """The temperatures at which the choice changes."""
        return tuple(
            Flip(after.low, before.token_id, after.token_id)
            for before, after in pairwise(self.segments)
        )

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens that are chosen somewhere, in order of first appearance."""
        return tuple(dict.fromkeys(segment.token_id for segment in self.segments))

    def winner(self, temperature: float) -> int:
        """Return the token chosen at a temperature of the range."""
        for segment in self.segments:
            if segment.low <= temperature <= segment.high:
                return segment.token_id
        low, high = self.segments[0].low, self.segments[-1].high
        raise ParameterError(
            f"temperature must be in [{low:g}, {high:g}], the range of this map, "
            f"got {temperature!r}"
        )

    def table(self, token_text: Callable[[int], str] = str) -> list[dict[str, Any]]:
        """Return a row for each segment."""
        return [
            {
                "from": segment.low,
                "to": segment.high,
                "token_id": segment.token_id,
                "token": token_text(segment.token_id),
            }
            for segment in self.segments
        ]


def flips(logits: Tensor, params: SamplingParams, **where: Any) -> tuple[Flip, ...]:
    """Return the temperatures at which the choice changes; see `temperature_map`."""
    return temperature_map(logits, params, **where).flips


def temperature_map(
    logits: Tensor,
    params: SamplingParams,
    *,
    step: int | None = None,
    drawn: DrawResult | None = None,
    history: History = NO_HISTORY,
    low: float = 0.05,
    high: float = 5.0,
) -> TemperatureMap:
    """Return which token one step's luck chooses at every temperature.

    Exact for a race where what the chain keeps does not depend on temperature. A
    nucleus or min-p that comes after temperature keeps more as it rises; where that
    changes the choice is then found by bisection. So is all that a wheel chooses.

    Args:
        logits: the model's logits of that step, shape (V,).
        params: everything but the temperature, which is what varies.
        step: how many tokens the seed has drawn before; None is as many as the
            history says, 0 without one.
        drawn: what a generation drew at that step, instead of `step`.
        history: what was said before; counts where `params.needs_history`.
        low: the lowest temperature, > 0.
        high: the highest.

    Raises:
        ParameterError: an empty range, or a wheel of more than 256 tokens.

    Example:
        >>> logits = torch.tensor([2.0, 1.0, 0.2, -1.0])
        >>> temperature_map(logits, SamplingParams(seed=1)).flips
        ()
    """
    _check_range(low, high)
    step = history.step if step is None else step
    luck = noise_of_step(logits, params, step=step, drawn=drawn)
    steady, stage, later = _split(params, history)
    search = _Search(steady(logits).cpu(), stage, later, luck, low, high)
    return search.run()


def _check_range(low: float, high: float) -> None:
    if not 0 < low < high < math.inf:
        raise ParameterError(f"low and high must be 0 < low < high, got {low}, {high}")


def _split(
    params: SamplingParams, history: History
) -> tuple[Chain, Temperature, tuple[Stage, ...]]:
    """Return the chain before temperature, the temperature, and what follows."""
    stages = params.replace(temperature=2.0).chain(*history).stages
    kinds = [isinstance(stage, Temperature) for stage in stages]
    at = kinds.index(True)
    return Chain(stages[:at]), stages[at], stages[at + 1 :]


@dataclass(frozen=True, eq=False)
class _Search:
    """One question: who wins where, given logits (V,) as temperature finds them."""

    logits: Tensor
    temperature: Temperature
    later: tuple[Stage, ...]
    luck: StepNoise
    low: float
    high: float

    def run(self) -> TemperatureMap:
        """Take the cheapest way that is right for the stages after temperature."""
        moving = self._moving()
        is_nested = all(isinstance(stage, TopP | MinP | TopK) for stage in moving)
        names = " and ".join(dict.fromkeys(stage.name for stage in moving))
        if not is_nested:
            grid = torch.logspace(math.log10(self.low), math.log10(self.high), _GRID)
            points = [self.low, *grid[1:-1].tolist(), self.high]
            return self._map(self._bisect(points), False, _unsure(names))
        if self.luck.exponentials is None:
            self._check_wheel()
            return self._map(self._bisect([self.low, self.high]), False, _WHEEL)
        if moving:
            return self._map(self._nested(), False, _searched(names))
        lines = self._contenders()
        return self._map(upper_envelope(lines, self.low, self.high), True, _EXACT)

    def _moving(self) -> tuple[Stage, ...]:
        """Return the later stages from the first whose kept set moves with T."""
        stages = list(self.later)
        while stages and isinstance(stages[0], TopK | TopNSigma):
            stages.pop(0)
        return tuple(stages)

    def _final(self, temperature: float) -> Tensor:
        """Return the final logits (V,) at a temperature, by the chain itself."""
        scaled = Temperature(temperature, shifted=self.temperature.shifted)
        return Chain((scaled, *self.later))(self.logits)

    def _choose(self, temperature: float) -> int:
        return self.luck.choose(self._final(temperature))

    def _contenders(self) -> list[Line]:
        kept = self._final(self.high) > -torch.inf  # at no temperature are there more
        return contenders(self.logits, kept, self.luck.exponentials)

    def _check_wheel(self) -> None:
        kept = int((self._final(self.high) > -torch.inf).sum())
        if kept > _LARGEST_WHEEL:
            raise ParameterError(
                f"the temperature map of a {self.luck.method} draw must have at most "
                f"{_LARGEST_WHEEL} tokens to choose from, got {kept}; set top_k, or "
                "choose a dialect that races"
            )

    def _nested(self) -> Iterable[Segment]:
        """Search where what is kept grows with temperature, most likely first.

        If every winner among the tokens kept at the top of an interval is already
        kept at its bottom, it wins in between too, whatever is kept there. Other
        intervals are halved. So no change can be missed.
        """
        lines = self._contenders()
        ids = torch.tensor([line.token_id for line in lines])

        def kept_at(temperature: float) -> list[Line]:
            kept = self._final(temperature)[ids] > -torch.inf
            return [line for line, stays in zip(lines, kept, strict=True) if stays]

        def solve(
            low: float, at_low: list[Line], high: float, at_high: list[Line]
        ) -> list[Segment]:
            segments = upper_envelope(at_high, low, high)
            known = {line.token_id for line in at_low}
            if _is_narrow(low, high) or known.issuperset(s.token_id for s in segments):
                return segments
            middle = math.sqrt(low * high)
            at_middle = kept_at(middle)
            lower = solve(low, at_low, middle, at_middle)
            return lower + solve(middle, at_middle, high, at_high)

        return solve(self.low, kept_at(self.low), self.high, kept_at(self.high))

    def _bisect(self, points: Sequence[float]) -> Iterable[Segment]:
        """Search between neighbouring points that choose different tokens."""

        def solve(low: float, first: int, high: float, last: int) -> list[Segment]:
            if first == last:
                return [Segment(low, high, first)]
            middle = math.sqrt(low * high)
            if _is_narrow(low, high):
                return [Segment(low, middle, first), Segment(middle, high, last)]
            chosen = self._choose(middle)
            lower = solve(low, first, middle, chosen)
            return lower + solve(middle, chosen, high, last)

        ends = [(point, self._choose(point)) for point in points]
        return [s for a, b in pairwise(ends) for s in solve(*a, *b)]

    def _map(
        self, segments: Iterable[Segment], exact: bool, note: str
    ) -> TemperatureMap:
        merged: list[Segment] = []
        for segment in segments:
            if merged and merged[-1].token_id == segment.token_id:
                segment = merged.pop()._replace(high=segment.high)
            merged.append(segment)
        return TemperatureMap(tuple(merged), exact, note)


_EXACT = "exact: the upper envelope of the lines logit / T - log q"
_WHEEL = (
    "the slices' ends move with temperature; where one passes the number is found by "
    f"bisection to {_PRECISION:g} of T, and none is missed"
)


def _searched(names: str) -> str:
    return (
        f"as temperature rises more is kept by {names} after it; where that changes "
        f"the choice is found by bisection to {_PRECISION:g} of T, and none is missed"
    )


def _unsure(names: str) -> str:
    return (
        f"what {names} keeps may come and go with temperature; changes are found at "
        f"{_GRID} temperatures and by bisection between them, and a token chosen only "
        "between two of them is missed"
    )


def _is_narrow(low: float, high: float) -> bool:
    return high - low <= _PRECISION * low
