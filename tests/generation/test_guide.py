"""Structured output: each text is one that the grammar allows, and tells its cost."""

import json
import re

import pytest

from sampling_lab import SamplingParams, fork, generate, load, replay, score
from sampling_lab.cli.main import main
from sampling_lab.errors import ParameterError
from sampling_lab.sampling.settings_text import parse_settings
from tests.helpers import ROOT

XSLM = ROOT / "checkpoints/xslm/model.json"
PROMPT = "Q: hi\nA: "
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"sun": {"enum": ["warm", "hot"]}, "n": {"type": "integer"}},
        "required": ["sun", "n"],
        "additionalProperties": False,
    }
)


@pytest.fixture(scope="module")
def model():
    return load(XSLM)


@pytest.fixture(scope="module")
def scratch():
    return load(ROOT / "checkpoints/scratch_llm/tiny_sft.pt")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "pattern", ["(yes|no)", "the (sun|cat) is (hot|warm)[.]", "[a-c]{2,4}", "a?b?"]
)
def test_a_text_matches_its_regular_expression(model, pattern, seed):
    params = SamplingParams(grammar=f"regex:{pattern}", temperature=3.0, seed=seed)
    result = generate(model, PROMPT, params)
    assert re.fullmatch(pattern, result.text), result.text
    assert result.finish_reason == "stop"
    assert replay(result, model).same


@pytest.mark.parametrize("seed", range(3))
def test_json_follows_its_schema(scratch, seed):
    params = SamplingParams(grammar=f"json:{SCHEMA}", top_k=50, seed=seed)
    result = generate(scratch, "The sun", params, max_new_tokens=40)
    if result.finish_reason == "stop":
        found = json.loads(result.text)
        assert found["sun"] in ("warm", "hot") and isinstance(found["n"], int)
    else:
        assert result.text.lstrip().startswith("{")


def test_a_lark_grammar(model):
    grammar = 'lark:start: "the " ("sun" | "cat")'
    params = SamplingParams(grammar=grammar, temperature=9.0)
    texts = {
        generate(model, PROMPT, params.replace(seed=seed)).text for seed in range(12)
    }
    assert texts == {"the sun", "the cat"}


def test_each_step_tells_what_was_forbidden(model):
    params = SamplingParams(grammar="regex:(yes|no)", seed=1)
    result = generate(model, PROMPT, params)
    for step in result.all_steps:
        ledger = step.ledger()
        (found,) = ledger.evidence.values()
        allowed = ledger.stages[0].after.kept
        mass = ledger.raw_probs[~allowed].double().sum().item()
        assert found["forbidden mass"] == pytest.approx(mass, abs=1e-6)
        assert found["tokens"] == (~allowed).sum()
    assert 0 < result.steps[0].ledger().evidence["grammar"]["forbidden mass"] < 1


def test_a_fork_goes_on_under_the_grammar(model):
    params = SamplingParams(grammar="regex:(yes|no)", seed=1)
    result = generate(model, PROMPT, params)
    same = fork(model, result, 0, result.token_ids[0]).to_the_end()
    assert same.token_ids == result.token_ids
    # After a token that no text of the grammar begins with, nothing is forbidden.
    other = model.vocabulary.index("c")
    steps = fork(model, result, 0, other).to_the_end().steps
    assert steps[1].ledger().evidence["grammar"]["tokens"] == 0


def test_scores_know_the_grammar(model):
    params = SamplingParams(grammar="regex:(yes|no)")
    steps = [step for step in score(model, "no", params) if step]
    assert all("grammar" in step.ledger().evidence for step in steps)


@pytest.mark.parametrize(
    "grammar", [f"json:{SCHEMA}", "regex:a, b = c", 'lark:start: "\\n, top-k 3"']
)
def test_a_grammar_is_read_back_from_text(grammar):
    params = SamplingParams(grammar=grammar, top_k=5)
    assert parse_settings(params.describe()) == params


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("yes|no", "grammar must be a text that begins with regex:, json:, lark:, got"),
        (7, "grammar must be a text that begins with"),
        ("regex:[", "grammar must be a regex that works, got: "),
        ("json:{", "grammar must be a json that works, got: "),
        ("lark:start: foo", "grammar must be a lark that works, got: "),
        ("regex:" + "(" * 9999, "grammar must be a regex that works, got: "),
    ],
)
def test_a_wrong_grammar_is_one_sentence(model, grammar, message):
    with pytest.raises(ParameterError) as caught:
        generate(model, PROMPT, SamplingParams(grammar=grammar))
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) <= 600 and "\n" not in str(caught.value)


def test_a_grammar_needs_a_stop_token_and_a_model(model):
    params = SamplingParams(grammar="regex:no")
    with pytest.raises(ParameterError, match="grammar needs a stop token"):
        generate(model, PROMPT, params, stop_token_ids=())
    with pytest.raises(ParameterError, match="grammar needs a model's tokens"):
        params.chain()


def test_the_command_line_takes_a_grammar(capsys):
    grammar = ("--grammar", "regex:(yes|no)", "--seed", "1")
    common = ("generate", "--checkpoint", str(XSLM), *grammar)
    assert main([*common, "--text"]) == 0
    assert capsys.readouterr().out in ("yes\n", "no\n")
    assert main([*common, "--steps", "2"]) == 0
    first, *_ = json.loads(capsys.readouterr().out)["steps"]
    assert 0 < first["evidence"]["grammar"]["forbidden mass"] < 1
