"""The temperature map against the draw itself, at every temperature."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling_lab import SamplingParams, generate
from sampling_lab.counterfactuals import (
    History,
    StepNoise,
    draw_many,
    noise_of_step,
    temperature_map,
    what_would_it_take,
)
from sampling_lab.errors import LogitsError, ParameterError
from sampling_lab.sampling.history import NO_HISTORY
from tests.counterfactuals.cases import (
    DIALECTS,
    INF,
    TOY,
    TRUNCATIONS,
    random_logits,
    really_drawn,
)
from tests.fakes import TableModel

RACES = ["scratch_llm", "transformers"]


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


def test_the_flip_of_a_race_is_where_two_lines_cross():
    params = SamplingParams(seed=10, dialect="transformers")
    q = noise_of_step(TOY, params).exponentials.double()
    (flip,) = temperature_map(TOY, params).flips
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
        token_id = found.token_ids[0]
        answer = what_would_it_take(logits, params, token_id, history=SAID)
        assert answer.intervals and answer.rival is None
        for tried in answer.settings:
            drawn = really_drawn(logits, tried, tried.temperature, SAID.step, SAID)
            assert drawn == token_id


def test_what_comes_and_goes_with_temperature_is_said_to_be_unsure():
    def note(dialect, **cut):
        return temperature_map(TOY, SamplingParams(dialect=dialect, **cut)).note

    assert "typical-p keeps may come and go" in note("transformers", typical_p=0.9)
    assert "exact" in note("llama.cpp", typical_p=0.9, top_p=0.9, min_p=0.1)
    assert "exact" in note("transformers", top_n_sigma=1.0, top_k=3)
    assert "come and go" in note("transformers", top_p=0.9, top_n_sigma=1.0)


@pytest.mark.parametrize("size", [49_152, 163_840])
def test_the_map_of_a_real_vocabulary(size):
    logits = random_logits(size, size)
    for cut in ({}, {"top_k": 50}, {"top_p": 0.95}):
        params = SamplingParams(seed=4, dialect="transformers", **cut)
        found = temperature_map(logits, params)
        assert len(found.segments) > 1
        check_by_drawing(found, logits, params, points=12)


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


@pytest.mark.parametrize("method", ["choices", "race", "keyed"])
def test_the_draw_can_be_another_than_the_dialects(method):
    params = SamplingParams(seed=4, draw_method=method)
    assert noise_of_step(TOY, params).method == method
    check_by_drawing(temperature_map(TOY, params), TOY, params)
    one_by_one = [params.replace(seed=s).draw()(TOY).token_id for s in range(30)]
    assert draw_many(TOY, params, range(30)).tolist() == one_by_one


# Only tokens that can be chosen at all are searched


LOGITS = torch.randn(1000, generator=torch.Generator().manual_seed(1))
RACE = SamplingParams(seed=34, typical_p=0.9, dialect="transformers")
WHEEL = SamplingParams(seed=34, dialect="xslm")


@pytest.mark.parametrize(
    ("params", "size"),
    [
        (WHEEL.replace(top_k=6), 6),
        (RACE.replace(top_k=6), 6),
        (RACE, 1000),
        (RACE.replace(banned_token_ids=[7]), 999),
    ],
)
def test_only_tokens_that_can_be_chosen_are_searched(params, size, monkeypatch):
    sizes, choose = set(), StepNoise.choose

    def noted(self, logits):
        sizes.add(len(logits))
        return choose(self, logits)

    monkeypatch.setattr(StepNoise, "choose", noted)
    temperature_map(LOGITS, params)
    assert sizes == {size}


def test_a_wheel_of_a_few_hundred_tokens_that_top_k_leaves_is_searched():
    params = WHEEL.replace(top_k=400)
    found = temperature_map(LOGITS, params)
    ids = set(LOGITS.topk(400).indices.tolist())
    assert set(found.token_ids) <= ids
    for segment in found.segments[::40]:
        middle = math.sqrt(segment.low * segment.high)
        assert really_drawn(LOGITS, params, middle) == segment.token_id
    for size, cut in ((1000, {}), (600, {"top_k": 600})):
        problem = rf"at most 256 .* got {size}; set top_k"
        with pytest.raises(ParameterError, match=problem):
            temperature_map(LOGITS, WHEEL.replace(**cut))


def test_random_numbers_that_are_known_need_no_draw():
    params = RACE.replace(top_k=20)
    noise = noise_of_step(LOGITS, params, step=3)
    found = temperature_map(LOGITS, params.replace(seed=None), noise=noise)
    assert found == temperature_map(LOGITS, params, step=3)
