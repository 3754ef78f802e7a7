"""Sampling parameters: bad values, off, words, JSON, chain and draw."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from sampling_lab.dialects import DIALECTS
from sampling_lab.draws import Choices, Greedy, Race
from sampling_lab.errors import ParameterError
from sampling_lab.params import SamplingParams
from sampling_lab.stages import MinP, Temperature, TopK, TopP

NAN = float("nan")
INF = float("inf")

BAD = {
    "temperature": [-1, NAN, INF, -INF, True, "1", None, [1.0]],
    "top_k": [0.5, True, "40", -1, NAN, 2.0, INF],
    "top_p": [0, 0.0, -0.1, 1.5, NAN, INF, True, "0.9"],
    "min_p": [-0.1, 1.5, NAN, INF, True, "0.1"],
    "seed": [True, "1", 2**64, -5, 1.5, NAN],
    "dialect": ["gpt", 3, True],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n in BAD for v in BAD[n]])
def test_a_bad_value_is_one_sentence_with_name_rule_and_value(name, value):
    with pytest.raises(ValueError) as caught:
        SamplingParams(**{name: value})
    message = str(caught.value)
    assert isinstance(caught.value, ParameterError)
    assert message.startswith(f"{name} must be ")
    assert message.endswith(f", got {value!r}")
    assert "\n" not in message
    with pytest.raises(ParameterError, match=f"{name} must be"):
        SamplingParams().replace(**{name: value})


def test_the_sentence_for_top_p():
    with pytest.raises(ValueError, match=r"^top_p must be in \(0, 1\], got 1.5$"):
        SamplingParams(top_p=1.5)


def test_off_has_one_spelling():
    off = SamplingParams()
    assert SamplingParams(top_k=0, top_p=1.0, min_p=0) == off
    assert SamplingParams(top_k=None, top_p=1, min_p=None) == off
    assert off.chain().stages == ()


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=2),
        SamplingParams(temperature=np.float64(2), seed=np.int64(0)),
        SamplingParams(temperature=2.0, seed=0.0),
    ],
)
def test_other_spellings_of_a_number_are_equal(params):
    assert params == SamplingParams(temperature=2.0)
    assert hash(params) == hash(SamplingParams(temperature=2.0))
    assert type(params.temperature) is float
    assert type(params.seed) is int


def test_params_are_frozen():
    with pytest.raises(AttributeError):
        SamplingParams().temperature = 2.0


def test_replace_names_an_unknown_field():
    with pytest.raises(ParameterError, match="no sampling parameter 'topp'; there are"):
        SamplingParams().replace(topp=0.5)


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=0, seed=None),
        SamplingParams(0.7, 40, 0.9, 0.05, 2**64 - 1, "xslm"),
    ],
)
def test_a_round_trip_through_strict_json(params):
    text = json.dumps(params.to_dict(), allow_nan=False)
    assert SamplingParams(**json.loads(text)) == params


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (SamplingParams(), "seed 0"),
        (SamplingParams(temperature=0.5, top_p=0.8), "temperature 0.5, top-p 0.8, se"),
        (SamplingParams(temperature=0, seed=3), "temperature 0"),
        (SamplingParams(top_k=5, min_p=0.1, seed=None), "top-k 5, min-p 0.1, a fresh"),
    ],
)
def test_describe_says_what_differs_from_neutral(params, words):
    assert params.describe().startswith(words)
    if params.is_greedy:
        assert "seed" not in params.describe()


# The chain and the draw


def test_each_dialect_orders_the_stages():
    params = SamplingParams(temperature=0.5, top_k=3, top_p=0.8, min_p=0.1)
    cool, cool_xslm = Temperature(0.5), Temperature(0.5, shifted=True)
    k, exactly_k = TopK(3), TopK(3, ties="lowest_id")
    down, up, low = TopP(0.8), TopP(0.8, rule="ascending"), MinP(0.1)
    expected = {
        "xslm": (exactly_k, cool_xslm, down, low),
        "scratch_llm": (cool, k, down, low),
        "transformers": (cool, k, up, low),
    }
    for name, stages in expected.items():
        assert params.replace(dialect=name).chain().stages == stages
    assert params.chain() == params.replace(dialect="transformers").chain()


def test_neutral_stages_are_left_out():
    assert SamplingParams(top_k=3).chain().stages == (TopK(3),)
    assert SamplingParams(temperature=1.0, min_p=1).chain().stages == (MinP(1.0),)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_greedy_is_the_highest_logit_alone(dialect):
    params = SamplingParams(0, 1, 0.1, 0.9, seed=1, dialect=dialect)
    logits = torch.tensor([1.0, 4.0, 4.0, 2.0])
    assert params.chain().probs(logits).tolist() == [0, 1, 0, 0]
    assert isinstance(params.draw(), Greedy)
    assert params.replace(seed=None).draw()(logits).token_id == 1


def test_each_dialect_has_its_draw():
    assert isinstance(SamplingParams(dialect="xslm").draw(), Choices)
    assert isinstance(SamplingParams(dialect="scratch_llm").draw(), Race)
    assert SamplingParams(seed=8, dialect="transformers").draw().seed == 8


def test_an_open_seed_cannot_draw_but_resolves():
    with pytest.raises(ParameterError, match="seed must be an integer to draw"):
        SamplingParams(seed=None).draw()
    first, second = (SamplingParams(seed=None).resolve("xslm") for _ in range(2))
    assert first.seed != second.seed
    assert first.dialect == "xslm"
    assert SamplingParams(seed=0, dialect="xslm").resolve("transformers") == (
        SamplingParams(seed=0, dialect="xslm")
    )


def test_two_processes_draw_two_seeds():
    code = (
        "from sampling_lab.params import SamplingParams;"
        "print(SamplingParams(seed=None).resolve('xslm').seed)"
    )
    run = [sys.executable, "-c", code]
    seeds = {subprocess.check_output(run, text=True) for _ in range(2)}
    assert len(seeds) == 2


# What really acts


def test_a_k_above_the_vocabulary_is_off_and_the_effective_k_is_told():
    params, logits = SamplingParams(top_k=50), torch.randn(5)
    assert torch.equal(params.chain()(logits), SamplingParams().chain()(logits))
    assert params.effective(5)["top_k"] == 5
    assert params.notes(5) == (
        "top_k 50 is above the vocabulary: the effective k is 5",
    )
    assert SamplingParams(top_k=5).notes(5) == ()
    assert SamplingParams(top_k=5).effective(5)["top_k"] == 5


def test_greedy_says_that_the_seed_has_no_effect():
    params = SamplingParams(temperature=0, top_k=50, seed=4)
    assert params.notes(5)[0] == "temperature is 0 (greedy): the seed has no effect"
    effective = params.effective(5)
    assert effective["temperature"] == 0.0
    assert effective["seed"] is effective["top_k"] is None
