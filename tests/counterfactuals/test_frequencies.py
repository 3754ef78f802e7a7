"""Many seeds: the draws themselves, chi-square and bands against tables."""

import math
import random

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.counterfactuals import compare_frequencies, draw_many, seed_grid
from sampling_lab.counterfactuals.frequencies import (
    binomial_band,
    chi_square,
    chi_square_p,
)
from sampling_lab.errors import ParameterError
from tests.counterfactuals.cases import (
    DIALECTS,
    TOY,
    TRUNCATIONS,
    random_logits,
    really_drawn,
)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("cut", [*TRUNCATIONS, {"temperature": 0.0}], ids=str)
def test_many_draws_are_the_draws_themselves(dialect, cut):
    logits = random_logits(4, 60)
    params = SamplingParams(dialect=dialect, **cut)
    final = params.chain()(logits)
    seeds = [*range(50), 2**64 - 1]
    one_by_one = [params.replace(seed=s).draw()(final).token_id for s in seeds]
    assert draw_many(logits, params, seeds).tolist() == one_by_one
    assert draw_many(logits, params, []).tolist() == []


def test_many_draws_use_every_digit_of_their_numbers():
    even = torch.zeros(200_000)
    drawn = draw_many(even, SamplingParams(dialect="xslm"), range(6000)).tolist()
    assert drawn == [int(random.Random(s).random() * 200_000) for s in range(6000)]


def test_seeds_with_a_coin_have_chains_of_their_own():
    params = SamplingParams(xtc_probability=0.5, xtc_threshold=0.1)
    settings = [params.replace(seed=seed) for seed in range(40)]
    one_by_one = [own.draw()(own.chain()(TOY)).token_id for own in settings]
    assert draw_many(TOY, params, range(40)).tolist() == one_by_one


@pytest.mark.parametrize(
    ("params", "seeds", "problem"),
    [
        (SamplingParams(xtc_probability=0.5), 40, "xtc_probability must be off here"),
        (SamplingParams(), [], "at least one seed"),
    ],
)
def test_what_cannot_be_compared_is_refused(params, seeds, problem):
    with pytest.raises(ParameterError, match=problem):
        compare_frequencies(TOY, params, seeds)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_draws_follow_their_theory(dialect):
    params = SamplingParams(temperature=1.5, top_p=0.95, dialect=dialect)
    check = compare_frequencies(random_logits(7, 30), params, 3000, n=8)
    assert check.p_value > 0.01
    assert sum(row.count for row in check.rows) == check.draws == 3000
    assert math.isclose(sum(row.prob for row in check.rows), 1, abs_tol=1e-6)
    assert sum(not row.is_inside for row in check.rows) <= 2


def test_wrong_draws_are_told_from_their_theory(monkeypatch):
    def too_warm(logits, params, seeds, **said):
        return draw_many(logits, params.replace(temperature=1.2), seeds, **said)

    monkeypatch.setattr("sampling_lab.counterfactuals.frequencies.draw_many", too_warm)
    check = compare_frequencies(TOY, SamplingParams(), 2000)
    assert check.p_value < 1e-4
    assert not all(row.is_inside for row in check.rows)


@pytest.mark.parametrize(
    "statistic, degrees, p_value",
    [(3.841, 1, 0.05), (5.991, 2, 0.05), (18.307, 10, 0.05), (23.209, 10, 0.01)],
)
def test_p_values_are_those_of_the_printed_tables(statistic, degrees, p_value):
    assert chi_square_p(statistic, degrees) == pytest.approx(p_value, abs=2e-5)


def test_chi_square_by_hand():
    # (60-50)²/50 + (25-30)²/30 + (15-20)²/20
    probs, counts = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([60, 25, 15])
    statistic, degrees = chi_square(probs.double(), counts)
    assert (statistic, degrees) == (pytest.approx(2 + 25 / 30 + 1.25), 2)


def test_rare_cells_are_pooled():
    probs = torch.tensor([0.5, 0.4, 0.04, 0.03, 0.03], dtype=torch.float64)
    counts = torch.tensor([45, 40, 9, 3, 3])
    statistic, degrees = chi_square(probs, counts)  # expected 50, 40 | 4 + 3 + 3
    assert (statistic, degrees) == (pytest.approx(25 / 50 + 0 + 25 / 10), 2)
    probs = torch.tensor([0.6, 0.38, 0.02], dtype=torch.float64)
    statistic, degrees = chi_square(probs, torch.tensor([60, 30, 10]))
    assert (statistic, degrees) == (pytest.approx(0.0), 1)  # 60 | 38 + 2


def test_a_certain_token_has_nothing_to_test():
    check = compare_frequencies(TOY, SamplingParams(top_k=1), 20)
    assert (check.degrees, check.p_value) == (0, 1.0)
    assert [(row.token_id, row.count) for row in check.rows] == [(0, 20)]
    assert check.rows[0].is_inside


@pytest.mark.parametrize("prob", [0.0, 1e-4, 0.03, 0.5, 0.9, 1.0])
def test_the_band_is_the_exact_binomial_one(prob):
    draws = 200
    weights = [
        math.comb(draws, k) * prob**k * (1 - prob) ** (draws - k)
        for k in range(draws + 1)
    ]
    low, high = (round(end * draws) for end in binomial_band(prob, draws))
    assert sum(weights[:low]) <= 0.025 < sum(weights[: low + 1]) + 1e-12
    assert sum(weights[high + 1 :]) <= 0.025 + 1e-12
    assert high == 0 or sum(weights[high:]) > 0.025


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_grid_holds_what_is_drawn(dialect):
    params = SamplingParams(top_k=3, dialect=dialect)
    grid = seed_grid(TOY, params, [3, 5, 8], [0, 0.5, 2.0])
    assert [row[0] for row in grid.token_ids] == [0, 0, 0]
    for seed, row in zip(grid.seeds, grid.token_ids, strict=True):
        for temperature, token_id in zip(grid.temperatures, row, strict=True):
            settings = params.replace(seed=seed)
            assert really_drawn(TOY, settings, temperature) == token_id
