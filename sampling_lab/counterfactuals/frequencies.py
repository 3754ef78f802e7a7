"""What many seeds choose, beside what the probabilities say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.draws import Race, UniformDraw, segments
from ..sampling.params import SamplingParams
from .noise import NO_HISTORY, History

_LEAST_EXPECTED = 5.0
"""Cells with fewer expected draws are pooled (Cochran's rule)."""

_OUTSIDE = 0.025


@dataclass(frozen=True)
class FrequencyRow:
    """One token over many seeds; `token_id` None is everything not named.

    `low` and `high` are frequencies: the exact binomial 95 % band, beyond each end
    of which a frequency falls with probability at most 2.5 % if the theory is true.
    """

    token_id: int | None
    prob: float
    count: int
    frequency: float
    low: float
    high: float

    @property
    def is_inside(self) -> bool:
        """Whether the frequency is within its band."""
        return self.low <= self.frequency <= self.high


@dataclass(frozen=True)
class FrequencyTest:
    """Many draws beside their theory.

    Attributes:
        rows: the most likely tokens first, then everything else together.
        draws: how many seeds.
        statistic: Pearson's chi-square, tokens with fewer than 5 expected pooled.
        degrees: its degrees of freedom, cells - 1.
        p_value: the probability of a statistic at least this large if the theory
            is true; 1 where there is but one cell.
    """

    rows: tuple[FrequencyRow, ...]
    draws: int
    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True)
class SeedGrid:
    """The tokens chosen at each seed (rows) and temperature (columns)."""

    seeds: tuple[int, ...]
    temperatures: tuple[float, ...]
    token_ids: tuple[tuple[int, ...], ...]


def draw_many(
    logits: Tensor,
    params: SamplingParams,
    seeds: Iterable[int],
    *,
    history: History = NO_HISTORY,
) -> Tensor:
    """Return the first token that each seed draws, shape (N,).

    The same tokens that `params.replace(seed=seed).draw()` gives, without computing
    anew for each seed what is the same for all.

    Args:
        logits: the model's logits, shape (V,).
        params: all but the seed.
        seeds: the seeds.
        history: what was said before; counts where `params.needs_history`.
    """
    seeds = list(seeds)
    if params.is_on("xtc_probability"):  # each seed has its own coin, its own chain
        winners = [_draw_one(logits, params.replace(seed=s), history) for s in seeds]
        return torch.tensor(winners, dtype=torch.int64)
    final = params.chain(*history)(logits).cpu()
    draws = [params.replace(seed=seed).draw() for seed in seeds]
    if draws and isinstance(draws[0], UniformDraw):
        uniforms = torch.tensor([d.next_uniform() for d in draws], dtype=torch.float64)
        return _land_many(final, uniforms)
    if draws and isinstance(draws[0], Race):
        probs = final.softmax(-1)  # (V,)
        return torch.stack([(probs / d.exponentials(probs)).argmax() for d in draws])
    return torch.tensor([d(final).token_id for d in draws], dtype=torch.int64)


def _draw_one(logits: Tensor, params: SamplingParams, history: History) -> int:
    return params.draw()(params.chain(*history)(logits)).token_id


def _land_many(logits: Tensor, uniforms: Tensor) -> Tensor:
    candidates, ends = segments(logits)
    places = torch.searchsorted(ends, uniforms * ends[-1], right=True)
    return candidates[places.clamp(max=len(candidates) - 1)]


def compare_frequencies(
    logits: Tensor,
    params: SamplingParams,
    seeds: int | Sequence[int] = 2000,
    *,
    n: int = 10,
    history: History = NO_HISTORY,
) -> FrequencyTest:
    """Draw with many seeds and compare the frequencies with the final probabilities.

    Args:
        logits: the model's logits, shape (V,).
        params: all but the seed.
        seeds: the seeds, or how many: 0, 1, 2, …
        n: how many tokens get a row of their own.
        history: what was said before; counts where `params.needs_history`.

    Raises:
        ParameterError: no seeds, or XTC, whose coin gives seeds different chains.

    Example:
        >>> logits = torch.tensor([0.5, 0.3, 0.2]).log()
        >>> check = compare_frequencies(logits, SamplingParams(), 1000)
        >>> [row.count for row in check.rows], check.p_value > 0.05
        ([509, 293, 198], True)
    """
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    if not len(seeds):
        raise ParameterError("seeds must hold at least one seed, got none")
    if params.is_on("xtc_probability"):
        raise ParameterError(
            "xtc_probability must be off here, got "
            f"{params.xtc_probability:g}: with a coin for each seed there is no one "
            "distribution to compare with"
        )
    probs = params.chain(*history).probs(logits).cpu().double()  # (V,)
    drawn = draw_many(logits, params, seeds, history=history)
    counts = torch.bincount(drawn, minlength=len(probs))  # (V,)
    order = probs.sort(descending=True, stable=True).indices[: int((probs > 0).sum())]
    statistic, degrees = _chi_square(probs[order], counts[order])
    return FrequencyTest(
        rows=_rows(order, probs, counts, n),
        draws=len(seeds),
        statistic=statistic,
        degrees=degrees,
        p_value=chi_square_p(statistic, degrees),
    )


def chi_square_p(statistic: float, degrees: int) -> float:
    """Return P(X >= statistic) for a chi-square variable X.

    The regularised upper incomplete gamma function Q(degrees / 2, statistic / 2).

    >>> round(chi_square_p(3.841, 1), 3)
    0.05
    """
    if degrees == 0:
        return 1.0
    halves = torch.tensor([degrees / 2, statistic / 2], dtype=torch.float64)
    return torch.special.gammaincc(halves[0], halves[1]).item()


def _chi_square(probs: Tensor, counts: Tensor) -> tuple[float, int]:
    """Return the statistic and its degrees of freedom; probabilities descending."""
    expected = probs / probs.sum() * counts.sum()
    own = max(1, int((expected >= _LEAST_EXPECTED).sum()))
    rest = expected[own:].sum()
    if 0 < rest < _LEAST_EXPECTED and own > 1:
        own -= 1  # the pool is itself too rare: the rarest other cell joins it
    expected, counts = _pool(expected, own), _pool(counts.double(), own)
    statistic = ((counts - expected) ** 2 / expected).sum().item()
    return statistic, len(expected) - 1


def _pool(values: Tensor, own: int) -> Tensor:
    if own == len(values):
        return values
    return torch.cat([values[:own], values[own:].sum().reshape(1)])


def _rows(
    order: Tensor, probs: Tensor, counts: Tensor, n: int
) -> tuple[FrequencyRow, ...]:
    draws = int(counts.sum())
    named = [(int(i), probs[i].item(), int(counts[i])) for i in order[:n]]
    cells: list[tuple[int | None, float, int]] = [*named]
    if len(order) > n:
        rest = order[n:]
        cells.append((None, probs[rest].sum().item(), int(counts[rest].sum())))
    return tuple(
        FrequencyRow(token_id, prob, count, count / draws, *binomial_band(prob, draws))
        for token_id, prob, count in cells
    )


def binomial_band(prob: float, draws: int) -> tuple[float, float]:
    """Return the frequencies between which 95 % of binomial samples fall.

    Exact: at most 2.5 % of the probability lies below the first and above the
    second, counted with the binomial distribution itself.

    >>> binomial_band(0.5, 100)
    (0.4, 0.6)
    """
    prob = min(1.0, max(0.0, prob))
    counts = torch.arange(draws + 1, dtype=torch.float64)
    ways = _log_factorial(torch.tensor(float(draws))) - (
        _log_factorial(counts) + _log_factorial(draws - counts)
    )
    p = torch.tensor(prob, dtype=torch.float64)
    hits, misses = torch.xlogy(counts, p), torch.xlogy(draws - counts, 1 - p)
    below = (ways + hits + misses).exp().cumsum(0)  # P(X <= count)
    low = int((below <= _OUTSIDE).sum())
    high = int((below < 1 - _OUTSIDE).sum())
    return low / draws, min(high, draws) / draws


def _log_factorial(counts: Tensor) -> Tensor:
    return torch.lgamma(counts.double() + 1)


def seed_grid(
    logits: Tensor,
    params: SamplingParams,
    seeds: Sequence[int],
    temperatures: Sequence[float],
    *,
    history: History = NO_HISTORY,
) -> SeedGrid:
    """Return the token that each seed draws at each temperature.

    Args:
        logits: the model's logits, shape (V,).
        params: all but the seed and the temperature.
        seeds: one row each.
        temperatures: one column each; 0 is greedy.
        history: what was said before; counts where `params.needs_history`.
    """
    warmed = (params.replace(temperature=temperature) for temperature in temperatures)
    columns = [draw_many(logits, p, seeds, history=history).tolist() for p in warmed]
    rows = tuple(zip(*columns, strict=True))
    return SeedGrid(tuple(seeds), tuple(temperatures), rows)
