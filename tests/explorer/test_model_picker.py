"""Another model in the explorer: chosen, typed, refused, and far smaller."""

from __future__ import annotations

import pytest
import torch

from sampling_lab import SamplingParams, generate
from sampling_lab.explorer import Explorer
from sampling_lab.models.list_checkpoints import list_checkpoints
from tests.explorer.panels import alert, dial, generated, make_explorer
from tests.fakes import TableModel
from tests.helpers import ROOT

XSLM = ROOT / "checkpoints/xslm/model.json"
SCRATCH = ROOT / "checkpoints/scratch_llm/tiny_sft.pt"


def test_the_card_names_the_model():
    explorer = make_explorer()
    card = explorer.picker.card
    assert card.value == "table · fake · 64 parameters · vocabulary 8 · context " + (
        "unlimited · float32 · dialect transformers"
    )
    assert repr(explorer) == "Explorer(table)"


def test_the_checkpoints_that_were_found_can_be_chosen(monkeypatch):
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
    assert explorer.prompt.value == "The sky is"  # this model's example
    assert explorer.max_new_tokens.value == 256  # its default
    assert dial(explorer, "top_k").box.value == "40"
    explorer.generate()
    expected = generate(explorer.model, "The sky is", explorer.params)
    assert explorer.generation == expected


def test_a_path_is_typed_and_what_a_person_wrote_stays():
    explorer = Explorer(SCRATCH, prompt="hello", max_new_tokens=9)
    explorer.picker.path.value = str(XSLM)
    assert explorer.model.card.vocab_size == 40
    assert explorer.prompt.value == "hello" and explorer.max_new_tokens.value == 9
    assert explorer.picker.path.value == ""
    assert explorer.prompt_box.mode.value == "raw"


def test_a_model_that_cannot_be_loaded_leaves_the_old_one(tmp_path):
    explorer = generated()
    before = explorer.generation
    explorer.picker.path.value = str(tmp_path / "nothing.json")
    assert "there is no file" in alert(explorer)
    assert explorer.picker.path.value.endswith("nothing.json")  # to be corrected
    assert "table" in explorer.picker.card.value
    assert not explorer.picker.path.disabled
    assert explorer.generation == before
    explorer.step()  # the next thing that goes well takes the error away
    assert alert(explorer) == ""


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
def test_a_path_that_cannot_exist_is_an_error(path):
    explorer = generated()
    explorer.picker.path.value = path
    assert alert(explorer) != "" and explorer.model.card.name == "table"
    assert not explorer.picker.path.disabled
    explorer.generate()
    assert alert(explorer) == ""
