"""Other tokens at a step, the branches they make, and branches from a file."""

from __future__ import annotations

import asyncio
import html
import json
from datetime import datetime

import pytest
import torch

from sampling_lab import SamplingParams, fork
from sampling_lab.counterfactuals import History, what_would_it_take
from tests.explorer.panels import alert, generated, make_explorer
from tests.helpers import until


def test_a_selected_token_shows_its_own_step_as_it_was():
    explorer = generated()
    step = explorer.generation.steps[2]
    explorer.strip.selected = 2
    assert explorer.title.value == html.escape(f"step 3 · drew {step.token_text}")
    view = explorer.view()
    assert view.chosen == step.token_id
    assert torch.equal(view.ledger.final_probs, step.ledger().final_probs)
    explorer.strip.selected = -1
    assert explorer.title.value.startswith("step 6 · ")


def test_the_alternatives_are_the_other_tokens_the_likeliest_first():
    explorer = generated()
    explorer.strip.selected = 1
    step = explorer.generation.steps[1]
    ids = [token_id for _, token_id in explorer.forks.alternatives.options]
    rows = step.ledger().table(30)
    assert ids == [r["token_id"] for r in rows if r["token_id"] != step.token_id]
    explorer.strip.selected = -1
    assert explorer.forks.alternatives.options == ()
    assert explorer.forks.fork_button.disabled


def test_a_fork_is_the_librarys_own():
    explorer = generated()
    parent = explorer.generation
    explorer.strip.selected = 2
    token_id = explorer.forks.choice
    explorer.fork()
    expected = fork(explorer.model, parent, 2, token_id).to_the_end()
    assert explorer.generation.token_ids == expected.token_ids
    assert explorer.generation.steps[2].is_given
    assert explorer.strip.forks == [2]
    assert explorer.strip.selected == -1
    label = f"step 3: {expected.steps[2].token_text}"
    assert label in explorer.branch_list.branch.label


def test_branches_can_be_gone_back_to_and_removed():
    explorer = generated()
    first = explorer.generation
    explorer.strip.selected = 0
    explorer.fork()
    second = explorer.generation
    assert second.token_ids != first.token_ids
    explorer.branch_list.branch.value = 1
    assert explorer.generation == first
    assert [c["id"] for c in explorer.strip.tokens[-6:]] == list(first.token_ids)
    explorer.go_to(2)
    assert explorer.generation == second
    explorer.remove()
    assert explorer.generation == first and len(explorer.branches) == 1
    explorer.remove()
    assert explorer.generation is None and explorer.status.value == "ready"


def test_a_fork_without_a_selected_token_does_not_go_on_with_the_text():
    explorer = make_explorer()
    explorer.step()
    before = explorer.generation
    explorer.fork()
    assert explorer.generation == before


@pytest.mark.parametrize(
    "leave", [lambda panel: panel.go_to(1), lambda panel: panel.remove()]
)
def test_a_text_that_was_stopped_does_not_go_on_when_it_is_shown_during_a_run(leave):
    async def scenario():
        explorer = make_explorer(max_new_tokens=500)
        explorer.generate()
        await until(lambda: explorer.generation.steps)
        explorer.stop()
        stopped = await explorer.finished()
        explorer.generate()
        await until(lambda: explorer.generation.steps)
        leave(explorer)
        assert await explorer.finished() == stopped
        assert "stopped: another text is shown" in explorer.status.value

    asyncio.run(scenario())


@pytest.mark.parametrize("dialect", ["transformers", "xslm"])
@pytest.mark.parametrize(
    "changes", [{"temperature": 0.3}, {"seed": 5}, {"temperature": 0}, {"top_k": 2}]
)
def test_a_selected_step_shows_what_other_settings_would_make_of_it(changes, dialect):
    explorer = make_explorer(max_new_tokens=6)
    explorer.params = explorer.params.replace(dialect=dialect, temperature=2)
    explorer.generate()
    explorer.strip.selected = 3
    explorer.params = explorer.params.replace(**changes)
    assert explorer.title.value.startswith("step 4 with these settings · ")
    # A fork that takes the token before as it was has the same luck from there on.
    parent, before = explorer.generation, explorer.generation.token_ids[2]
    _, step = fork(explorer.model, parent, 2, before, explorer.params, max_new_tokens=4)
    view = explorer.view()
    assert view.chosen == step.token_id
    assert torch.equal(view.ledger.final_probs, step.ledger().final_probs)
    was = parent.steps[3]
    is_same = step.token_id == was.token_id
    told = ", as it was" if is_same else f", in place of {was.token_text}"
    assert view.title.endswith(told)
    explorer.strip.selected = 1
    assert explorer.title.value.startswith("step 2 · drew ")


def test_a_fork_goes_on_with_the_settings_on_the_screen():
    explorer = generated()
    explorer.params = explorer.params.replace(temperature=0)
    explorer.strip.selected = 1
    explorer.fork()
    assert explorer.generation.params.temperature == 0
    drawn = [step.drawn.method for step in explorer.generation.steps[1:]]
    assert drawn == ["given", "greedy", "greedy", "greedy", "greedy"]


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
    assert "each run draws a new seed" in explorer.forks.why.value


def test_two_branches_are_compared_where_they_part():
    explorer = generated()
    explorer.strip.selected = 2
    explorer.fork()
    assert explorer.branch_list.comparison.value == ""
    explorer.branch_list.other.value = 1
    told = explorer.branch_list.comparison.value
    assert "≠ at token 3" in told and told.count("<mark") == 1
    explorer.branch_list.branch.value = 1
    assert explorer.branch_list.other.value == 0  # a text equals itself
    assert explorer.branch_list.comparison.value == ""


def test_a_branch_that_does_not_exist_is_an_error():
    explorer = generated()
    explorer.go_to(7)
    assert "branch must be one of those in the tree (1), got 7" in alert(explorer)


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
