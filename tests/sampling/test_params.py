"""Sampling parameters: bad values, off, words, JSON, chain and draw."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from sampling_lab.errors import ParameterError
from sampling_lab.sampling.cutoffs import MinP
from sampling_lab.sampling.dialects import DIALECTS
from sampling_lab.sampling.draws import Choices, Greedy, Keyed, Race, coin
from sampling_lab.sampling.notes import notes
from sampling_lab.sampling.parameters import missing
from sampling_lab.sampling.params import SamplingParams
from sampling_lab.sampling.penalties import (
    Ban,
    FrequencyPenalty,
    LogitBias,
    PresencePenalty,
    RepetitionPenalty,
)
from sampling_lab.sampling.sequences import NoRepeatNGram
from sampling_lab.sampling.temperature import Temperature
from sampling_lab.sampling.truncation import XTC, TopK, TopNSigma, TopP, TypicalP

NAN = float("nan")
INF = float("inf")

BAD = {
    "temperature": [-1, NAN, INF, -INF, True, "1", None, [1.0]],
    "top_k": [0.5, True, "40", -1, NAN, 2.0, INF],
    "top_p": [0, 0.0, -0.1, 1.5, NAN, INF, True, "0.9"],
    "min_p": [-0.1, 1.5, NAN, INF, True, "0.1"],
    "seed": [True, "1", 1.5, NAN],
    "dialect": ["gpt", 3, True, ["xslm"]],
    "typical_p": [0, 1.5, NAN, True, "0.9"],
    "top_n_sigma": [-1, NAN, INF, True, "1"],
    "xtc_probability": [-0.1, 1.5, NAN, True, "0.5"],
    "xtc_threshold": [-0.1, 1.5, NAN, None, True],
    "repetition_penalty": [0, -1, NAN, INF, True, "1.1"],
    "frequency_penalty": [NAN, INF, True, "0.5"],
    "presence_penalty": [NAN, -INF, True, "0.5"],
    "penalty_window": [0, -1, 2.0, True, "64"],
    "penalize_prompt": [0, 1, "yes"],
    "logit_bias": [3, "1=2", {1: INF}, {-1: 2.0}, {True: 2.0}, {1: "2"}, [(1, 2, 3)]],
    "banned_token_ids": [3, "12", [-1], [1.0], [True], {1: 2}],
    "no_repeat_ngram_size": [-1, 2.0, True, "3"],
    "draw_method": ["torch", 3, True],
}

FULL = SamplingParams(
    temperature=0.7,
    top_k=40,
    top_p=0.9,
    min_p=0.05,
    seed=3,
    typical_p=0.95,
    top_n_sigma=1.5,
    xtc_probability=0.5,
    xtc_threshold=0.2,
    repetition_penalty=1.1,
    frequency_penalty=0.25,
    presence_penalty=-0.5,
    penalty_window=64,
    penalize_prompt=False,
    logit_bias={7: -1.5, 2: 3},
    banned_token_ids=[9, 4, 9],
    no_repeat_ngram_size=3,
    draw_method="keyed",
)

NAMED_BY_ITEM = {"logit_bias", "banned_token_ids"}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n in BAD for v in BAD[n]])
def test_a_bad_value_is_one_sentence_with_name_rule_and_value(name, value):
    with pytest.raises(ValueError) as caught:
        SamplingParams(**{name: value})
    message = str(caught.value)
    assert isinstance(caught.value, ParameterError)
    assert message.startswith(f"{name} must be ")
    if name not in NAMED_BY_ITEM:
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
    assert off == SamplingParams(
        typical_p=1, top_n_sigma=0, xtc_probability=0, repetition_penalty=1
    )
    assert off == SamplingParams(
        frequency_penalty=0, presence_penalty=-0.0, no_repeat_ngram_size=0
    )
    assert off == SamplingParams(
        logit_bias={}, banned_token_ids=[], penalty_window=None
    )
    assert off == SamplingParams(logit_bias={3: 0.0})
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
    with pytest.raises(ParameterError, match="no sampling parameter 'topp'; see top_p"):
        SamplingParams().replace(topp=0.5)


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=0, seed=None),
        SamplingParams(0.7, 40, 0.9, 0.05, 2**64 - 1, "xslm"),
        FULL,
    ],
)
def test_a_round_trip_through_strict_json(params):
    text = json.dumps(params.to_dict(), allow_nan=False)
    again = SamplingParams(**json.loads(text))
    assert again == params
    assert hash(again) == hash(params)
    assert again.to_dict() == json.loads(text)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (SamplingParams(), "seed 0"),
        (SamplingParams(temperature=0.5, top_p=0.8), "temperature 0.5, top-p 0.8, se"),
        (SamplingParams(temperature=0, seed=3), "temperature 0"),
        (SamplingParams(top_k=5, min_p=0.1, seed=None), "top-k 5, min-p 0.1, seed"),
        (
            FULL,
            "temperature 0.7, top-k 40, top-p 0.9, min-p 0.05, typical-p 0.95, "
            "top-nσ 1.5, XTC 0.5, XTC threshold 0.2, logit bias 2+3 7-1.5, repetition "
            "penalty 1.1, frequency penalty 0.25, presence penalty -0.5, "
            "no-repeat-ngram 3, bans 4 9, penalty window 64, penalize prompt no, "
            "seed 3, drawn by keyed",
        ),
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
        "scratch_llm": (cool, k, TopP(0.8, rule="exceeding"), low),
        "transformers": (cool, k, up, low),
    }
    for name, stages in expected.items():
        assert params.replace(dialect=name).chain().stages == stages
    assert params.chain() == params.replace(dialect="transformers").chain()


SAID = (1, 2, 3, 2, 5)


def test_every_stage_in_the_order_of_transformers():
    k, p = TopK(40), TopP(0.9, rule="ascending")
    stages = (
        LogitBias({2: 3, 7: -1.5}),
        RepetitionPenalty(1.1, (2, 5)),
        NoRepeatNGram(3, (2, 5)),
        Ban((4, 9)),
        FrequencyPenalty(0.25, (2, 5)),
        PresencePenalty(-0.5, (2, 5)),
        Temperature(0.7),
        *(k, p, MinP(0.05), TypicalP(0.95), TopNSigma(1.5)),
        XTC(0.5, 0.2, coin(3, 2)),
    )
    assert FULL.chain(SAID, 3).stages == stages


def test_every_stage_in_the_order_of_llama_cpp():
    names = [stage.name for stage in FULL.replace(dialect="llama.cpp").chain().stages]
    assert names == [
        "logit bias",
        "ban",
        "repetition penalty",
        "frequency penalty",
        "presence penalty",
        "no-repeat-ngram",
        "top-nσ",
        "top-k",
        "typical-p",
        "top-p",
        "min-p",
        "XTC",
        "temperature",
    ]


@pytest.mark.parametrize(
    ("settings", "counted"),
    [
        ({}, SAID),
        ({"penalize_prompt": False}, (2, 5)),
        ({"penalty_window": 3}, (3, 2, 5)),
        ({"penalty_window": 99}, SAID),
        ({"penalty_window": 1, "penalize_prompt": False}, (5,)),
        ({"dialect": "vllm"}, SAID),
    ],
)
def test_what_a_repetition_penalty_counts(settings, counted):
    params = SamplingParams(repetition_penalty=1.5, **settings)
    assert params.chain(SAID, 3).stages == (RepetitionPenalty(1.5, counted),)


def test_where_the_prompt_counts_is_the_engines_way():
    params = SamplingParams(frequency_penalty=1, dialect="vllm")
    assert params.chain(SAID, 3).stages[0].token_ids == (2, 5)
    with_prompt = params.replace(penalize_prompt=True)
    assert with_prompt.chain(SAID, 3).stages[0].token_ids == SAID
    assert params.replace(dialect="mlx").chain(SAID, 3).stages[0].token_ids == SAID
    assert params.chain(SAID, 5).stages[0].token_ids == ()


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({"repetition_penalty": 1.1}, True),
        ({"frequency_penalty": 1}, True),
        ({"presence_penalty": 1}, True),
        ({"no_repeat_ngram_size": 2}, True),
        ({"no_repeat_ngram_size": 2, "temperature": 0}, True),
        ({"xtc_probability": 0.5}, True),
        ({"xtc_probability": 0.5, "temperature": 0}, False),
        ({"logit_bias": {1: 2.0}, "banned_token_ids": [1], "top_k": 3}, False),
    ],
)
def test_what_needs_history(settings, needs):
    params = SamplingParams(**settings)
    assert params.needs_history == needs
    assert (params.chain(SAID, 3) != params.chain()) == needs


def test_the_coin_needs_a_seed():
    with pytest.raises(ParameterError, match="seed must be an integer to toss"):
        SamplingParams(xtc_probability=0.5, seed=None).chain()


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


def test_greedy_obeys_adjustments_and_ignores_cuts():
    params = FULL.replace(temperature=0, top_k=1, banned_token_ids=[1])
    names = [stage.name for stage in params.chain(SAID, 3).stages]
    assert names[-1] == "temperature"
    assert len(names) == 7
    logits = torch.tensor([1.0, 4.0, 0.0, 2.0, 1.0, 0.0, 0.0, 2.0])
    assert params.chain()(logits).argmax() == 2  # 0.0 with a bias of 3
    assert notes(params, 8)[1] == (
        "temperature is 0: top-k, top-p, min-p, typical-p, top-nσ, XTC have no effect"
    )
    assert params.effective(8)["xtc_threshold"] is None
    assert params.effective(8)["repetition_penalty"] == 1.1


def test_a_draw_can_be_asked_for():
    params = SamplingParams(draw_method="keyed", dialect="xslm")
    assert isinstance(params.draw(), Keyed)
    assert isinstance(params.replace(temperature=0).draw(), Greedy)


def test_each_dialect_has_its_draw():
    assert isinstance(SamplingParams(dialect="xslm").draw(), Choices)
    assert isinstance(SamplingParams(dialect="scratch_llm").draw(), Race)
    assert SamplingParams(seed=8, dialect="transformers").draw().seed == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_k", n) for n in (-1, 0, -(10**400), np.int64(-7))]
    + [("top_p", p) for p in (0, -0.5, 1, 1.5, np.float32(2), INF, -INF, 10**400)],
)
def test_a_scratch_llm_takes_numbers_outside_for_off(name, value):
    off = SamplingParams(dialect="scratch_llm")
    assert SamplingParams(**{name: value}, dialect="scratch_llm") == off
    assert off.replace(**{name: value}) == off
    assert SamplingParams().under("scratch_llm", **{name: value}) == SamplingParams()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_k", 0.5),
        ("top_k", True),
        ("top_k", INF),
        ("top_k", "-1"),
        ("top_p", NAN),
        ("top_p", False),
        ("top_p", "0"),
        ("min_p", 1.5),
    ],
)
def test_a_scratch_llm_still_refuses_what_is_no_such_number(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        SamplingParams(**{name: value}, dialect="scratch_llm")


def test_changes_under_a_models_dialect_leave_it_open():
    assert SamplingParams().under("xslm", seed=-3) == SamplingParams(seed=-3)
    for changes in ({"seed": -3}, {"top_p": 1.5}, {"top_k": -1, "dialect": "mlx"}):
        with pytest.raises(ParameterError, match="must be"):
            SamplingParams().under("transformers", **changes)
    named = SamplingParams(dialect="xslm").under("scratch_llm", seed=-3)
    assert named == SamplingParams(seed=-3, dialect="xslm")


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
        "from sampling_lab.sampling.params import SamplingParams;"
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
    assert notes(params, 5) == (
        "top_k 50 is above the vocabulary: the effective k is 5",
    )
    assert notes(SamplingParams(top_k=5), 5) == ()
    assert SamplingParams(top_k=5).effective(5)["top_k"] == 5


def test_greedy_says_that_the_seed_has_no_effect():
    params = SamplingParams(temperature=0, top_k=50, seed=4)
    assert notes(params, 5)[0] == "temperature is 0 (greedy): the seed has no effect"
    effective = params.effective(5)
    assert effective["temperature"] == 0.0
    assert effective["seed"] is effective["top_k"] is None


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"penalty_window": 64}, "penalty_window has no effect: no penalty is set"),
        (
            {"penalize_prompt": False},
            "penalize_prompt has no effect: no penalty is set",
        ),
        (
            {"xtc_probability": 1.0, "xtc_threshold": 0.6, "dialect": "llama.cpp"},
            "xtc_threshold 0.6 is above 0.5: no two tokens can reach it, so XTC has no "
            "effect",
        ),
        (
            {"min_p": 0.1, "dialect": "xslm"},
            "xslm itself has no min-p: here it is the lab's own",
        ),
        (
            {"no_repeat_ngram_size": 2, "dialect": "vllm"},
            "vllm itself has no no-repeat-ngram: here it is the lab's own",
        ),
    ],
)
def test_a_note_for_what_cannot_matter_or_is_borrowed(settings, note):
    assert notes(SamplingParams(**settings), 50) == (note,)


@pytest.mark.parametrize("name", DIALECTS)
def test_an_engines_own_parameters_are_not_borrowed(name):
    dialect = DIALECTS[name]
    params = FULL.replace(dialect=name, **dict.fromkeys(missing(dialect)))
    assert not [note for note in notes(params, 10**6) if "itself has no" in note]
