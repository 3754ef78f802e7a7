"""Luck: the map against brute force, recipes really drawn, theory against tables."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling_lab import SamplingParams, generate
from sampling_lab.counterfactuals import (
    History,
    compare_frequencies,
    draw_many,
    flips,
    noise_of_step,
    race_rows,
    seed_grid,
    smallest_k,
    smallest_p,
    temperature_map,
    what_would_it_take,
    wheel_slices,
)
from sampling_lab.counterfactuals.envelope import Line, contenders, upper_envelope
from sampling_lab.counterfactuals.frequencies import (
    _chi_square,
    binomial_band,
    chi_square_p,
)
from sampling_lab.counterfactuals.noise import NO_HISTORY
from sampling_lab.errors import LogitsError, ParameterError
from sampling_lab.sampling.draws import Race
from tests.fakes import TableModel

INF = float("inf")
TOY = torch.tensor([2.0, 1.0, 0.2, -1.0])
DIALECTS = ["xslm", "scratch_llm", "transformers", "llama.cpp"]
RACES = ["scratch_llm", "transformers"]
TRUNCATIONS = [
    {},
    {"top_k": 3},
    {"top_p": 0.9},
    {"min_p": 0.1},
    {"top_k": 20, "top_p": 0.8, "min_p": 0.05},
]


def random_logits(seed, size=40, kind=0):
    """Random logits; kind 1 has ties, kind 2 is bf16, kind 3 has holes."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(size, generator=generator) * 3
    if kind == 1:
        logits = logits.round()
    if kind == 2:
        logits = logits.bfloat16()
    if kind == 3:
        logits[torch.rand(size, generator=generator) < 0.5] = -INF
        logits[0] = 0.0
    return logits


def really_drawn(logits, params, temperature, step=0, said=NO_HISTORY):
    """Return what the draw itself chooses as the token after `step` others."""
    params = params.replace(temperature=temperature)
    final, draw = params.chain(*said)(logits), params.draw()
    return [draw(final).token_id for _ in range(step + 1)][-1]


def check_by_drawing(found, logits, params, step=0, said=NO_HISTORY, points=25):
    """Compare a map with real draws in every segment and on a grid."""
    for segment in found.segments:
        middle = math.sqrt(segment.low * segment.high)
        assert really_drawn(logits, params, middle, step, said) == segment.token_id
    low, high = found.segments[0].low, found.segments[-1].high
    for temperature in np.geomspace(low, high, points).tolist():
        if all(abs(temperature / s.low - 1) > 1e-5 for s in found.segments):
            drawn = really_drawn(logits, params, temperature, step, said)
            assert found.winner(temperature) == drawn


# Temperature map


def test_a_crossing_by_hand():
    # 2 / T + log 1 = 1 / T + log e at T = 1; the third is below both everywhere.
    lines = [Line(0, 2.0, 0.0), Line(1, 1.0, 1.0), Line(2, 0.0, 1.1)]
    assert upper_envelope(lines, 0.5, 5.0) == [(0.5, 1.0, 0), (1.0, 5.0, 1)]
    # ... until beyond T = 10, where the luckiest wins.
    assert upper_envelope(lines, 2.0, 20.0) == [
        (2.0, pytest.approx(10.0), 1),
        (pytest.approx(10.0), 20.0, 2),
    ]


def test_a_line_overtaken_before_it_leads_is_popped():
    lines = [Line(0, 4.0, 0.0), Line(1, 3.0, 0.1), Line(2, 2.0, 4.0)]
    assert [s.token_id for s in upper_envelope(lines, 0.01, 100.0)] == [0, 2]


def test_of_equal_lines_the_lowest_id_leads():
    lines = [Line(1, 2.0, 1.0), Line(4, 2.0, 1.0), Line(5, 2.0, 3.0)]
    assert [s.token_id for s in upper_envelope(lines[:2], 0.1, 1.0)] == [1]
    assert [s.token_id for s in upper_envelope(lines, 0.1, 1.0)] == [5]


def test_the_flip_of_a_race_is_where_two_lines_cross():
    params = SamplingParams(seed=10, dialect="transformers")
    q = noise_of_step(TOY, params).exponentials.double()
    (flip,) = flips(TOY, params)
    before, after = flip.before, flip.after
    by_hand = (TOY[before] - TOY[after]) / (q[before].log() - q[after].log())
    assert flip.temperature == pytest.approx(by_hand.item())
    assert (before, after) == (0, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("cut", TRUNCATIONS, ids=str)
@pytest.mark.parametrize("kind", range(4))
def test_the_map_is_what_the_draw_chooses(dialect, cut, kind):
    for seed in range(3):
        logits = random_logits(seed, kind=kind)
        params = SamplingParams(seed=seed, dialect=dialect, **cut)
        found = temperature_map(logits, params, step=seed % 3)
        check_by_drawing(found, logits, params, step=seed % 3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8, 8, width=16), min_size=1, max_size=12),
    st.integers(0, 2**64 - 1),
    st.sampled_from(RACES),
    st.sampled_from(TRUNCATIONS),
)
def test_the_map_of_any_small_race(values, seed, dialect, cut):
    logits = torch.tensor(values)
    params = SamplingParams(seed=seed, dialect=dialect, **cut)
    check_by_drawing(temperature_map(logits, params), logits, params)


SAID = History((5, 3, 3, 8, 5, 3), prompt_length=3)
LESS_COMMON = [
    {"repetition_penalty": 1.4, "top_p": 0.9},
    {"frequency_penalty": 0.8, "presence_penalty": 0.3},
    {"logit_bias": {3: 2.0, 5: -9.0}, "banned_token_ids": [0, 1], "top_k": 6},
    {"no_repeat_ngram_size": 2, "top_n_sigma": 1.5},
    {"typical_p": 0.8},
    {"xtc_probability": 0.6, "xtc_threshold": 0.1},
]


@pytest.mark.parametrize("dialect", ["xslm", "transformers"])
@pytest.mark.parametrize("settings", LESS_COMMON, ids=str)
def test_the_map_with_every_other_stage(dialect, settings):
    for seed in range(2):
        logits = random_logits(seed, 20)
        params = SamplingParams(seed=seed, dialect=dialect, **settings)
        found = temperature_map(logits, params, history=SAID)
        check_by_drawing(found, logits, params, SAID.step, SAID)
        for token_id in found.token_ids[:1]:
            reach = what_would_it_take(logits, params, token_id, history=SAID)
            assert reach.intervals and reach.rival is None
            for recipe in reach.recipes:
                drawn = really_drawn(
                    logits, recipe, recipe.temperature, SAID.step, SAID
                )
                assert drawn == token_id


def test_what_comes_and_goes_with_temperature_is_said_to_be_unsure():
    def note(dialect, **cut):
        return temperature_map(TOY, SamplingParams(dialect=dialect, **cut)).note

    assert "typical-p keeps may come and go" in note("transformers", typical_p=0.9)
    assert "exact" in note("llama.cpp", typical_p=0.9, top_p=0.9, min_p=0.1)
    assert "exact" in note("transformers", top_n_sigma=1.0, top_k=3)
    assert "come and go" in note("transformers", top_p=0.9, top_n_sigma=1.0)


@pytest.mark.parametrize("method", ["choices", "race", "keyed"])
def test_the_draw_can_be_another_than_the_dialects(method):
    params = SamplingParams(seed=4, draw_method=method)
    assert noise_of_step(TOY, params).method == method
    check_by_drawing(temperature_map(TOY, params), TOY, params)
    one_by_one = [params.replace(seed=s).draw()(TOY).token_id for s in range(30)]
    assert draw_many(TOY, params, range(30)).tolist() == one_by_one


@pytest.mark.parametrize("size", [49_152, 163_840])
def test_the_map_of_a_real_vocabulary(size):
    logits = random_logits(size, size)
    for cut in ({}, {"top_k": 50}, {"top_p": 0.95}):
        params = SamplingParams(seed=4, dialect="transformers", **cut)
        found = temperature_map(logits, params)
        assert len(found.segments) > 1
        check_by_drawing(found, logits, params, points=12)


@pytest.mark.parametrize("kind", range(4))
def test_only_tokens_that_cannot_win_are_left_out(kind):
    logits = random_logits(5, 3000, kind).float() / 10  # so flat that any can win
    beta = torch.logspace(-1.3, 1.3, 100, dtype=torch.float64)[:, None]
    for seed in range(12):
        q = noise_of_step(logits, SamplingParams(seed=seed)).exponentials
        lines = contenders(logits, logits > -INF, q)
        assert len(lines) < 200
        scores = beta * logits.double() - q.double().log()  # (100, V)
        assert set(scores.argmax(-1).tolist()) <= {line.token_id for line in lines}


def test_segments_touch_and_cover_the_range():
    logits = random_logits(1, 500)
    found = temperature_map(logits, SamplingParams(seed=1), low=0.2, high=3.0)
    lows = [segment.low for segment in found.segments]
    highs = [segment.high for segment in found.segments]
    assert (lows[0], highs[-1]) == (0.2, 3.0)
    assert lows[1:] == highs[:-1] and lows == sorted(lows)
    ids = [segment.token_id for segment in found.segments]
    assert all(a != b for a, b in pairwise(ids))
    assert found.token_ids == tuple(dict.fromkeys(ids))


def test_the_coldest_choice_is_the_greedy_one():
    for seed in range(20):
        found = temperature_map(TOY, SamplingParams(seed=seed), low=1e-3)
        assert found.winner(1e-3) == 0


def test_exact_where_what_is_kept_does_not_move():
    def is_exact(dialect="transformers", **cut):
        found = temperature_map(TOY, SamplingParams(dialect=dialect, **cut))
        assert found.note
        return found.exact

    assert is_exact() and is_exact(top_k=2) and is_exact("scratch_llm", top_k=2)
    assert not is_exact(top_p=0.9) and not is_exact(min_p=0.1)
    assert not is_exact("xslm")
    note = temperature_map(TOY, SamplingParams(top_p=0.9, min_p=0.1)).note
    assert "top-p and min-p" in note and "bisection" in note


def test_greedy_settings_have_the_map_of_their_seed():
    warm, cold = SamplingParams(seed=10), SamplingParams(seed=10, temperature=0)
    assert temperature_map(TOY, cold) == temperature_map(TOY, warm)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_map_of_a_step_of_a_generation(dialect):
    generator = torch.Generator().manual_seed(0)
    model = TableModel(torch.randn(30, 30, generator=generator) * 2)
    params = SamplingParams(temperature=1.3, top_k=12, seed=5, dialect=dialect)
    run = generate(model, [0], params, max_new_tokens=8)
    for step in run.steps:
        logits = step.ledger().raw_logits
        found = temperature_map(logits, params, drawn=step.drawn)
        assert found == temperature_map(logits, params, step=step.index)
        assert found.winner(1.3) == step.token_id


def test_a_greedy_step_has_no_luck_to_take():
    run = generate(TableModel(torch.eye(3)), [0], SamplingParams(temperature=0))
    with pytest.raises(ParameterError, match=r"greedy step used no random number"):
        temperature_map(TOY, SamplingParams(), drawn=run.steps[0].drawn)


def test_a_large_wheel_is_refused_and_a_cut_one_is_not():
    logits = random_logits(2, 1000)
    params = SamplingParams(dialect="xslm")
    with pytest.raises(ParameterError, match=r"at most 256 .* got 1000; set top_k"):
        temperature_map(logits, params)
    params = params.replace(top_k=20)
    check_by_drawing(temperature_map(logits, params), logits, params)


@pytest.mark.parametrize(
    "where, match",
    [
        ({"low": 0.0}, "0 < low < high"),
        ({"low": 2.0, "high": 1.0}, "0 < low < high"),
        ({"high": INF}, "0 < low < high"),
        ({"low": math.nan}, "0 < low < high"),
        ({"step": -1}, "step must be an integer >= 0"),
        ({"step": 1.0}, "step must be an integer >= 0"),
    ],
)
def test_ranges_are_checked(where, match):
    with pytest.raises(ParameterError, match=match):
        temperature_map(TOY, SamplingParams(), **where)


def test_bad_logits_and_open_seeds_are_refused():
    with pytest.raises(LogitsError, match="NaN"):
        temperature_map(torch.tensor([0.0, math.nan]), SamplingParams())
    with pytest.raises(ParameterError, match="seed must be an integer"):
        temperature_map(TOY, SamplingParams(seed=None))
    with pytest.raises(ParameterError, match=r"must be in \[0.05, 5\]"):
        temperature_map(TOY, SamplingParams()).winner(7.0)


def test_a_single_token_is_chosen_everywhere():
    found = temperature_map(torch.tensor([1.0]), SamplingParams())
    assert found.segments == ((0.05, 5.0, 0),)
    assert found.table("abc".__getitem__) == [
        {"from": 0.05, "to": 5.0, "token_id": 0, "token": "a"}
    ]


def test_inputs_and_global_generators_are_left_alone():
    logits = random_logits(0)
    before = logits.clone()
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()
    params = SamplingParams(seed=3, top_p=0.9)
    what_would_it_take(logits, params, 4)
    compare_frequencies(logits, params, 50)
    assert torch.equal(logits, before)
    assert random.getstate() == states[0]
    assert (np.random.get_state()[1] == states[1]).all()
    assert torch.equal(torch.get_rng_state(), states[2])


# Smallest k and p


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", range(4))
def test_the_smallest_k_keeps_and_one_less_does_not(dialect, kind):
    logits = random_logits(3, 25, kind)
    params = SamplingParams(temperature=1.4, min_p=0.02, dialect=dialect)
    for token_id in range(25):
        k = smallest_k(logits, token_id, params)
        kept = [
            bool(params.replace(top_k=n).chain()(logits)[token_id] > -INF)
            for n in range(1, 26)
        ]
        assert kept == [k is not None and n >= k for n in range(1, 26)]


def test_smallest_k_counts_ties_as_the_dialect_does():
    tied = torch.tensor([3.0, 3.0, 1.0])
    assert smallest_k(tied, 1, SamplingParams(dialect="transformers")) == 1
    assert smallest_k(tied, 1, SamplingParams(dialect="xslm")) == 2
    assert smallest_k(tied, 2, SamplingParams(dialect="transformers")) == 3


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", range(4))
def test_the_smallest_p_keeps_and_just_below_does_not(dialect, kind):
    logits = random_logits(6, 25, kind)
    params = SamplingParams(temperature=0.8, top_k=15, dialect=dialect)
    for token_id in range(25):
        p = smallest_p(logits, token_id, params)
        if p is None:
            assert params.chain()(logits)[token_id] == -INF
            continue
        assert params.replace(top_p=p).chain()(logits)[token_id] > -INF
        below = p - 1e-9
        if below > 0:
            final = params.replace(top_p=below).chain()(logits)
            assert final[token_id] == -INF


def test_smallest_p_of_the_toy_by_hand():
    # 0.632 before "hot", 0.864 before "blue": any p beyond lets the next one in.
    assert smallest_p(TOY, 1) == pytest.approx(0.632, abs=5e-4)
    assert smallest_p(TOY, 2) == pytest.approx(0.864, abs=5e-4)
    assert smallest_p(TOY, 0) < 1e-8
    assert smallest_k(TOY, 3, SamplingParams(min_p=0.5)) is None
    assert smallest_p(TOY, 3, SamplingParams(top_k=2)) is None


# What it would take


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_recipe_is_really_drawn(dialect):
    for seed in range(4):
        logits = random_logits(seed, 8, kind=seed)
        params = SamplingParams(temperature=0.7, top_k=4, seed=seed, dialect=dialect)
        for token_id in range(8):
            reach = what_would_it_take(logits, params, token_id, step=seed % 2)
            for recipe in reach.recipes:
                step, temperature = seed % 2, recipe.temperature
                assert recipe.seed == seed and 0.05 <= temperature <= 5
                assert really_drawn(logits, recipe, temperature, step) == token_id
            for low, high in reach.intervals:
                middle = math.sqrt(low * high)
                assert really_drawn(logits, params, middle, seed % 2) == token_id
            assert reach.intervals == () or reach.recipes
            assert reach.sentence(lambda i: f"<{i}>").startswith(f"<{token_id}>: ")


def test_a_token_with_a_rival_is_never_drawn():
    params = SamplingParams(seed=2)
    logits = random_logits(8, 10)
    reaches = [what_would_it_take(logits, params, i) for i in range(10)]
    beaten = {reach.token_id for reach in reaches if reach.rival is not None}
    assert beaten and len(beaten) < 10
    for temperature in (0.1, 0.5, 1.0, 2.0, 5.0, 50.0):
        for k in range(1, 11):
            for p in (0.1, 0.3, 0.6, 0.9, 1.0):
                cut = params.replace(top_k=k, top_p=p)
                assert really_drawn(logits, cut, temperature) not in beaten
    for reach in reaches:
        if reach.rival is not None:
            assert logits[reach.rival] > logits[reach.token_id]
            assert f"never at this seed; {reach.rival} has" in reach.sentence()
            assert not reach.recipes


def test_tokens_without_a_rival_have_a_recipe_once_it_is_warm_enough():
    logits, params = random_logits(8, 10), SamplingParams(seed=2)
    for token_id in range(10):
        reach = what_would_it_take(logits, params, token_id, high=1000.0)
        assert bool(reach.recipes) == (reach.rival is None)


def test_a_removed_token_has_no_recipe():
    logits = torch.tensor([0.0, -INF, 1.0])
    reach = what_would_it_take(logits, SamplingParams(seed=1), 1)
    assert (reach.smallest_k, reach.smallest_p, reach.recipes) == (None, None, ())
    assert "never" in reach.sentence()


# Wheel and race


def test_slices_of_the_wheel_hold_the_number():
    logits = random_logits(1, 30)
    params = SamplingParams(seed=3, dialect="xslm")
    drawn = params.draw()(logits)
    slices = wheel_slices(logits, 30)
    (hit,) = (s for s in slices if s.low <= drawn.uniform < s.high)
    assert (hit.token_id, (hit.low, hit.high)) == (drawn.token_id, drawn.segment)
    assert (slices[0].low, slices[-1].high) == (0.0, 1.0)
    short = wheel_slices(logits, 4)
    assert short[:4] == slices[:4] and short[4] == (None, slices[3].high, 1.0)


def test_rows_of_the_race_are_its_scores():
    logits = random_logits(2, 50, kind=3)
    params = SamplingParams(seed=6)
    drawn = params.draw()(logits)
    rows = race_rows(logits, noise_of_step(logits, params), n=60)
    assert rows[0].token_id == drawn.token_id
    assert rows[0].score == drawn.score and rows[0].exponential == drawn.exponential
    assert [r.score for r in rows] == sorted((r.score for r in rows), reverse=True)
    assert {r.token_id for r in rows} == {i for i in range(50) if logits[i] > -INF}
    assert race_rows(logits, noise_of_step(logits, params), n=3) == rows[:3]


def test_a_wheel_runs_no_race():
    luck = noise_of_step(TOY, SamplingParams(dialect="xslm"))
    with pytest.raises(ParameterError, match="needs a race's luck, got choices"):
        race_rows(TOY, luck)


def test_the_luck_of_a_step_does_not_depend_on_settings():
    warm = SamplingParams(seed=1, temperature=2.0, top_k=2)
    cold = SamplingParams(seed=1, temperature=0.5, top_p=0.5)
    a, b = noise_of_step(TOY, warm, step=3), noise_of_step(TOY, cold, step=3)
    assert torch.equal(a.exponentials, b.exponentials)
    assert not torch.equal(
        a.exponentials, noise_of_step(TOY, warm, step=2).exponentials
    )


def test_float64_logits_race_on_float64_numbers():
    logits = random_logits(3).double()
    params = SamplingParams(seed=2, temperature=1.5)
    luck = noise_of_step(logits, params)
    assert luck.exponentials.dtype == torch.float64
    final = params.chain()(logits)
    assert luck.choose(final) == Race(2)(final).token_id


# Theory


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
    one_by_one = []
    for seed in range(40):
        own = params.replace(seed=seed)
        one_by_one.append(own.draw()(own.chain()(TOY)).token_id)
    assert draw_many(TOY, params, range(40)).tolist() == one_by_one
    with pytest.raises(ParameterError, match=r"xtc_probability must be off here"):
        compare_frequencies(TOY, params, 40)


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
    statistic, degrees = _chi_square(probs.double(), counts)
    assert (statistic, degrees) == (pytest.approx(2 + 25 / 30 + 1.25), 2)


def test_rare_cells_are_pooled():
    probs = torch.tensor([0.5, 0.4, 0.04, 0.03, 0.03], dtype=torch.float64)
    counts = torch.tensor([45, 40, 9, 3, 3])
    statistic, degrees = _chi_square(probs, counts)  # expected 50, 40 | 4 + 3 + 3
    assert (statistic, degrees) == (pytest.approx(25 / 50 + 0 + 25 / 10), 2)
    probs = torch.tensor([0.6, 0.38, 0.02], dtype=torch.float64)
    statistic, degrees = _chi_square(probs, torch.tensor([60, 30, 10]))
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


def test_no_seed_is_no_comparison():
    with pytest.raises(ParameterError, match="at least one seed"):
        compare_frequencies(TOY, SamplingParams(), [])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_grid_holds_what_is_drawn(dialect):
    params = SamplingParams(top_k=3, dialect=dialect)
    grid = seed_grid(TOY, params, [3, 5, 8], [0, 0.5, 2.0])
    assert [row[0] for row in grid.token_ids] == [0, 0, 0]
    for seed, row in zip(grid.seeds, grid.token_ids, strict=True):
        for temperature, token_id in zip(grid.temperatures, row, strict=True):
            settings = params.replace(seed=seed)
            assert really_drawn(TOY, settings, temperature) == token_id
