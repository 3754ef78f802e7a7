"""What it takes for a token to be kept, and for a seed to choose it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..draws import Drawn
from ..errors import ParameterError
from ..params import SamplingParams
from .noise import Luck, luck_of
from .temperature_map import TemperatureMap, temperature_map

_P_STEP = 1e-9


@dataclass(frozen=True)
class Reach:
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
    logits: Tensor, token_id: int, params: SamplingParams | None = None
) -> int | None:
    """Return the smallest top-k with which the chain keeps a token.

    Found by applying the chain, so the dialect's order and tie rule count.

    Args:
        logits: the model's logits, shape (V,).
        token_id: the token.
        params: everything but top_k; None is `SamplingParams()`.

    Returns:
        k in [1, V], or None if another stage removes the token whatever k is.

    Example:
        >>> smallest_k(torch.tensor([2.0, 1.0, 0.5]), 1)
        2
    """
    params = params or SamplingParams()

    def keeps(k: int) -> bool:
        return _keeps(params.replace(top_k=k), logits, token_id)

    low, high = 0, logits.shape[-1]
    if not keeps(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def smallest_p(
    logits: Tensor, token_id: int, params: SamplingParams | None = None
) -> float | None:
    """Return the smallest top-p with which the chain keeps a token, to 1e-9.

    Found by applying the chain: at the value the token is kept, 1e-9 below it is
    not. The most likely token is kept by every p.

    Args:
        logits: the model's logits, shape (V,).
        token_id: the token.
        params: everything but top_p; None is `SamplingParams()`.

    Returns:
        p in (0, 1], or None if another stage removes the token whatever p is.

    Example:
        >>> round(smallest_p(torch.tensor([2.0, 1.0, 0.5]), 1), 3)
        0.629
    """
    params = params or SamplingParams()

    def keeps(p: float) -> bool:
        return _keeps(params.replace(top_p=p), logits, token_id)

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
    step: int = 0,
    drawn: Drawn | None = None,
    low: float = 0.05,
    high: float = 5.0,
) -> Reach:
    """Return the settings at which one seed would choose a token, if there are any.

    In a race that settles it: a token with a higher logit and a smaller q is kept
    and ahead at every temperature, top-k, top-p and min-p. Without such a rival a
    top-k just wide enough for the token lets it win once temperature is high enough.

    Args:
        logits: the model's logits of that step, shape (V,).
        params: the settings as they are.
        token_id: the token.
        step: how many tokens the seed has drawn before.
        drawn: what a generation drew at that step, instead of `step`.
        low: the lowest temperature to consider.
        high: the highest.
    """
    where: dict[str, Any] = {"step": step, "drawn": drawn, "low": low, "high": high}
    luck = luck_of(logits, params, step=step, drawn=drawn)
    found = temperature_map(logits, params, **where)
    recipes = tuple(_recipes(logits, params, token_id, luck, where))
    return Reach(
        token_id=token_id,
        intervals=_intervals(found, token_id),
        smallest_k=smallest_k(logits, token_id, params),
        smallest_p=smallest_p(logits, token_id, params),
        recipes=recipes,
        rival=None if recipes else _rival(logits, token_id, luck),
    )


def _keeps(params: SamplingParams, logits: Tensor, token_id: int) -> bool:
    return bool(params.chain()(logits)[token_id] > -torch.inf)


def _intervals(found: TemperatureMap, token_id: int) -> tuple[tuple[float, float], ...]:
    return tuple((s.low, s.high) for s in found.segments if s.token_id == token_id)


def _recipes(
    logits: Tensor,
    params: SamplingParams,
    token_id: int,
    luck: Luck,
    where: dict[str, Any],
) -> Iterator[SamplingParams]:
    """Yield settings that choose the token: temperature alone, top-k, top-p."""
    neutral = params.replace(temperature=1.0, top_k=None, top_p=None, min_p=None)
    k = smallest_k(logits, token_id, neutral)
    for cut in (neutral, neutral.replace(top_k=k)) if k else ():
        for low, high in _try_map(logits, cut, token_id, where):
            recipe = cut.replace(temperature=_round_number(low, high))
            if _chooses(recipe, logits, token_id, luck):
                yield recipe
                break
    if not k:
        return
    for low, high in _try_map(logits, neutral.replace(top_k=k), token_id, where):
        warm = neutral.replace(temperature=_round_number(low, high))
        p = smallest_p(logits, token_id, warm)
        recipe = warm.replace(top_p=p and _shortest(p, warm, logits, token_id))
        if _chooses(recipe, logits, token_id, luck):
            yield recipe


def _try_map(
    logits: Tensor, params: SamplingParams, token_id: int, where: dict[str, Any]
) -> tuple[tuple[float, float], ...]:
    try:
        return _intervals(temperature_map(logits, params, **where), token_id)
    except ParameterError:  # a wheel too large to search through
        return ()


def _chooses(params: SamplingParams, logits: Tensor, token_id: int, luck: Luck) -> bool:
    return luck.choose(params.chain()(logits).cpu()) == token_id


def _round_number(low: float, high: float) -> float:
    """Return a short number inside an interval, near its geometric middle."""
    middle = (low * high) ** 0.5
    candidates = (round(middle, digits) for digits in range(1, 8))
    return next((c for c in candidates if low < c < high), middle)


def _shortest(p: float, params: SamplingParams, logits: Tensor, token_id: int) -> float:
    """Return p rounded up to few digits; more room is given only where none is lost."""
    for digits in (2, 3, 4, 5, 6):
        rounded = min(1.0, round(p + 0.5 * 10**-digits, digits))
        kept = (params.replace(top_p=rounded).chain()(logits) > -torch.inf).sum()
        if kept == (params.replace(top_p=p).chain()(logits) > -torch.inf).sum():
            return rounded
    return p


def _rival(logits: Tensor, token_id: int, luck: Luck) -> int | None:
    """Return the luckiest token of a race with a higher logit, if luckier."""
    if luck.exponentials is None:
        return None
    wide = logits.detach().cpu().double()
    q = luck.exponentials.double().masked_fill(wide <= wide[token_id], torch.inf)
    rival = int(q.argmin())
    return rival if q[rival] < luck.exponentials[token_id] else None
