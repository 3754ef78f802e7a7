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

from sampling_lab import SamplingParams, generate, load
from sampling_lab.explorer import Explorer, Toy
from sampling_lab.explorer.controls.token_strip import MEASURES, PROMPTS
from sampling_lab.explorer.explorer import BETWEEN_STREAMED
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from tests.explorer.panels import (
    PIECES,
    FailingModel,
    WideModel,
    alert,
    dial,
    generated,
    make_explorer,
    make_model,
    tree,
)
from tests.fakes import TableModel, walk
from tests.helpers import ROOT, until

# What is shown


def test_xslm_is_first_seen_with_the_settings_of_its_course():
    explorer = Explorer(load(ROOT / "checkpoints/xslm/model.json"))
    assert explorer.params == SamplingParams(0.8, top_k=8, seed=7, dialect="xslm")
    asked = SamplingParams(top_p=0.5, dialect="xslm")
    assert Explorer(explorer.model, params=asked).params == asked


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


def test_greedy_says_so_and_a_fresh_seed_chooses_nothing_yet():
    explorer = make_explorer(params=SamplingParams(temperature=0))
    assert "greedy takes" in explorer.title.value
    explorer.params = SamplingParams(seed=None, dialect="transformers")
    assert explorer.view().chosen is None
    assert "a fresh seed at each run" in explorer.title.value


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


def test_the_steps_of_a_text_are_shown_as_it_was_under_any_settings():
    explorer = generated()
    explorer.strip.selected = 1
    explorer.tab.value = "Steps"
    assert explorer.title.value.startswith("step 2 · drew")
    picture = explorer.picture.value
    explorer.params = explorer.params.replace(temperature=0.3)
    assert explorer.title.value == "the text, as it was written"
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
    assert "12 tokens" in explorer.status.value
    assert "max new tokens reached" in explorer.status.value
    assert not explorer.generate_button.disabled and explorer.stop_button.disabled


def test_the_second_run_recomputes_nothing():
    explorer = make_explorer()
    explorer.generate()
    explorer.generate()
    assert "0 of 12 steps recomputed" in explorer.status.value


def test_after_a_run_the_picture_is_its_last_step_until_something_moves():
    explorer = make_explorer()
    explorer.generate()
    assert explorer.view().chosen == explorer.generation.token_ids[-1]
    assert "step 12" in explorer.title.value
    dial(explorer, "temperature").slider.value = 0.5
    assert "next token after the prompt" in explorer.title.value
    assert explorer.generation.token_ids


def test_step_draws_one_token_and_the_steps_are_those_of_a_run():
    explorer = make_explorer()
    for count in range(1, 4):
        explorer.step()
        assert len(explorer.generation.steps) == count
    stepped = explorer.generation.token_ids
    explorer.generate()
    assert explorer.generation.token_ids[:3] == stepped


def test_a_step_after_a_change_begins_again():
    explorer = make_explorer()
    explorer.step()
    explorer.step()
    dial(explorer, "temperature").slider.value = 0.5
    explorer.step()
    assert len(explorer.generation.steps) == 1
    assert explorer.generation.params.temperature == 0.5


def test_reset_forgets_the_text():
    explorer = make_explorer()
    explorer.generate()
    explorer.reset()
    assert explorer.generation is None
    assert "Generate runs to the end" in explorer.hint.value
    assert [chip["text"] for chip in explorer.strip.tokens] == ["a", "b"]
    assert len(explorer.branches) == 0
    assert "next token after the prompt" in explorer.title.value
    assert explorer.status.value == "ready"


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


# Errors


def test_a_model_that_raises_is_reported_in_red_and_the_panel_goes_on():
    explorer = make_explorer(make_model(FailingModel))
    explorer.generate()
    assert 'role="alert"' in explorer.status.value
    assert "RuntimeError: out of &lt;memory&gt;" in explorer.status.value
    assert len(explorer.generation.steps) == 3
    assert not explorer.generate_button.disabled
    dial(explorer, "temperature").slider.value = 0.5
    assert "alert" not in explorer.status.value
    explorer.max_new_tokens.value = 2
    explorer.generate()
    assert len(explorer.generation.steps) == 2


def test_an_error_on_the_loop_is_reported_too():
    async def scenario():
        explorer = make_explorer(make_model(FailingModel))
        explorer.generate()
        await until(lambda: not explorer.player.is_playing)
        await until(lambda: "out of" in explorer.status.value)
        assert len(explorer.generation.steps) == 3

    asyncio.run(scenario())


def test_a_bad_prompt_is_reported_and_the_old_picture_is_dimmed():
    explorer = make_explorer()
    explorer.prompt.value = ""
    assert "the prompt is empty" in explorer.status.value
    assert "sampling-lab-stale" in explorer.picture._dom_classes
    explorer.generate()
    assert explorer.generation is None
    assert not explorer.player.is_playing
    explorer.prompt.value = "ab"
    assert "sampling-lab-stale" not in explorer.picture._dom_classes
    assert explorer.status.value == "ready"


def test_logits_without_a_choice_are_reported():
    model = TableModel(torch.full((8, 8), float("nan")), PIECES)
    explorer = Explorer(model, prompt="ab")
    assert "NaN" in explorer.status.value
    assert explorer.picture.value == b""


def test_hostile_tokens_are_shown_literally():
    model = walk(PIECES, [0, 4, 5, 7, 6, 4])
    explorer = Explorer(model, prompt="a", max_new_tokens=8)
    explorer.generate()
    texts = [chip["text"] for chip in explorer.strip.tokens]
    assert texts[1:5] == ["<b>x", "</script>", "<|im_end|>", "&lt;"]
    explorer.prompt.value = "<b>x"
    assert "seed 0 draws &lt;/script&gt;" in explorer.title.value
    assert "<b>" not in explorer.title.value


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


def test_a_wide_vocabulary_draws_and_stays_within_reason():
    explorer = Explorer(WideModel(), prompt="1", max_new_tokens=2)
    explorer.params = explorer.params.replace(top_k=50, top_p=0.9)
    assert "of 49,152" in explorer.caption.value
    assert len(explorer.picture.value) < 120_000


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
