"""The explorer without a browser: what it shows, its runs, its errors, any order."""

from __future__ import annotations

import asyncio
import gc
import html
import os
import random
import signal

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from sampling_lab import SamplingParams, generate
from sampling_lab.explorer import Toy
from sampling_lab.explorer.controls.token_strip import MEASURES, PROMPTS
from sampling_lab.explorer.explorer import BETWEEN_STREAMED
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from tests.explorer.panels import (
    PIECES,
    Case,
    FailingModel,
    WideModel,
    alert,
    cases,
    count,
    dial,
    enter,
    generated,
    has,
    lacks,
    made,
    make_explorer,
    make_model,
    press,
    select,
    settings,
    slide,
    smaller,
    starts,
    tree,
)
from tests.fakes import TableModel, walk
from tests.helpers import until

HOSTILE = [0, 4, 5, 7, 6, 4]
"""a, then tokens that are markup, then the one after the prompt again."""


@cases(
    Case(
        "greedy says so and a fresh seed chooses nothing yet",
        [
            {"title": has("greedy takes")},
            settings(temperature=1, seed=None),
        ],
        {"title": has("a fresh seed at each run"), "chosen": None},
        given=made(params=SamplingParams(temperature=0)),
    ),
    Case(
        "a run ends at its limit, and the next one recomputes nothing",
        [
            press("Generate"),
            {
                "status": has("12 tokens", "max new tokens reached"),
                "generate_button.disabled": False,
                "stop_button.disabled": True,
            },
            press("Generate"),
        ],
        {"status": has("0 of 12 steps recomputed")},
    ),
    Case(
        "after a run the picture is its last step until something moves",
        [press("Generate"), {"title": has("step 12")}, slide("temperature", 0.5)],
        {"title": has("next token after the prompt"), "token_ids": count(12)},
    ),
    Case(
        "step draws one token, and after a change it starts again",
        [
            press("Step"),
            {"steps": 1},
            press("Step"),
            {"steps": 2},
            slide("temperature", 0.5),
            press("Step"),
        ],
        {"steps": 1, "generation.params.temperature": 0.5},
    ),
    Case(
        "reset forgets the text",
        [press("Generate"), press("Reset")],
        {
            "generation": None,
            "hint.value": has("Generate runs to the end"),
            "chips": ["a", "b"],
            "branches": 0,
            "title": has("next token after the prompt"),
            "status": "ready",
        },
    ),
    Case(
        "a model that raises is reported in red and the panel goes on",
        [
            press("Generate"),
            {
                "alert": "RuntimeError: out of <memory>",
                "status.value": has("out of &lt;memory&gt;"),
                "steps": 3,
                "generate_button.disabled": False,
            },
            slide("temperature", 0.5),
            {"alert": ""},
            enter("max_new_tokens", 2),
            press("Generate"),
        ],
        {"steps": 2},
        given=made(lambda: make_model(FailingModel)),
    ),
    Case(
        "a bad prompt is reported and the old picture is dimmed",
        [
            enter("prompt", ""),
            {
                "alert": has("the prompt is empty"),
                "picture._dom_classes": has("sampling-lab-stale"),
            },
            press("Generate"),
            {"generation": None, "is_playing": False},
            enter("prompt", "ab"),
        ],
        {"picture._dom_classes": lacks("sampling-lab-stale"), "status": "ready"},
    ),
    Case(
        "logits without a choice are reported",
        [],
        {"alert": has("NaN"), "picture.value": b""},
        given=made(lambda: TableModel(torch.full((8, 8), float("nan")), PIECES)),
    ),
    Case(
        "hostile tokens are shown literally",
        [
            press("Generate"),
            {"chips": starts(["a", "<b>x", "</script>", "<|im_end|>", "&lt;"])},
            enter("prompt", "<b>x"),
        ],
        {"title.value": has("seed 0 draws &lt;/script&gt;")},
        given=made(lambda: walk(PIECES, HOSTILE), prompt="a", max_new_tokens=8),
    ),
    Case(
        "the steps of a text are shown as it was under any current settings",
        [
            select(1),
            enter("tab", "Steps"),
            {"title": starts("step 2 · drew")},
            settings(temperature=0.3),
        ],
        {"title": "the text, as it was written"},
        given=generated,
    ),
    Case(
        "a wide vocabulary is drawn in a small file",
        [settings(top_k=50, top_p=0.9)],
        {"caption": has("of 49,152"), "picture.value": smaller(120_000)},
        given=made(WideModel, prompt="1", max_new_tokens=2),
    ),
)
def test_explorer(case):
    case.check()


# What is shown


def test_a_slider_changes_the_picture_and_never_runs_the_model():
    explorer = make_explorer()
    passes, before = explorer.model.forward_passes, explorer.picture.value
    for value in np.arange(0.05, 2.0, 0.05):
        dial(explorer, "temperature").slider.value = float(value)
    assert explorer.model.forward_passes == passes == 1
    assert explorer.picture.value != before
    assert explorer.params.temperature == 1.95


def test_the_caption_and_the_view_are_those_of_a_direct_call():
    explorer = make_explorer(params=SamplingParams(temperature=0.7, top_k=3, seed=5))
    ids = explorer.model.prompt_ids("ab")
    ledger = explorer.params.chain().ledger(explorer.model.logits(ids))
    view = explorer.view()
    assert torch.equal(view.ledger.final_probs, ledger.final_probs)
    assert "kept 3 of 8" in explorer.caption.value
    first = generate(explorer.model, "ab", explorer.params, max_new_tokens=1)
    assert view.chosen == first.token_ids[0]
    assert "seed 5 draws" in explorer.title.value


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


def test_the_steps_of_a_text_have_the_same_picture_under_any_settings():
    explorer = generated()
    select(1)(explorer)
    explorer.tab.value = "Steps"
    picture = explorer.picture.value
    settings(temperature=0.3)(explorer)
    assert explorer.picture.value == picture


def test_the_picture_has_the_same_pixels_however_it_came_about():
    """Layers left over from another view would show through."""
    explorer = make_explorer()
    for params in ({"top_k": 2}, {"temperature": 0}, {"temperature": 3}, {}):
        explorer.params = SamplingParams(dialect="transformers", **params)
        fresh = Pictures().draw("Distribution", explorer.view())
        assert explorer.picture.value == fresh.png


# Running


def test_generate_gives_what_the_library_gives():
    params = SamplingParams(temperature=0.9, top_k=4, seed=11)
    explorer = make_explorer(params=params)
    explorer.generate()
    expected = generate(make_model(), "ab", params, max_new_tokens=12)
    assert explorer.generation.token_ids == expected.token_ids
    assert explorer.generation.text == expected.text
    assert explorer.view().chosen == expected.token_ids[-1]


def test_the_steps_are_those_of_a_run():
    explorer = make_explorer()
    for _ in range(3):
        explorer.step()
    stepped = explorer.generation.token_ids
    explorer.generate()
    assert explorer.generation.token_ids[:3] == stepped


def test_tokens_stream_in_and_stop_keeps_them():
    async def scenario():
        explorer = make_explorer(max_new_tokens=500)
        explorer.generate()
        assert explorer.generate_button.disabled and not explorer.stop_button.disabled
        await until(lambda: len(explorer.generation.steps) >= 10)
        explorer.stop()
        before = len(explorer.generation.steps)
        await until(lambda: not explorer.player.is_playing)
        await until(lambda: "stopped" in explorer.status.value)
        after = len(explorer.generation.steps)
        assert before <= after <= before + 1
        assert explorer.generation.finish_reason == "cancelled"
        chips = explorer.strip.tokens
        assert [chip["text"] for chip in chips[:2]] == ["a", "b"]
        assert len(chips) == 2 + after
        assert not explorer.generate_button.disabled
        explorer.max_new_tokens.value = 3
        explorer.generate()
        await until(lambda: not explorer.player.is_playing)
        assert len(explorer.generation.steps) == 3

    asyncio.run(scenario())


def test_generate_twice_is_one_run():
    async def scenario():
        explorer = make_explorer()
        explorer.generate()
        run = explorer.player.run
        explorer.generate()
        explorer.step()
        assert explorer.player.run is run
        await until(lambda: not explorer.player.is_playing)
        assert len(explorer.generation.steps) == 12

    asyncio.run(scenario())


def test_a_changed_setting_ends_the_run_and_keeps_its_text():
    async def scenario():
        explorer = make_explorer(max_new_tokens=500)
        explorer.generate()
        await until(lambda: len(explorer.generation.steps) >= 5)
        dial(explorer, "temperature").slider.value = 0.5
        await until(lambda: not explorer.player.is_playing)
        await until(lambda: "a setting changed" in explorer.status.value)
        assert len(explorer.generation.steps) < 500
        assert explorer.generation.params.temperature == 1.0
        await until(lambda: "next token after the prompt" in explorer.title.value)

    asyncio.run(scenario())


def test_reset_in_mid_run_ends_it():
    async def scenario():
        explorer = make_explorer(max_new_tokens=500)
        explorer.generate()
        await until(lambda: len(explorer.generation.steps) >= 3)
        explorer.reset()
        await until(lambda: not explorer.player.is_playing)
        await until(lambda: explorer.status.value == "ready")
        assert explorer.generation is None

    asyncio.run(scenario())


def test_showing_the_branches_chooses_none_of_them():
    async def scenario():
        explorer = make_explorer(max_new_tokens=20)
        for branches in (1, 2, 3):
            explorer.generate()
            await until(lambda: not explorer.player.is_playing)
            # Long enough for what the last picture might still have asked for.
            await asyncio.sleep(3 * BETWEEN_STREAMED)
            assert explorer.branch.id == len(explorer.branches) == branches
            assert "of 20 steps recomputed" in explorer.status.value

    asyncio.run(scenario())


def test_nothing_forks_while_tokens_stream_in():
    async def scenario():
        explorer = make_explorer(max_new_tokens=500)
        explorer.generate()
        await until(lambda: len(explorer.generation.steps) >= 5)
        explorer.strip.selected = 1
        explorer.fork()
        assert len(explorer.branches) == 1
        assert explorer.forks.fork_button.disabled
        explorer.stop()
        await until(lambda: not explorer.player.is_playing)
        await until(lambda: not explorer.forks.fork_button.disabled)
        explorer.fork()
        assert len(explorer.branches) == 2
        explorer.stop()
        await until(lambda: not explorer.player.is_playing)

    asyncio.run(scenario())


def test_an_interrupt_stops_a_run_within_a_token_and_leaves_the_panel_usable():
    explorer = make_explorer(max_new_tokens=500)
    handler = signal.getsignal(signal.SIGINT)
    forward = type(explorer.model)._forward

    class Interrupted(type(explorer.model)):
        def _forward(self, ids):
            if len(ids) == 6:
                os.kill(os.getpid(), signal.SIGINT)
            return forward(self, ids)

    explorer.model.__class__ = Interrupted
    explorer.generate()
    assert len(explorer.generation.steps) == 5
    assert "stopped" in explorer.status.value
    assert signal.getsignal(signal.SIGINT) is handler
    explorer.max_new_tokens.value = 3
    explorer.generate()
    assert len(explorer.generation.steps) == 3


def test_an_error_on_the_loop_is_reported_too():
    async def scenario():
        explorer = make_explorer(make_model(FailingModel))
        explorer.generate()
        await until(lambda: not explorer.player.is_playing)
        await until(lambda: "out of" in explorer.status.value)
        assert len(explorer.generation.steps) == 3

    asyncio.run(scenario())


# Memory, output, parts


def living(kind):
    gc.collect()
    return sum(issubclass(type(thing), kind) for thing in gc.get_objects())


def test_fifty_redraws_leave_no_figure_open_and_no_artist_behind():
    explorer = generated()
    explorer.strip.selected = 2
    explorer.tab.value = "Stages"  # the tab with the most layouts

    def redraw(count):
        for at in range(count):
            dial(explorer, "temperature").slider.value = 0.05 + at % 7 * 0.1
            dial(explorer, "top_k").slider.value = at % 3

    redraw(20)  # by then every kind of picture has been drawn
    figures, artists = living(Figure), living(Artist)
    redraw(50)
    assert plt.get_fignums() == []
    assert living(Figure) == figures and living(Artist) <= artists


def test_a_saved_notebook_keeps_the_picture():
    explorer = make_explorer()
    data, metadata = explorer._repr_mimebundle_()
    assert data["image/png"].startswith("iVBORw0KGgo")
    assert data["text/plain"] == "Explorer(table)"
    assert metadata["image/png"]["width"] == 640


def test_only_core_widgets_and_the_strip_are_used():
    explorer = make_explorer()
    assert isinstance(explorer, widgets.VBox)
    modules = {widget._model_module for widget in tree(explorer)}
    assert modules == {"@jupyter-widgets/controls", "anywidget"}
    explorer.close()


def test_nothing_is_printed(capfd):
    explorer = make_explorer()
    explorer.generate()
    explorer.prompt.value = ""
    Toy().draw_many()
    assert capfd.readouterr() == ("", "")


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
