"""One grammar for a setting: Compare, the chat, the command line and boxes agree."""

import pytest

from sampling_lab import SamplingParams
from sampling_lab.cli.main import build_parser
from sampling_lab.cli.options import given_parameters
from sampling_lab.errors import ParameterError
from sampling_lab.explorer.controls.settings import Controls
from sampling_lab.sampling.parameters import PARAMETERS
from sampling_lab.sampling.settings_text import parse_fields, parse_lines
from tests.cli.test_repl import talk

BEFORE = SamplingParams(temperature=0.3, top_k=3, seed=1, dialect="transformers")


def in_compare(name, text):
    (params,) = parse_lines(f"{name} {text}")
    return params


def with_an_equals_sign(name, text):
    (params,) = parse_lines(f"{name}={text}")
    return params


def in_the_chat(name, text):
    _, remarks, conversation = talk(f"/set {name} {text}", params=BEFORE)
    if remarks[0].startswith("error: "):
        assert conversation.params == BEFORE
        raise ParameterError(remarks[0].removeprefix("error: "))
    return conversation.params


def on_the_command_line(name, text):
    option = name.lower().replace("_", "-").replace(" ", "-")
    command = ["generate", "--checkpoint", "x", "--prompt", "a", f"--{option}", text]
    return SamplingParams(**given_parameters(build_parser().parse_args(command)))


def in_a_box(name, text):
    controls = Controls(BEFORE, 1000)
    key = name.lower().replace("-", "_")
    box = controls.seed if key == "seed" else controls.dials[key].box
    box.value = text
    if controls.problem:
        assert controls.params == BEFORE
        raise ParameterError(controls.problem)
    return controls.params


EVERYWHERE = [in_compare, with_an_equals_sign, in_the_chat, on_the_command_line]
BOXES = ("temperature", "top_k", "top_p", "min_p", "seed")
TEXTS = [
    ("temperature", "0.7", 0.7),
    ("Temperature", "2", 2.0),
    ("temperature", "off", 1.0),
    ("top-k", "40", 40),
    ("top_k", "off", None),
    ("TOP-P", ".9", 0.9),
    ("top_p", "none", None),
    ("min-p", "5e-2", 0.05),
    ("seed", "8", 8),
    ("seed", "18446744073709551615", 2**64 - 1),
    ("seed", "random", None),
    ("dialect", "XSLM", "xslm"),
    ("xtc_probability", "0.5", 0.5),
    ("xtc-threshold", "0.2", 0.2),
    ("top_n_sigma", "1.5", 1.5),
    ("presence-penalty", "-0.5", -0.5),
    ("penalize_prompt", "no", False),
    ("penalize-prompt", "yes", True),
    ("logit_bias", '{"7": 1}', ((7, 1.0),)),
    ("logit_bias", '{"7": 1, "2": -1.5}', ((2, -1.5), (7, 1.0))),
    ("logit-bias", "7+1 2-1.5", ((2, -1.5), (7, 1.0))),
    ("logit-bias", "7=1,2=-1.5", ((2, -1.5), (7, 1.0))),
    ("banned_token_ids", "3 4", (3, 4)),
    ("banned_token_ids", "3, 4", (3, 4)),
    ("banned_token_ids", "[3, 4]", (3, 4)),
    ("no-repeat-ngram-size", "3", 3),
    ("draw_method", "keyed", "keyed"),
]
REFUSED = [
    ("temperature", "hot", "temperature must be a finite number >= 0, got 'hot'"),
    ("temperature", "0,7", "temperature must be a finite number >= 0, got '0,7'"),
    ("temperature", "nan", "temperature must be a finite number >= 0, got nan"),
    ("temperature", "1_0", "temperature must be a finite number >= 0, got '1_0'"),
    ("top-p", "1.5", "top_p must be in (0, 1], got 1.5"),
    ("top-k", "2.5", "top_k must be an integer >= 1"),
    ("seed", "1.5", "seed must be an integer in [0, 2**64) or None, got 1.5"),
    ("dialect", "klingon", "dialect must be one of"),
    ("draw_method", "lot", "draw_method must be one of 'choices', 'race'"),
    ("penalize-prompt", "maybe", "penalize_prompt must be one of True, False, None"),
    ("logit_bias", "5+x", "logit_bias must be a mapping"),
    ("banned_token_ids", "me", "banned_token_ids must be token ids"),
]


def ways(texts):
    """Return each row with each way in which it can be typed."""
    return [
        pytest.param(way, name, text, expected, id=f"{way.__name__}-{name}-{text}")
        for name, text, expected in texts
        for way in EVERYWHERE + [in_a_box] * (name.lower().replace("-", "_") in BOXES)
    ]


@pytest.mark.parametrize(("way", "name", "text", "value"), ways(TEXTS))
def test_a_setting_is_typed_alike_everywhere(way, name, text, value):
    assert getattr(way(name, text), name.lower().replace("-", "_")) == value


@pytest.mark.parametrize(("way", "name", "text", "sentence"), ways(REFUSED))
def test_what_a_rule_refuses_is_one_sentence_everywhere(way, name, text, sentence):
    with pytest.raises(ParameterError) as refusal:
        way(name, text)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_named_by_its_label_or_its_field(name):
    parameter = PARAMETERS[name]
    for spelled in (parameter.label, name, name.replace("_", "-"), name.upper()):
        assert parse_fields(f"{spelled}: off") == parse_fields(f"{name} off")


def test_several_settings_are_set_at_once():
    _, remarks, conversation = talk("/set temperature 0.7, top-p 0.9", params=BEFORE)
    assert conversation.params == BEFORE.replace(temperature=0.7, top_p=0.9)
    assert remarks == ["temperature 0.7, top-k 3, top-p 0.9, seed 1, at most 64 tokens"]


def test_of_several_settings_a_bad_one_changes_none():
    _, remarks, conversation = talk("/set max-new-tokens 9, top-p 7", params=BEFORE)
    assert (conversation.params, conversation.max_new_tokens) == (BEFORE, 64)
    assert remarks == ["error: top_p must be in (0, 1], got 7"]


def test_neutral_turns_off_what_was_on_in_the_chat():
    params = BEFORE.replace(repetition_penalty=1.2)
    conversation = talk("/set neutral, min-p 0.1", params=params)[2]
    assert conversation.params == SamplingParams(
        min_p=0.1, seed=1, dialect="transformers"
    )
