"""What it takes for a token to be kept, and for a seed to choose it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.draws import DrawResult
from ..sampling.params import SamplingParams
from .noise import NO_HISTORY, History, StepNoise, noise_of_step
from .temperature_map import temperature_map

_P_STEP = 1e-9


@dataclass(frozen=True)
class WhatItTakes:
    """What it would take for one seed to choose a token.

    Attributes:
        token_id: the token.
        intervals: the temperatures that choose it, all else as it is.
        smallest_k: the smallest top-k that keeps it, all else as it is; None if
            another stage removes it whatever k is.
        smallest_p: likewise the smallest top-p.
        recipes: settings with this seed and dialect that choose it, each tried out:
            by temperature alone, with a top-k, with a top-p; as many as there are.
        rival: where no setting of these does, a token that is always before it.
    """

    token_id: int
    intervals: tuple[tuple[float, float], ...]
    smallest_k: int | None
    smallest_p: float | None
    recipes: tuple[SamplingParams, ...]
    rival: int | None

    def sentence(self, token_text: Callable[[int], str] = str) -> str:
        """Return the answer in words."""
        token = token_text(self.token_id)
        if self.intervals:
            spans = " or ".join(f"{a:.3g} to {b:.3g}" for a, b in self.intervals)
            return f"{token}: chosen at temperature {spans}, all else as it is"
        if self.recipes:
            return f"{token}: chosen with {self.recipes[0].describe()}"
        if self.rival is not None:
            return (
                f"{token}: never at this seed; {token_text(self.rival)} has a higher "
                "logit and the better luck, so it is before it at every temperature, "
                "top-k and top-p"
            )
        return f"{token}: never at this seed in this range of temperatures"


def smallest_k(
    logits: Tensor,
    token_id: int,
    params: SamplingParams | None = None,
    *,
    history: History = NO_HISTORY,
) -> int | None:
    """Return the smallest top-k with which the chain keeps a token.

    Found by applying the chain, so the dialect's order and tie rule count.

    Args:
        logits: the model's logits, shape (V,).
        token_id: the token.
        params: everything but top_k; None is `SamplingParams()`.
        history: what was said before; counts where `params.needs_history`.

    Returns:
        k in [1, V], or None if another stage removes the token whatever k is.

    Example:
        >>> smallest_k(torch.tensor([2.0, 1.0, 0.5]), 1)
        2
    """
    params = params or SamplingParams()

    def keeps(k: int) -> bool:
        return _keeps(params.replace(top_k=k), logits, token_id, history)

    low, high = 0, logits.shape[-1]
    if not keeps(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def smallest_p(
    logits: Tensor,
    token_id: int,
    params: SamplingParams | None = None,
    *,
    history: History = NO_HISTORY,
) -> float | None:
    """Return the smallest top-p with which the chain keeps a token, to 1e-9.

    Found by applying the chain: at the value the token is kept, 1e-9 below it is
    not. The most likely token is kept by every p.

    Args:
        logits: the model's logits, shape (V,).
        token_id: the token.
        params: everything but top_p; None is `SamplingParams()`.
        history: what was said before; counts where `params.needs_history`.

    Returns:
        p in (0, 1], or None if another stage removes the token whatever p is.

    Example:
        >>> round(smallest_p(torch.tensor([2.0, 1.0, 0.5]), 1), 3)
        0.629
    """
    params = params or SamplingParams()

    def keeps(p: float) -> bool:
        return _keeps(params.replace(top_p=p), logits, token_id, history)

    low, high = 0.0, 1.0
    if not keeps(high):
        return None
    while high - low > _P_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


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
    """Return the settings at which one seed would choose a token, if there are any.

    In a race that settles it: a token with a higher logit and a smaller q is kept
    and ahead at every temperature, top-k, top-p and min-p. Without such a rival a
    top-k just wide enough for the token lets it win once temperature is high enough.

    Args:
        logits: the model's logits of that step, shape (V,).
        params: the settings as they are.
        token_id: the token.
        step: how many tokens the seed has drawn before, as in `temperature_map`.
        drawn: what a generation drew at that step, instead of `step`.
        history: what was said before; counts where `params.needs_history`.
        low: the lowest temperature to consider.
        high: the highest.
    """
    step = history.step if step is None else step
    luck = noise_of_step(logits, params, step=step, drawn=drawn)

    def intervals(settings: SamplingParams) -> tuple[tuple[float, float], ...]:
        found = temperature_map(
            logits,
            settings,
            step=step,
            drawn=drawn,
            history=history,
            low=low,
            high=high,
        )
        return tuple((a, b) for a, b, winner in found.segments if winner == token_id)

    trial = _Trial(logits, params, token_id, history, luck, intervals)
    recipes = tuple(trial.recipes())
    return WhatItTakes(
        token_id=token_id,
        intervals=intervals(params),
        smallest_k=smallest_k(logits, token_id, params, history=history),
        smallest_p=smallest_p(logits, token_id, params, history=history),
        recipes=recipes,
        rival=None if recipes else trial.rival(),
    )


def _keeps(
    params: SamplingParams, logits: Tensor, token_id: int, history: History
) -> bool:
    return bool(params.chain(*history)(logits)[token_id] > -torch.inf)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Settings tried out for one token at one step."""

    logits: Tensor
    params: SamplingParams
    token_id: int
    history: History
    luck: StepNoise
    intervals: Callable[[SamplingParams], tuple[tuple[float, float], ...]]

    @property
    def neutral(self) -> SamplingParams:
        """The settings without temperature and the cuts that people turn."""
        off = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}
        return self.params.replace(**off)

    def recipes(self) -> Iterator[SamplingParams]:
        """Yield settings that choose the token: temperature alone, top-k, top-p."""
        k = smallest_k(self.logits, self.token_id, self.neutral, history=self.history)
        if k is None:
            return
        with_k = self.neutral.replace(top_k=k)
        yield from filter(self._chooses, self._warmed(self.neutral))
        for recipe in filter(self._chooses, self._warmed(with_k)):
            yield recipe
            with_p = recipe.replace(top_k=None)
            with_p = with_p.replace(top_p=self._short_p(with_p))
            if self._chooses(with_p):
                yield with_p

    def rival(self) -> int | None:
        """Return the luckiest token of a race with a higher logit, if luckier."""
        q = self.luck.exponentials
        if q is None or any(map(self.params.is_on, _CUTS_FROM_ABOVE)):
            return None
        logits = self.neutral.chain(*self.history)(self.logits).cpu()
        rivals = q.masked_fill(logits <= logits[self.token_id], torch.inf)
        rival = int(rivals.argmin())
        return rival if rivals[rival] < q[self.token_id] else None

    def _warmed(self, params: SamplingParams) -> Iterator[SamplingParams]:
        """Yield settings with the first temperature, if any, that chooses it."""
        try:
            intervals = self.intervals(params)
        except ParameterError:  # a wheel with too many tokens to search
            return
        for low, high in intervals[:1]:
            yield params.replace(temperature=_short_between(low, high))

    def _chooses(self, params: SamplingParams) -> bool:
        final = params.chain(*self.history)(self.logits)
        return self.luck.choose(final) == self.token_id

    def _short_p(self, params: SamplingParams) -> float | None:
        """Return the smallest top-p, rounded up as far as nothing more is let in."""
        p = smallest_p(self.logits, self.token_id, params, history=self.history)
        if p is None:
            return None
        for digits in range(2, 7):
            rounded = min(1.0, round(p + 0.5 * 10**-digits, digits))
            if self._count(params.replace(top_p=rounded)) == self._count(
                params.replace(top_p=p)
            ):
                return rounded
        return p

    def _count(self, params: SamplingParams) -> int:
        return int((params.chain(*self.history)(self.logits) > -torch.inf).sum())


_CUTS_FROM_ABOVE = ("typical_p", "xtc_probability")
"""These may remove the most likely tokens, so that no rival is for ever."""


def _short_between(low: float, high: float) -> float:
    """Return a number of few digits inside an interval, near its geometric middle."""
    middle = math.sqrt(low * high)
    candidates = (round(middle, digits) for digits in range(1, 8))
    return next((c for c in candidates if low < c < high), middle)
