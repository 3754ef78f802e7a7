"""The settings that keep a token, and those at which a seed would choose it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.arguments import checked
from ..sampling.draws import DrawResult
from ..sampling.history import NO_HISTORY, History
from ..sampling.params import SamplingParams
from .noise import StepNoise, noise_of_step
from .temperature_map import temperature_map

_P_STEPS = 2**30  # so that top-p is found to less than 1e-9


@dataclass(frozen=True)
class WhatItTakes:
    """What it would take for one seed to choose a token.

    Attributes:
        token_id: the token.
        intervals: the temperatures at which it is chosen, all else unchanged.
        smallest_k: the smallest top-k that keeps it, all else unchanged; None if
            another stage removes it at any k.
        smallest_p: likewise the smallest top-p.
        settings: up to three settings with this seed and dialect that choose it, each
            tried out: by temperature alone, with a top-k, with a top-p.
        rival: if no such settings exist, a token that beats it under all of them.
    """

    token_id: int
    intervals: tuple[tuple[float, float], ...]
    smallest_k: int | None
    smallest_p: float | None
    settings: tuple[SamplingParams, ...]
    rival: int | None

    def sentence(self, token_text: Callable[[int], str] = str) -> str:
        """Return the answer in words."""
        token = token_text(self.token_id)
        if self.intervals:
            spans = " or ".join(f"{a:.3g} to {b:.3g}" for a, b in self.intervals)
            return f"{token}: chosen at temperature {spans}, all else as it is"
        if self.settings:
            return f"{token}: chosen with {self.settings[0].describe()}"
        if self.rival is not None:
            return (
                f"{token}: never at this seed; {token_text(self.rival)} has a higher "
                "logit and a smaller random number q, so it wins at every temperature, "
                "top-k and top-p"
            )
        return f"{token}: never at this seed in this range of temperatures"


@checked
def smallest_k(
    logits: Tensor,
    token_id: int,
    params: SamplingParams | None = None,
    *,
    history: History = NO_HISTORY,
) -> int | None:
    """Return the smallest top-k with which the chain keeps a token.

    Found by applying the chain, so the dialect's order and tie rule are respected.

    Args:
        logits: the model's logits, shape (V,).
        token_id: the token.
        params: everything but top_k; None is `SamplingParams()`.
        history: the tokens before; needed where `params.needs_history`.

    Returns:
        k in [1, V], or None if another stage removes the token at any k.

    Example:
        >>> smallest_k(torch.tensor([2.0, 1.0, 0.5]), 1)
        2
    """
    params = params or SamplingParams()

    def keeps(k: int) -> bool:
        return bool(_kept(params.replace(top_k=k), logits, history)[token_id])

    return _smallest(keeps, logits.shape[-1])


@checked
def smallest_p(
    logits: Tensor,
    token_id: int,
    params: SamplingParams | None = None,
    *,
    history: History = NO_HISTORY,
) -> float | None:
    """Return the smallest top-p with which the chain keeps a token, to 1e-9.

    Found by applying the chain: the token is kept at this value and not at 1e-9 less.
    The most likely token is kept by every p.

    The arguments are those of `smallest_k`; what `params` says of top_p is not used.

    Returns:
        p in (0, 1], or None if another stage removes the token at any p.

    Example:
        >>> round(smallest_p(torch.tensor([2.0, 1.0, 0.5]), 1), 3)
        0.629
    """
    params = params or SamplingParams()

    def keeps(n: int) -> bool:
        return bool(
            _kept(params.replace(top_p=n / _P_STEPS), logits, history)[token_id]
        )

    n = _smallest(keeps, _P_STEPS)
    return None if n is None else n / _P_STEPS


def _smallest(keeps: Callable[[int], bool], high: int) -> int | None:
    """Return the smallest number from 1 to `high` that keeps a token, by bisection."""
    if not keeps(high):
        return None
    return 1 + bisect_left(range(1, high), True, key=keeps)


def _kept(params: SamplingParams, logits: Tensor, history: History) -> Tensor:
    """Return which tokens the chain keeps, boolean, shape (V,)."""
    return params.chain(*history)(logits) > -torch.inf


@checked
def what_would_it_take(
    logits: Tensor,
    params: SamplingParams,
    token_id: int,
    *,
    step: int | None = None,
    drawn: DrawResult | None = None,
    history: History = NO_HISTORY,
    low: float = 0.05,
    high: float = 5.0,
) -> WhatItTakes:
    """Return the settings at which one seed would choose a token, if any do.

    For a race the answer is complete: a token with a higher logit and a smaller q is
    kept and ahead at every temperature, top-k, top-p and min-p. Without such a rival,
    the smallest top-k that keeps the token lets it win at a high enough temperature.

    `params` are the current settings; the other arguments are those of
    `temperature_map`.
    """
    step = history.step if step is None else step
    noise = noise_of_step(logits, params, step=step, drawn=drawn)
    map_of_step = partial(temperature_map, step=step, drawn=drawn, history=history)

    def intervals(settings: SamplingParams) -> tuple[tuple[float, float], ...]:
        segments = map_of_step(logits, settings, low=low, high=high).segments
        return tuple((a, b) for a, b, winner in segments if winner == token_id)

    search = _Search(logits, params, token_id, history, noise, intervals)
    settings = tuple(search.settings())
    return WhatItTakes(
        token_id=token_id,
        intervals=intervals(params),
        smallest_k=smallest_k(logits, token_id, params, history=history),
        smallest_p=smallest_p(logits, token_id, params, history=history),
        settings=settings,
        rival=None if settings else search.rival(),
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """A search for settings at which one step's numbers choose a token."""

    logits: Tensor
    params: SamplingParams
    token_id: int
    history: History
    noise: StepNoise
    intervals: Callable[[SamplingParams], tuple[tuple[float, float], ...]]

    @property
    def neutral(self) -> SamplingParams:
        """The settings without temperature, top-k, top-p and min-p."""
        return self.params.replace(temperature=1.0, top_k=None, top_p=None, min_p=None)

    def settings(self) -> Iterator[SamplingParams]:
        """Yield settings that choose the token: temperature alone, top-k, top-p."""
        k = smallest_k(self.logits, self.token_id, self.neutral, history=self.history)
        if k is None:
            return
        yield from self._with_temperature(self.neutral)
        for with_k in self._with_temperature(self.neutral.replace(top_k=k)):
            yield with_k
            with_p = with_k.replace(top_k=None)
            with_p = with_p.replace(top_p=self._short_p(with_p))
            if self._chooses(with_p):
                yield with_p

    def rival(self) -> int | None:
        """Return the smallest q's token among those that always beat this one."""
        q = self.noise.exponentials
        if q is None or any(map(self.params.is_on, _REMOVE_LIKELY)):
            return None
        logits = self.neutral.chain(*self.history)(self.logits).cpu()
        rivals = q.masked_fill(logits <= logits[self.token_id], torch.inf)
        rival = int(rivals.argmin())
        return rival if rivals[rival] < q[self.token_id] else None

    def _with_temperature(self, params: SamplingParams) -> Iterator[SamplingParams]:
        """Yield settings with a temperature of the first interval that chooses it."""
        try:
            intervals = self.intervals(params)
        except ParameterError:  # too many tokens on a wheel to search
            return
        for low, high in intervals[:1]:
            warm = params.replace(temperature=_short_between(low, high))
            if self._chooses(warm):
                yield warm

    def _chooses(self, params: SamplingParams) -> bool:
        final = params.chain(*self.history)(self.logits)
        return self.noise.choose(final) == self.token_id

    def _short_p(self, params: SamplingParams) -> float | None:
        """Return the smallest top-p, rounded up while the same tokens are kept."""
        p = smallest_p(self.logits, self.token_id, params, history=self.history)
        if p is None:
            return None
        rounded = (min(1.0, round(p + 0.5 * 10**-n, n)) for n in range(2, 7))
        count = self._count(params.replace(top_p=p))
        counts = ((r, self._count(params.replace(top_p=r))) for r in rounded)
        return next((r for r, kept in counts if kept == count), p)

    def _count(self, params: SamplingParams) -> int:
        return int(_kept(params, self.logits, self.history).sum())


_REMOVE_LIKELY = ("typical_p", "xtc_probability")
"""These may remove the most likely tokens, so no rival is certain to be kept."""


def _short_between(low: float, high: float) -> float:
    """Return a number of few digits inside an interval, near its geometric middle."""
    middle = math.sqrt(low * high)
    candidates = (round(middle, digits) for digits in range(1, 8))
    return next((c for c in candidates if low < c < high), middle)
