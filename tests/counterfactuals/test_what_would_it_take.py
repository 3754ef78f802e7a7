"""The smallest k and p, and settings that are really drawn with."""

import math
import random

import numpy as np
import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.counterfactuals import (
    compare_frequencies,
    smallest_k,
    smallest_p,
    what_would_it_take,
)
from tests.counterfactuals.cases import (
    DIALECTS,
    INF,
    TOY,
    random_logits,
    really_drawn,
)

# Smallest k and p


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", range(4))
def test_the_smallest_k_keeps_and_one_less_does_not(dialect, kind):
    logits = random_logits(3, 25, kind)
    params = SamplingParams(temperature=1.4, min_p=0.02, dialect=dialect)
    kept = [params.replace(top_k=n).chain()(logits) > -INF for n in range(1, 26)]
    for token_id in range(25):
        k = smallest_k(logits, token_id, params)
        expected = [k is not None and n >= k for n in range(1, 26)]
        assert [bool(tokens[token_id]) for tokens in kept] == expected


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
        if (below := p - 1e-9) > 0:
            assert params.replace(top_p=below).chain()(logits)[token_id] == -INF


def test_smallest_p_of_the_toy_by_hand():
    # 0.632 before "hot", 0.864 before "blue": any p beyond lets the next one in.
    assert smallest_p(TOY, 1) == pytest.approx(0.632, abs=5e-4)
    assert smallest_p(TOY, 2) == pytest.approx(0.864, abs=5e-4)
    assert smallest_p(TOY, 0) < 1e-8
    assert smallest_k(TOY, 3, SamplingParams(min_p=0.5)) is None
    assert smallest_p(TOY, 3, SamplingParams(top_k=2)) is None


# What it would take


@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_settings_found_are_really_drawn(dialect):
    for seed in range(4):
        logits = random_logits(seed, 8, kind=seed)
        params = SamplingParams(temperature=0.7, top_k=4, seed=seed, dialect=dialect)
        for token_id in range(8):
            answer = what_would_it_take(logits, params, token_id, step=seed % 2)
            for tried in answer.settings:
                step, temperature = seed % 2, tried.temperature
                assert tried.seed == seed and 0.05 <= temperature <= 5
                assert really_drawn(logits, tried, temperature, step) == token_id
            for low, high in answer.intervals:
                middle = math.sqrt(low * high)
                assert really_drawn(logits, params, middle, seed % 2) == token_id
            assert answer.intervals == () or answer.settings
            assert answer.sentence(lambda i: f"<{i}>").startswith(f"<{token_id}>: ")


def test_a_token_with_a_rival_is_never_drawn():
    params = SamplingParams(seed=2)
    logits = random_logits(8, 10)
    answers = [what_would_it_take(logits, params, i) for i in range(10)]
    beaten = {answer.token_id for answer in answers if answer.rival is not None}
    assert beaten and len(beaten) < 10
    for temperature in (0.1, 0.5, 1.0, 2.0, 5.0, 50.0):
        for k in range(1, 11):
            for p in (0.1, 0.3, 0.6, 0.9, 1.0):
                cut = params.replace(top_k=k, top_p=p)
                assert really_drawn(logits, cut, temperature) not in beaten
    for answer in answers:
        if answer.rival is not None:
            assert logits[answer.rival] > logits[answer.token_id]
            assert f"never at this seed; {answer.rival} has" in answer.sentence()
            assert not answer.settings


def test_tokens_without_a_rival_have_settings_once_it_is_warm_enough():
    logits, params = random_logits(8, 10), SamplingParams(seed=2)
    for token_id in range(10):
        answer = what_would_it_take(logits, params, token_id, high=1000.0)
        assert bool(answer.settings) == (answer.rival is None)


def test_a_removed_token_has_no_settings():
    logits = torch.tensor([0.0, -INF, 1.0])
    answer = what_would_it_take(logits, SamplingParams(seed=1), 1)
    assert (answer.smallest_k, answer.smallest_p, answer.settings) == (None, None, ())
    assert "never" in answer.sentence()


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
