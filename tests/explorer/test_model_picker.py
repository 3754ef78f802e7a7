"""Another model in the explorer: chosen, typed, refused, and far smaller."""

from __future__ import annotations

import pytest
import torch

from sampling_lab import SamplingParams, generate
from sampling_lab.explorer import Explorer
from sampling_lab.models.list_checkpoints import list_checkpoints
from tests.explorer.panels import Case, alert, cases, dial, enter, generated, has, press
from tests.fakes import TableModel
from tests.helpers import ROOT

XSLM = ROOT / "checkpoints/xslm/model.json"
SCRATCH = ROOT / "checkpoints/scratch_llm/tiny_sft.pt"


@cases(
    Case(
        "the card names the model",
        [],
        {
            "picker.card.value": "table · fake · 64 parameters · vocabulary 8 · "
            "context unlimited · float32 · dialect transformers",
            "line": "Explorer(table)",
        },
    ),
    Case(
        "a path is typed and what a person wrote stays",
        [enter("picker.path", str(XSLM))],
        {
            "model.card.vocab_size": 40,
            "prompt": "hello",
            "max_new_tokens": 9,
            "picker.path.value": "",
            "mode": "raw",
        },
        given=lambda: Explorer(SCRATCH, prompt="hello", max_new_tokens=9),
    ),
    Case(
        "a model that cannot be loaded leaves the old one",
        [
            enter("picker.path", "no/where/nothing.json"),
            {
                "alert": has("there is no file"),
                "picker.path.value": "no/where/nothing.json",  # to be corrected
                "picker.card.value": has("table"),
                "picker.path.disabled": False,
                "steps": 6,
            },
            press("Step"),  # the next action that succeeds takes the error away
        ],
        {"alert": ""},
        given=generated,
    ),
)
def test_model_picker(case):
    case.check()


def test_the_checkpoints_at_hand_can_be_chosen(monkeypatch):
    monkeypatch.chdir(ROOT)
    explorer = Explorer(XSLM, params=SamplingParams(temperature=0.7, top_k=40, seed=3))
    paths = [value for _, value in explorer.picker.checkpoint.options[1:]]
    assert paths == [str(path) for path in list_checkpoints()]
    assert explorer.picker.checkpoint.value == "checkpoints/xslm/model.json"
    explorer.generate()
    explorer.picker.checkpoint.value = "checkpoints/scratch_llm/tiny_sft.pt"
    assert explorer.model.card.name == "tiny_sft"
    assert explorer.params == SamplingParams(
        temperature=0.7, top_k=40, seed=3, dialect="scratch_llm"
    )
    assert len(explorer.branches) == 0
    assert explorer.status.value.startswith("dropped 1 text of XSLM")
    assert "vocabulary 50,304" in explorer.picker.card.value
    assert explorer.prompt.value == "The sky is"  # the example of this model
    assert explorer.max_new_tokens.value == 256  # and its default
    assert dial(explorer, "top_k").box.value == "40"
    explorer.generate()
    expected = generate(explorer.model, "The sky is", explorer.params)
    assert explorer.generation == expected


def test_a_tiny_model_takes_controls_that_were_set_for_a_large_one():
    explorer = Explorer(SCRATCH, params=SamplingParams(top_k=3000, logit_bias={9: 1}))
    drawn = []
    explorer.picture.observe(lambda change: drawn.append(change), "value")
    pieces = [bytes([97 + at]) for at in range(5)]
    explorer.load_model(TableModel(torch.randn(5, 5).abs(), pieces))
    assert alert(explorer) != ""  # it has no token for the prompt
    explorer.prompt.value = "ab"
    assert len(drawn) == 1
    assert alert(explorer) == "" and explorer.params.top_k == 3000
    assert explorer.params.logit_bias is None
    slider = dial(explorer, "top_k").slider
    assert slider.value == slider.max == 4
    assert "kept 5 of 5" in explorer.caption.value
    slider.value = 1
    assert explorer.params.top_k == 2


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "~nobody-has-this-name/x", "/"])
def test_a_path_that_cannot_be_is_told_of(path):
    explorer = generated()
    explorer.picker.path.value = path
    assert alert(explorer) != "" and explorer.model.card.name == "table"
    assert not explorer.picker.path.disabled
    explorer.generate()
    assert alert(explorer) == ""
