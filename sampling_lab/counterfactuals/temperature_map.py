"""The token that one seed chooses at every temperature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.arguments import check_range, checked
from ..sampling.chain import Chain
from ..sampling.cutoffs import MinP
from ..sampling.draws import DrawResult
from ..sampling.history import NO_HISTORY, History
from ..sampling.params import SamplingParams
from ..sampling.stage import Stage
from ..sampling.temperature import DynamicTemperature, Temperature
from ..sampling.truncation import TopK, TopNSigma, TopP
from .envelope import Line, Segment, contenders, upper_envelope
from .noise import StepNoise, noise_of_step

_PRECISION = 1e-7
"""Bisection ends when an interval is this narrow, relative to its temperature."""

_GRID = 128
_LARGEST_WHEEL, _LARGEST_REDUCED_WHEEL = 256, 512
"""Tokens that a wheel may have to choose from: the choice changes up to once for each,
and a search among few tokens is faster than one in a whole vocabulary."""


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


@checked
def temperature_map(
    logits: Tensor,
    params: SamplingParams,
    *,
    step: int | None = None,
    drawn: DrawResult | None = None,
    noise: StepNoise | None = None,
    history: History = NO_HISTORY,
    low: float = 0.05,
    high: float = 5.0,
) -> TemperatureMap:
    """Return which token one step's random numbers choose at every temperature.

    Exact for a race (the Gumbel-max trick) where what the chain keeps does not depend
    on temperature. A nucleus or min-p that comes after temperature keeps more as it
    rises; where that changes the choice is then found by bisection, and so are all
    choices of a wheel (the inverse CDF). Tokens that are removed at every temperature
    are left out of the search.

    Args:
        logits: the model's logits of that step, shape (V,).
        params: everything but the temperature, which is what varies.
        step: how many tokens the seed has drawn before; None is as many as the
            history says, 0 without one.
        drawn: what a generation drew at that step, instead of `step`.
        noise: the random numbers of that step where they are known, instead of both.
        history: the tokens before the step; counts where `params.needs_history`.
        low: the lowest temperature, > 0.
        high: the highest.

    Raises:
        ParameterError: an empty range, or a wheel of more than 256 tokens (512 where
            a top-k leaves no more than that to search).

    Example:
        >>> logits = torch.tensor([2.0, 1.0, 0.2, -1.0])
        >>> temperature_map(logits, SamplingParams(seed=1)).flips
        ()
    """
    check_range(low, high)
    if noise is None:
        step = history.step if step is None else step
        noise = noise_of_step(logits, params, step=step, drawn=drawn)
    before, temperature, later = _split(params, history)
    steady = before(logits).cpu()
    kept = _searched_ids(steady, later)
    if noise.exponentials is not None:
        noise = replace(noise, exponentials=noise.exponentials[kept])
    found = _Search(steady[kept], temperature, later, noise, low, high).run()
    ids = kept.tolist()  # the search knows the tokens by their places in it
    segments = (s._replace(token_id=ids[s.token_id]) for s in found.segments)
    return replace(found, segments=tuple(segments))


def _split(
    params: SamplingParams, history: History
) -> tuple[Chain, Temperature | DynamicTemperature, tuple[Stage, ...]]:
    """Return the chain before temperature, the temperature, and what follows.

    A top-k right after temperature counts as before it: dividing all logits by one
    number leaves their order. What follows are truncations, which know tokens by their
    logits alone, so tokens removed before can be left out; every dialect puts
    penalties and bans before temperature.
    """
    stages = list(params.replace(temperature=2.0).chain(*history).stages)
    at, temperature = next(
        (at, stage)
        for at, stage in enumerate(stages)
        if isinstance(stage, Temperature | DynamicTemperature)
    )
    del stages[at]
    if at < len(stages) and isinstance(stages[at], TopK):
        at += 1
    return Chain(tuple(stages[:at])), temperature, tuple(stages[at:])


def _searched_ids(logits: Tensor, later: Sequence[Stage]) -> Tensor:
    """Return the ids of the tokens to search among, ascending.

    Those that are removed already are left out, except where a later stage might cut
    through equal logits: the order in which torch sorts those depends on their number.
    """
    kept = (logits > -torch.inf).nonzero().squeeze(-1)
    has_ties = bool((logits[kept].sort().values.diff() == 0).any())
    return torch.arange(len(logits)) if later and has_ties else kept


@dataclass(frozen=True, eq=False)
class _Search:
    """Which token wins where, given the logits that temperature divides.

    Logits and random numbers are those of the tokens that are kept before temperature,
    shape (kept,); token ids are places among them.
    """

    logits: Tensor
    temperature: Temperature | DynamicTemperature
    later: tuple[Stage, ...]
    noise: StepNoise
    low: float
    high: float

    def run(self) -> TemperatureMap:
        """Search in the fastest way that is right for the stages after temperature."""
        moving = self._moving()
        is_nested = all(isinstance(stage, TopP | MinP | TopK) for stage in moving)
        if isinstance(self.temperature, DynamicTemperature):
            moving, is_nested = (self.temperature, *moving), False
        names = " and ".join(dict.fromkeys(stage.name for stage in moving))
        if not is_nested:
            grid = torch.logspace(math.log10(self.low), math.log10(self.high), _GRID)
            points = [self.low, *grid[1:-1].tolist(), self.high]
            return self._map(self._bisect(points), False, _unsure(names))
        if self.noise.exponentials is None:
            self._check_wheel()
            return self._map(self._bisect([self.low, self.high]), False, _WHEEL)
        kept = self._final(self.high) > -torch.inf  # no other temperature keeps more
        lines = contenders(self.logits, kept, self.noise.exponentials)
        if moving:
            return self._map(self._nested(lines), False, _searched(names))
        return self._map(upper_envelope(lines, self.low, self.high), True, _EXACT)

    def _moving(self) -> tuple[Stage, ...]:
        """Return the later stages from the first whose kept set moves with T."""
        stages = list(self.later)
        while stages and isinstance(stages[0], TopK | TopNSigma):
            stages.pop(0)
        return tuple(stages)

    def _final(self, temperature: float) -> Tensor:
        """Return the final logits (V,) at a temperature, by the chain itself."""
        scaled = replace(self.temperature, temperature=temperature)
        return Chain((scaled, *self.later))(self.logits)

    def _choose(self, temperature: float) -> int:
        return self.noise.choose(self._final(temperature))

    def _check_wheel(self) -> None:
        kept = int((self._final(self.high) > -torch.inf).sum())
        is_small = len(self.logits) <= _LARGEST_REDUCED_WHEEL
        if kept > _LARGEST_WHEEL and not is_small:
            raise ParameterError(
                f"the temperature map of a {self.noise.method} draw must have at most "
                f"{_LARGEST_WHEEL} tokens to choose from, got {kept}; set top_k, or "
                "choose a dialect that races"
            )

    def _nested(self, lines: list[Line]) -> Iterable[Segment]:
        """Search where what is kept grows with temperature, most likely first.

        If every winner among the tokens kept at the top of an interval is already
        kept at its bottom, it wins in between too. Other intervals are halved, so no
        change can be missed.
        """
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
