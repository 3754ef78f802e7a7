"""The explorer as an instrument, by its widgets' traits: each against a direct call."""

from __future__ import annotations

import asyncio
import csv
import html
import json
import random
from datetime import datetime

import pytest
import torch

from sampling_lab import SamplingParams, generate, load, score
from sampling_lab.counterfactuals import History, what_would_it_take
from sampling_lab.explorer import Explorer, Toy
from sampling_lab.explorer.controls.token_strip import MEASURES, PROMPTS
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from sampling_lab.explorer.presets import presets
from sampling_lab.generation.branches import Tree
from sampling_lab.models.list_checkpoints import list_checkpoints
from tests.explorer.test_explorer import (
    dial,
    generated,
    make_explorer,
    make_model,
    until,
)
from tests.fakes import TableModel
from tests.helpers import ROOT

XSLM = ROOT / "checkpoints/xslm/model.json"
SCRATCH = ROOT / "checkpoints/scratch_llm/tiny_sft.pt"


def alert(explorer):
    """Return what the status line says in red, or ""."""
    told = html.unescape(explorer.status.value)
    return told.partition(">")[2].removesuffix("</span>") if "alert" in told else ""


# Tabs


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_shows_the_librarys_picture_of_what_is_selected(tab):
    explorer = generated()
    explorer.strip.selected = 2
    explorer.tab.value = tab
    expected = Pictures().draw(tab, explorer.view())
    assert explorer.picture.value == expected.png
    assert html.unescape(explorer.caption.value) == expected.caption
    assert explorer.title.value.startswith("step 3 · drew")


def test_only_the_tab_that_is_open_is_drawn(monkeypatch):
    drawn = []
    original = Pictures.draw

    def noted(self, tab, view):
        drawn.append(tab)
        return original(self, tab, view)

    monkeypatch.setattr(Pictures, "draw", noted)
    explorer = generated()
    drawn.clear()
    explorer.tab.value = "Draw"
    dial(explorer, "temperature").slider.value = 0.5
    assert drawn == ["Draw", "Draw"]


def test_the_toy_has_every_tab_but_the_steps_it_lacks():
    toy = Toy()
    assert toy.tab.options == TABS[:-1]
    for tab in toy.tab.options:
        toy.tab.value = tab
        assert toy.status.value == "0 drawn"
        assert toy.picture.value == Pictures().draw(tab, toy.view()).png


# Presets, neutral, and what cannot matter


@pytest.mark.parametrize("temperature", ["1e307", "1e308", "5e-324"])
def test_a_number_far_off_the_slider_is_what_is_shown_and_in_force(temperature):
    explorer = make_explorer()
    dial(explorer, "temperature").box.value = temperature
    assert explorer.params.temperature == float(temperature)
    assert explorer.view().params == explorer.params
    fresh = Pictures().draw("Distribution", explorer.view())
    assert explorer.picture.value == fresh.png
    dial(explorer, "top_k").box.value = "1" + "0" * 400
    assert explorer.params.top_k == 10**400
    dial(explorer, "top_k").box.value = "-3"
    assert "top_k must be" in alert(explorer)
    dial(explorer, "top_k").box.value = "2"
    assert explorer.params.top_k == 2 and "kept " in explorer.caption.value


def test_every_preset_of_the_model_can_be_chosen():
    explorer = make_explorer()
    offered = presets(explorer.model.card)
    names = [name for name, _ in explorer.controls.preset.options[1:]]
    assert names == list(offered)
    for name, fields in offered.items():
        explorer.controls.preset.value = name
        params = explorer.params
        assert {key: getattr(params, key) for key in fields} == fields
        assert explorer.controls.preset.value == name
    explorer.params = explorer.params.replace(top_p=0.123)
    assert explorer.controls.preset.value == ""


def test_neutralise_turns_everything_off_and_says_so():
    params = SamplingParams(temperature=0.4, top_k=3, repetition_penalty=1.3, seed=9)
    explorer = make_explorer(params=params)
    told = explorer.controls.summary.value
    assert "temperature 0.4, top-k 3, repetition penalty 1.3" in told
    explorer.controls.neutralise_button.click()
    assert explorer.params == SamplingParams(seed=9, dialect="transformers")
    assert "neutral" in explorer.controls.summary.value
    assert torch.equal(
        explorer.view().ledger.final_probs, explorer.view().ledger.raw_probs
    )


def greyed(explorer):
    rows = {**explorer.controls.dials, "seed": explorer.controls.seed_row}
    return {n for n, row in rows.items() if "sampling-lab-idle" in row._dom_classes}


def test_controls_that_cannot_matter_are_greyed_with_the_reason():
    explorer = make_explorer()
    assert greyed(explorer) == set()
    explorer.params = explorer.params.replace(temperature=0)
    assert greyed(explorer) == {"top_k", "top_p", "min_p", "seed"}
    assert "(temperature is 0)" in explorer.controls.summary.value
    explorer.params = explorer.params.replace(temperature=1, top_k=1)
    assert greyed(explorer) == {"top_p", "min_p", "seed"}
    assert "(top-k left 1 token)" in explorer.controls.summary.value
    explorer.params = explorer.params.replace(top_k=None)
    assert greyed(explorer) == set()


def test_a_greyed_control_can_still_be_used():
    explorer = make_explorer(params=SamplingParams(temperature=0))
    dial(explorer, "top_p").slider.value = 0.5
    assert explorer.params.top_p == 0.5 and explorer.params.temperature == 0


def test_a_step_as_it_was_greys_nothing_for_its_own_settings():
    explorer = make_explorer(params=SamplingParams(top_k=1), max_new_tokens=4)
    explorer.generate()
    explorer.params = explorer.params.replace(top_k=None)
    explorer.strip.selected = 1
    assert explorer.view().ledger.kept_count == 1
    assert greyed(explorer) == set()


# Chat, prompt, tokens of the prompt


def test_chat_asks_by_the_template_with_its_system_line():
    explorer = Explorer(load(SCRATCH), prompt="What is 2 + 2?", max_new_tokens=4)
    raw = explorer.model.prompt_ids("What is 2 + 2?")
    assert [chip["id"] for chip in explorer.strip.tokens] == raw
    explorer.prompt_box.mode.value = "chat"
    explorer.generate()
    chat = [{"role": "user", "content": "What is 2 + 2?"}]
    expected = generate(explorer.model, chat, explorer.params, max_new_tokens=4)
    assert explorer.generation == expected
    assert explorer.state["mode"] == "chat"


def test_a_model_without_a_template_offers_no_chat():
    explorer = make_explorer()
    assert explorer.prompt_box.mode.disabled and explorer.prompt_box.mode.value == "raw"
    assert explorer.prompt_box.system.layout.visibility == "hidden"


def test_the_system_line_is_a_message_of_its_own(monkeypatch):
    asked = []
    model = make_model(chat=True)
    monkeypatch.setattr(
        model, "chat_ids", lambda m: asked.append(m) or [0], raising=False
    )
    explorer = Explorer(model, prompt="a")
    explorer.prompt_box.mode.value = "chat"
    explorer.prompt_box.system.value = "be brief"
    assert [m["role"] for m in asked[-1]] == ["system", "user"]
    explorer.prompt_box.system.value = ""
    assert [m["role"] for m in asked[-1]] == ["user"]


def test_the_prompts_tokens_are_shown_scored_or_hidden():
    explorer = generated()
    prompt = explorer.generation.prompt_ids
    assert len(explorer.strip.tokens) == len(prompt) + 6
    assert "raw" not in explorer.strip.tokens[1]
    explorer.strip.prompt = "scored"
    _, *expected = score(explorer.model, prompt, explorer.params)
    shown = explorer.strip.tokens[1 : len(prompt)]
    assert [chip["raw"] for chip in shown] == [step.raw_prob for step in expected]
    explorer.strip.prompt = "hidden"
    assert len(explorer.strip.tokens) == 6


def test_a_newer_prompt_is_scored_and_the_older_one_given_up():
    async def scenario():
        explorer = make_explorer(prompt="ab" * 200)
        explorer.strip.prompt = "scored"
        await until(lambda: len(explorer.scorer.scores) > 3)
        assert len(explorer.scorer.scores) < 400
        explorer.prompt.value = "ba c"
        await until(lambda: len(explorer.scorer.scores) == 3)
        await until(lambda: "raw" in explorer.strip.tokens[-1])
        assert [chip["text"] for chip in explorer.strip.tokens] == ["b", "a", "␣c"]

    asyncio.run(scenario())


def test_nothing_is_scored_while_tokens_come_in():
    async def scenario():
        explorer = make_explorer(prompt="ab" * 400, max_new_tokens=10_000)
        explorer.strip.prompt = "scored"
        await until(lambda: len(explorer.scorer.scores) > 3)
        explorer.generate()
        await until(lambda: len(explorer.generation.steps) > 3)
        count = len(explorer.scorer.scores)
        await until(lambda: len(explorer.generation.steps) > 30)
        assert len(explorer.scorer.scores) == count < 800
        explorer.stop()
        await until(lambda: len(explorer.scorer.scores) == 800)

    asyncio.run(scenario())


# Models


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
    assert explorer.prompt.value == "The sky is"  # the example of its own
    assert explorer.max_new_tokens.value == 256  # its own default
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
    assert explorer.picker.path.value.endswith("nothing.json")  # to be mended
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


# Branches, forks, files


def test_any_token_of_the_vocabulary_can_be_searched_and_taken():
    explorer = generated()
    explorer.strip.selected = 1
    explorer.forks.query.value = "SCRIPT"
    assert [token_id for _, token_id in explorer.forks.alternatives.options] == [5]
    explorer.fork()
    assert explorer.generation.token_ids[1] == 5
    explorer.strip.selected = 0
    explorer.forks.query.value = "no such token"
    assert explorer.forks.alternatives.options == ()
    assert explorer.forks.fork_button.disabled
    explorer.forks.query.value = ""
    assert not explorer.forks.fork_button.disabled


def test_explain_says_what_became_of_a_token_and_what_it_would_take():
    explorer = generated()
    explorer.strip.selected = 2
    step, token_id = explorer.generation.steps[2], explorer.forks.choice
    explorer.forks.explain_button.click()
    ids = explorer.generation.prompt_ids + explorer.generation.token_ids[:2]
    logits, history = explorer.model.logits(ids), (ids, 2)
    expected = what_would_it_take(
        logits, explorer.params, token_id, drawn=step.drawn, history=History(*history)
    )
    told = html.unescape(explorer.forks.why.value).split("<br>")
    assert told == [
        f"{explorer.model.token_text(token_id)}: {step.ledger().why(token_id)}",
        expected.sentence(explorer.model.token_text),
    ]
    explorer.forks.alternatives.index = 1
    assert explorer.forks.why.value == ""
    explorer.explain()
    explorer.strip.selected = 3
    assert explorer.forks.why.value == ""


def test_explain_says_what_it_cannot_tell():
    explorer = make_explorer(params=SamplingParams(seed=None))
    assert explorer.forks.explain_button.disabled
    explorer.generate()
    explorer.strip.selected = 2
    explorer.params = explorer.params.replace(top_p=0.5)  # and still no seed
    explorer.explain()
    assert "the seed is drawn anew" in explorer.forks.why.value


def test_two_branches_stand_beside_each_other_where_they_part():
    explorer = generated()
    explorer.strip.selected = 2
    explorer.fork()
    assert explorer.branch_list.comparison.value == ""
    explorer.branch_list.other.value = 1
    told = explorer.branch_list.comparison.value
    assert "≠ at token 3" in told and told.count("<mark") == 1
    explorer.branch_list.branch.value = 1
    assert explorer.branch_list.other.value == 0  # a text beside itself says nothing
    assert explorer.branch_list.comparison.value == ""


def test_saved_files_hold_the_picture_its_table_and_every_text(tmp_path):
    explorer = generated()
    explorer.strip.selected = 0
    explorer.fork()
    explorer.export.folder.value = str(tmp_path / "new" / "folder")
    explorer.save()
    assert str(tmp_path / "new" / "folder" / "table-1.png") in explorer.status.value
    explorer.save()
    names = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    suffixes = ("csv", "json", "png")
    assert names == [f"table-{n}.{suffix}" for n in (1, 2) for suffix in suffixes]
    stem = tmp_path / "new" / "folder" / "table-1"
    assert stem.with_suffix(".png").read_bytes() == explorer.picture.value
    with stem.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = explorer.shown.table
    assert [float(row["final"]) for row in rows] == [row["final"] for row in expected]
    tree = Tree.load(stem.with_suffix(".json"))
    assert [b.generation for b in tree] == [b.generation for b in explorer.branches]


@pytest.mark.parametrize("folder", ["~nobody-has-this-name/x", "a\0b", "x" * 300])
def test_a_folder_that_cannot_be_is_told_of(folder):
    explorer = generated()
    explorer.export.folder.value = folder
    explorer.save()
    assert "folder must be one that can be written to" in alert(explorer)


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "~nobody-has-this-name/x", "/"])
def test_a_path_that_cannot_be_is_told_of(path):
    explorer = generated()
    explorer.picker.path.value = path
    assert alert(explorer) != "" and explorer.model.card.name == "table"
    assert not explorer.picker.path.disabled
    explorer.generate()
    assert alert(explorer) == ""


def test_a_branch_that_is_gone_is_told_of():
    explorer = generated()
    explorer.go_to(7)
    assert "branch must be one of those in the tree (1), got 7" in alert(explorer)


def test_nothing_is_saved_where_nothing_can_be_written(tmp_path):
    explorer = generated()
    (tmp_path / "file").write_text("")
    explorer.export.folder.value = str(tmp_path / "file")
    explorer.save()
    assert "folder must be one that can be written to" in alert(explorer)
    explorer.export.folder.value = str(tmp_path / "good")
    explorer.save()
    assert alert(explorer) == ""


def upload(explorer, content, name="texts.json"):
    """Do what a page does when a person chooses a file."""
    file = {
        "name": name,
        "type": "application/json",
        "size": len(content),
        "last_modified": datetime(2020, 1, 1),
        "content": memoryview(content),
    }
    explorer.branch_list.upload.set_trait("value", (file,))


def test_texts_from_a_file_are_shown_read_and_forked():
    first = generated()
    first.strip.selected = 2
    first.fork()
    content = json.dumps(first.branches.to_dict()).encode()
    explorer = make_explorer()
    upload(explorer, content)
    assert explorer.generation == first.generation
    assert len(explorer.branches) == 2 and alert(explorer) == ""
    explorer.strip.selected = 4
    assert explorer.title.value.startswith("step 5 · drew")
    explorer.fork()
    assert len(explorer.branches) == 3
    assert explorer.generation.token_ids[:4] == first.generation.token_ids[:4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not JSON", "texts.json is not a JSON file"),
        (b"[]", "this must be JSON of the format"),
        (b'{"format": "sampling_lab branches", "version": 1, "branches": []}', "empty"),
        (b"[" * 100_000, "texts.json is not a JSON file"),
    ],
)
def test_a_file_that_is_something_else_changes_nothing(content, message):
    explorer = generated()
    before = explorer.generation
    upload(explorer, content)
    assert message in alert(explorer)
    assert explorer.generation == before
    explorer.copy_code()
    assert alert(explorer) == ""


# Code, state


def test_copied_code_is_what_the_session_says_and_goes_with_the_text():
    explorer = generated()
    assert explorer.export.code.layout.display == "none"
    explorer.export.copy_button.click()
    assert explorer.export.code.value == explorer.code("sampling_lab")
    assert explorer.export.code.layout.display == "flex"
    explorer.export.target.value = "cli"
    assert explorer.export.code.value.startswith("sampling-lab generate")
    explorer.params = explorer.params.replace(seed=8)
    assert explorer.export.code.value == ""
    assert explorer.export.code.layout.display == "none"


def test_code_that_cannot_be_had_is_told_and_the_next_success_takes_it_away():
    explorer = generated()
    explorer.strip.selected = 1
    explorer.fork()
    explorer.export.target.value = "transformers"
    explorer.copy_code()
    assert "choose the notebook cell" in alert(explorer)
    assert explorer.export.code.value == ""
    explorer.export.target.value = "sampling_lab"
    explorer.copy_code()
    assert alert(explorer) == "" and "fork(" in explorer.export.code.value


def test_the_state_is_what_is_on_the_screen_and_plain_data():
    explorer = generated()
    explorer.tab.value = "Steps"
    explorer.strip.selected = 3
    explorer.strip.measure = "rank"
    state = json.loads(json.dumps(explorer.state, allow_nan=False))
    assert SamplingParams(**state["params"]) == explorer.params
    assert state["text"] == explorer.generation.text
    assert state["token_ids"] == list(explorer.generation.token_ids)
    assert state["title"] == explorer.view().title
    assert state["tab"] == "Steps" and state["selected"] == 3
    assert state["measure"] == "rank" and state["branch"] == 1
    assert state["is_playing"] is False and state["problems"] == []
    explorer.picker.path.value = "nothing/here.json"
    assert "there is no file" in explorer.state["problems"][0]


# Any order of things


def actions(explorer, luck):
    """Return what a person can do, as (name, action) pairs."""
    controls, strip = explorer.controls, explorer.strip

    def pick(box):
        options = [value for _, value in box._options_full]
        if options:
            box.value = luck.choice(options)

    def dials():
        dial = luck.choice(list(controls.dials.values()))
        low, high = dial.slider.min, dial.slider.max
        dial.slider.value = luck.choice([low, high, (low + high) / 2])

    def typed():
        box = luck.choice([*controls.dials.values()]).box
        box.value = luck.choice(["0", "-1", "nan", "1e-9", "7", "off", "x", "", "0.5"])

    def select():
        strip.selected = luck.randrange(-1, 9)

    def tab():
        explorer.tab.value = luck.choice(TABS)

    def prompt():
        explorer.prompt.value = luck.choice(["a", "ab", "", "<b>x", "ba c"])

    def count():
        explorer.max_new_tokens.value = luck.choice([1, 3, 8])

    def measure():
        strip.measure = luck.choice(MEASURES)
        strip.prompt = luck.choice(PROMPTS)

    def search():
        explorer.forks.query.value = luck.choice(["", "b", "#3", "nothing"])

    return [
        dials,
        typed,
        select,
        tab,
        prompt,
        count,
        measure,
        search,
        lambda: pick(controls.preset),
        lambda: pick(controls.dialect),
        lambda: pick(explorer.forks.alternatives),
        lambda: pick(explorer.branch_list.branch),
        lambda: pick(explorer.branch_list.other),
        lambda: pick(explorer.export.target),
        controls.new_seed,
        controls.neutralise,
        lambda: controls.set("seed", None),
        explorer.generate,
        explorer.step,
        explorer.stop,
        explorer.reset,
        explorer.fork,
        explorer.explain,
        explorer.remove,
        explorer.copy_code,
    ]


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_actions_leaves_a_panel_that_tells_the_truth(seed):
    luck, explorer = random.Random(seed), make_explorer(max_new_tokens=4)
    for _ in range(150):
        luck.choice(actions(explorer, luck))()
        told = alert(explorer)
        assert "Error" not in told, told  # a sentence, never the name of a type
    explorer.prompt.value = "ab"
    explorer.controls.neutralise()
    explorer.params = explorer.params.replace(seed=1, dialect="transformers")
    explorer.max_new_tokens.value = 5
    explorer.reset()
    explorer.generate()
    expected = generate(explorer.model, "ab", explorer.params, max_new_tokens=5)
    assert alert(explorer) == "" and explorer.generation == expected
    assert (
        explorer.picture.value
        == Pictures().draw(explorer.tab.value, explorer.view()).png
    )


def test_the_steps_of_a_text_are_shown_as_it_was_whatever_the_settings_are_now():
    explorer = generated()
    explorer.strip.selected = 1
    explorer.tab.value = "Steps"
    assert explorer.title.value.startswith("step 2 · drew")
    picture = explorer.picture.value
    explorer.params = explorer.params.replace(temperature=0.3)
    assert explorer.title.value == "the text, as it was written"
    assert explorer.picture.value == picture
