"""Parameters as they are typed: the inverse of `describe`, and its refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab import SamplingParams
from sampling_lab.errors import ParameterError
from sampling_lab.sampling.dialects import DIALECTS
from sampling_lab.sampling.draws import DRAWS
from sampling_lab.sampling.parameters import PARAMETERS
from sampling_lab.sampling.settings_text import (
    format_settings,
    parse_lines,
    parse_seeds,
    parse_settings,
)

EVERYTHING = SamplingParams(
    temperature=0.7,
    top_k=40,
    top_p=0.9,
    min_p=0.05,
    seed=7,
    typical_p=0.95,
    top_n_sigma=1.5,
    xtc_probability=0.5,
    xtc_threshold=0.2,
    repetition_penalty=1.1,
    frequency_penalty=-0.5,
    presence_penalty=1e-05,
    penalty_window=64,
    penalize_prompt=False,
    logit_bias={5: 1.5, 7: -2, 9: 1e-07},
    banned_token_ids=[3, 1],
    no_repeat_ngram_size=3,
    top_a=0.01,
    epsilon_cutoff=0.0001,
    eta_cutoff=0.0002,
    p_less=True,
    top_h=0.99,
    min_tokens_to_keep=2,
    dynatemp_range=0.5,
    dynatemp_exponent=1.5,
    smoothing_factor=0.2,
    smoothing_curve=1.5,
    mirostat=2,
    mirostat_tau=4.0,
    mirostat_eta=0.2,
    dry_multiplier=0.8,
    dry_base=1.5,
    dry_allowed_length=3,
    dry_range=256,
    dry_sequence_breakers=[13, 198],
    sequence_bias={(7, 8): -1.5, (9,): 2},
    min_new_tokens=5,
    length_decay=1.01,
    length_decay_start=10,
    grammar='json:{"type": "object", "a": 1}',
    draw_method="keyed",
)


def short(low, high):
    """Return numbers with no more digits than `describe` prints."""
    return st.floats(low, high).map(lambda x: float(f"{x:g}")).filter(lambda x: x > 0)


FIELDS = {
    "temperature": short(0.001, 9.0),
    "top_k": st.integers(1, 10**6),
    "top_p": short(0.001, 1.0),
    "min_p": short(0.001, 1.0),
    "seed": st.none() | st.integers(0, 2**64 - 1),
    "typical_p": short(0.001, 1.0),
    "top_n_sigma": short(0.001, 9.0),
    "repetition_penalty": short(0.001, 9.0),
    "frequency_penalty": short(1e-9, 1e12) | short(1e-9, 9.0).map(lambda x: -x),
    "presence_penalty": short(1e-9, 1e12) | short(1e-9, 9.0).map(lambda x: -x),
    "penalty_window": st.integers(1, 10**6),
    "penalize_prompt": st.booleans(),
    "logit_bias": st.dictionaries(
        st.integers(0, 10**5),
        short(1e-9, 1e9) | short(1e-9, 1e9).map(lambda x: -x),
        min_size=1,
        max_size=4,
    ),
    "banned_token_ids": st.lists(st.integers(0, 10**5), min_size=1, max_size=4),
    "no_repeat_ngram_size": st.integers(1, 9),
    "top_a": short(0.001, 1.0),
    "p_less": st.just(True),
    "dynatemp_range": short(0.001, 9.0),
    "mirostat": st.integers(1, 2),
    "dry_sequence_breakers": st.lists(st.integers(0, 10**5), min_size=1, max_size=4),
    "sequence_bias": st.dictionaries(
        st.lists(st.integers(0, 10**5), min_size=1, max_size=3).map(tuple),
        short(1e-9, 1e9) | short(1e-9, 1e9).map(lambda x: -x),
        min_size=1,
        max_size=3,
    ),
    "draw_method": st.sampled_from(list(DRAWS)),
}


@given(st.fixed_dictionaries({}, optional=FIELDS))
def test_what_is_described_is_read_back(fields):
    params = SamplingParams(**fields)
    assert parse_settings(params.describe()) == params


def test_every_parameter_is_read_back():
    assert parse_settings(EVERYTHING.describe()) == EVERYTHING
    assert all(map(EVERYTHING.is_on, set(PARAMETERS) - {"dialect"}))


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_a_setting_without_its_seed_is_read_back_with_its_dialect(dialect):
    params = EVERYTHING.replace(dialect=dialect)
    text = format_settings(params)
    assert "seed" not in text
    assert parse_settings(text) == params.replace(seed=0)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "neutral"),
        ({"seed": None}, "neutral"),
        ({"temperature": 0}, "temperature 0"),
        ({"temperature": 0.7, "top_p": 0.9}, "temperature 0.7, top-p 0.9"),
        ({"draw_method": "race"}, "drawn by race"),
    ],
)
def test_setting_words(params, text):
    assert format_settings(SamplingParams(**params)) == text


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        (" , ", {}),
        ("neutral", {}),
        ("Greedy", {"temperature": 0}),
        ("temperature 0.7,top-p 0.9", {"temperature": 0.7, "top_p": 0.9}),
        ("  Temperature   1.5 , TOP_P .9", {"temperature": 1.5, "top_p": 0.9}),
        ("repetition_penalty 1.2", {"repetition_penalty": 1.2}),
        ("top-k 0", {}),
        ("xtc 1, xtc-threshold 0.3", {"xtc_probability": 1, "xtc_threshold": 0.3}),
        ("seed random", {"seed": None}),
        ("dialect XSLM", {"dialect": "xslm"}),
    ],
)
def test_what_people_write(text, fields):
    assert parse_settings(text) == SamplingParams(**fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warmth 3", "'warmth 3' is no setting; write temperature …, top-k …"),
        ("temprature 0.7", "did you mean temperature …$"),
        ("topp 0.9", "did you mean top-p …$"),
        ("temperature", "temperature needs a value, such as temperature 0.7"),
        ("0.7", "'0.7' is no setting"),
        ("temperature hot", "temperature must be a finite number >= 0, got 'hot'"),
        ("temperature nan", "temperature must be .* got nan"),
        ("temperature 0.5 0.7", "temperature must be .* got '0.5 0.7'"),
        ("top-k 0.5", "top_k must be an integer >= 1.* got 0.5"),
        ("top-p 1.5", r"top_p must be in \(0, 1\].* got 1.5"),
        ("temperature 1, Temperature 2", "temperature is given twice"),
        ("greedy, temperature 2", "temperature is given twice"),
        ("penalize prompt: maybe", "penalize_prompt must be one of .* got 'maybe'"),
        ("logit bias 5", "logit_bias must be .*"),
        ("logit bias x+1", "logit_bias must be .*"),
        ("logit bias 5+x", "logit_bias must be .*"),
        ("bans me", "banned_token_ids must be .*'me'"),
        ("drawn by lot", "draw_method must be one of .*'lot'"),
        ("dialect martian", "dialect must be one of .*'martian'"),
        ("seed -1, dialect vllm", "seed must be .* got -1"),
    ],
)
def test_what_cannot_be_read_is_named(text, message):
    with pytest.raises(ParameterError, match=message) as caught:
        parse_settings(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    for read in (parse_settings, parse_lines, parse_seeds):
        try:
            read(text)
        except ParameterError:
            pass


def test_lines_are_settings_and_empty_ones_are_none():
    text = "temperature 0.5\n\n  \nneutral\ntop-k 3, seed 9\n"
    assert parse_lines(text) == [
        SamplingParams(temperature=0.5),
        SamplingParams(),
        SamplingParams(top_k=3, seed=9),
    ]
    assert parse_lines(" \n") == []


def test_a_bad_line_is_named_by_its_number():
    with pytest.raises(ParameterError, match=r"^settings, line 3: top_p must be"):
        parse_lines("temperature 1\n\ntop-p 7")


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("1 2 3", [1, 2, 3]),
        ("1-6", [1, 2, 3, 4, 5, 6]),
        ("7, 3-4,3", [7, 3, 4, 3]),
        ("5-5", [5]),
        ("18446744073709551615", [2**64 - 1]),
        ("", []),
    ],
)
def test_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one", "such as 1 2 3 or 1-6, got 'one'"),
        ("1 -", "got '-'"),
        ("1.5", "got '1.5'"),
        ("6-1", "must go up"),
        ("9" * 5000, "got '999"),
        ("1-1000000000000", "at most 1,000, got '1-1000000000000'"),
    ],
)
def test_seeds_that_cannot_be_read_are_named(text, message):
    with pytest.raises(ParameterError, match=message):
        parse_seeds(text)
