"""The tokens that many seeds choose, compared with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Binomial

from ..errors import ParameterError
from ..sampling.arguments import checked
from ..sampling.draws import Race, UniformDraw, inverse_cdf, race_scores
from ..sampling.history import NO_HISTORY, History
from ..sampling.params import SamplingParams

_LEAST_EXPECTED = 5.0
"""Cells with fewer expected draws are pooled (Cochran's rule)."""

_OUTSIDE = 0.025
"""Probability beyond each end of a 95 % band."""


@dataclass(frozen=True)
class FrequencyRow:
    """One token over many seeds; `token_id` None is all other tokens together.

    `low` and `high` are frequencies, the exact binomial 95 % band: if `prob` is right,
    the frequency is below or above it with probability at most 2.5 % each.
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
    """A chi-square test of many draws against the final probabilities.

    Attributes:
        rows: the most likely tokens first, then all others together.
        draws: how many seeds.
        statistic: Pearson's chi-square; tokens with fewer than 5 expected draws are
            pooled.
        degrees: its degrees of freedom, cells - 1.
        p_value: the probability of a statistic at least this large if the
            probabilities are right; 1 if there is only one cell.
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


@checked
def draw_many(
    logits: Tensor,
    params: SamplingParams,
    seeds: Iterable[int],
    *,
    history: History = NO_HISTORY,
) -> Tensor:
    """Return the first token that each seed draws, shape (N,).

    The same tokens as from `params.replace(seed=seed).draw()`, but what does not
    depend on the seed is computed once.

    Args:
        logits: the model's logits, shape (V,).
        params: all but the seed.
        seeds: the seeds.
        history: the tokens before; needed where `params.needs_history`.
    """
    settings = [params.replace(seed=seed) for seed in seeds]
    draws = [own.draw() for own in settings]
    if params.is_on("xtc_probability"):  # each seed has its own coin and chain
        finals = (own.chain(*history)(logits) for own in settings)
        winners = [d(final).token_id for d, final in zip(draws, finals, strict=True)]
        return torch.tensor(winners, dtype=torch.int64)
    final = params.chain(*history)(logits).cpu()
    uniforms = [d.next_uniform() for d in draws if isinstance(d, UniformDraw)]
    if uniforms:
        return inverse_cdf(final, torch.tensor(uniforms, dtype=torch.float64))[0]
    probs = final.softmax(-1)  # (V,)
    winners = [
        int(race_scores(probs, d.exponentials(probs)).numpy().argmax())
        if isinstance(d, Race)
        else d(final).token_id
        for d in draws
    ]
    return torch.tensor(winners, dtype=torch.int64)


@checked
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
        n: how many tokens get a row; the others share one.
        history: the tokens before; needed where `params.needs_history`.

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
            f"{params.xtc_probability:g}: with a coin for each seed there is no single "
            "distribution to compare with"
        )
    probs = params.chain(*history).probs(logits).cpu().double()  # (V,)
    drawn = draw_many(logits, params, seeds, history=history)
    counts = torch.bincount(drawn, minlength=len(probs))  # (V,)
    order = probs.sort(descending=True, stable=True).indices[: int((probs > 0).sum())]
    statistic, degrees = chi_square(probs[order], counts[order])
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
    shape, x = torch.tensor([degrees / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(shape, x))


def chi_square(probs: Tensor, counts: Tensor) -> tuple[float, int]:
    """Return the statistic and its degrees of freedom; probabilities descending."""
    expected = probs / probs.sum() * counts.sum()
    single = max(1, int((expected >= _LEAST_EXPECTED).sum()))
    if 0 < expected[single:].sum() < _LEAST_EXPECTED and single > 1:
        single -= 1  # the pool is itself too rare: the rarest other cell joins it
    expected, counts = _pool(expected, single), _pool(counts.double(), single)
    statistic = ((counts - expected) ** 2 / expected).sum().item()
    return statistic, len(expected) - 1


def _pool(values: Tensor, single: int) -> Tensor:
    """Add up all values after the first `single`."""
    if single == len(values):
        return values
    return torch.cat([values[:single], values[single:].sum().reshape(1)])


def _rows(
    order: Tensor, probs: Tensor, counts: Tensor, n: int
) -> tuple[FrequencyRow, ...]:
    draws = int(counts.sum())
    groups: list[tuple[int | None, Tensor]] = [(int(i), i) for i in order[:n]]
    if len(order) > n:
        groups.append((None, order[n:]))
    cells = [(i, probs[at].sum().item(), int(counts[at].sum())) for i, at in groups]
    return tuple(
        FrequencyRow(token_id, prob, count, count / draws, *binomial_band(prob, draws))
        for token_id, prob, count in cells
    )


def binomial_band(prob: float, draws: int) -> tuple[float, float]:
    """Return the frequencies between which 95 % of binomial samples fall.

    Exact: by the binomial distribution itself, at most 2.5 % of the probability is
    below the first and at most 2.5 % above the second.

    >>> binomial_band(0.5, 100)
    (0.4, 0.6)
    """
    p = torch.tensor(prob, dtype=torch.float64).clamp(0, 1)
    counts = torch.arange(draws + 1, dtype=torch.float64)
    logs: Tensor = Binomial(draws, p).log_prob(counts)  # type: ignore[no-untyped-call]  # torch has no types there
    below = logs.exp().cumsum(0)  # P(X <= count)
    low = int((below <= _OUTSIDE).sum())
    high = int((below < 1 - _OUTSIDE).sum())
    return low / draws, min(high, draws) / draws


@checked
def seed_grid(
    logits: Tensor,
    params: SamplingParams,
    seeds: Sequence[int],
    temperatures: Sequence[float],
    *,
    history: History = NO_HISTORY,
) -> SeedGrid:
    """Return the token that each seed draws at each temperature; 0 is greedy.

    `params` are all but the seed and the temperature; the other arguments are those of
    `draw_many`.
    """
    settings = (params.replace(temperature=t) for t in temperatures)
    columns = [draw_many(logits, p, seeds, history=history).tolist() for p in settings]
    rows = tuple(zip(*columns, strict=True))
    return SeedGrid(tuple(seeds), tuple(temperatures), rows)
