"""The explorer without a browser: its methods, its widgets' state, its loop."""

from __future__ import annotations

import asyncio
import gc
import html
import io
import os
import re
import signal
import threading
import zlib

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from PIL import Image

from sampling_lab import SamplingParams, fork, generate
from sampling_lab.explorer import Explorer, Toy
from sampling_lab.explorer.controls.settings import Controls
from sampling_lab.explorer.controls.slider_with_box import Counts, Linear
from sampling_lab.explorer.explorer import BETWEEN_STREAMED
from sampling_lab.explorer.panel.event_loop import EventLoop, Interrupts, Throttle
from sampling_lab.explorer.pictures.canvas import DistributionCanvas
from sampling_lab.explorer.pictures.png import PaletteEncoder
from sampling_lab.explorer.pictures.step_view import StepView
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from sampling_lab.models.base import Model, ModelCard
from sampling_lab.plots.drawing.style import CHOSEN, FINAL, INK
from tests.fakes import TableModel

PIECES = [b"a", b"b", b" c", b"\n", b"<b>x", b"</script>", b"&lt;", b"<|im_end|>"]


def make_model(**card):
    torch.manual_seed(0)
    return TableModel(torch.randn(len(PIECES), len(PIECES)), PIECES, **card)


def make_explorer(**options):
    options = {"prompt": "ab", "max_new_tokens": 12, **options}
    return Explorer(make_model(), **options)


class WideModel(Model):
    """The same logits after any prefix, over a vocabulary of real size."""

    def __init__(self, vocab_size=49_152):
        card = ModelCard(
            name="wide",
            format="fake",
            parameters=0,
            vocab_size=vocab_size,
            context_length=None,
            dtype="float32",
            device="cpu",
            dialect="transformers",
        )
        super().__init__(card, None)
        generator = torch.Generator().manual_seed(0)
        self.values = torch.randn(vocab_size, generator=generator) * 2

    def _forward(self, ids):
        return self.values


class FailingModel(TableModel):
    """A model that breaks at the third token."""

    def _forward(self, ids):
        if len(ids) > 4:
            raise RuntimeError("out of <memory>")
        return super()._forward(ids)


def text_of(html):
    return re.sub(r"<[^>]*>", "", html)


def dial(panel, name):
    return panel.controls.dials[name]


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def until(condition, seconds=20.0):
    """Return a coroutine that waits for something to become true."""

    async def wait():
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.001)

    return wait()


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


def test_greedy_says_so_and_a_fresh_seed_chooses_nothing_yet():
    explorer = make_explorer(params=SamplingParams(temperature=0))
    assert "greedy takes" in explorer.title.value
    explorer.params = SamplingParams(seed=None, dialect="transformers")
    assert explorer.view().chosen is None
    assert "a fresh seed at each run" in explorer.title.value


def test_typing_a_prompt_shows_its_next_token():
    explorer = make_explorer()
    before = explorer.caption.value
    explorer.prompt.value = "a c"
    assert explorer.caption.value != before
    assert explorer.model.forward_passes == 2


def test_the_card_names_the_model():
    explorer = make_explorer()
    card = explorer.picker.card
    assert card.value == "table · fake · 64 parameters · vocabulary 8 · context " + (
        "unlimited · float32 · dialect transformers"
    )
    assert repr(explorer) == "Explorer(table)"


def test_a_model_without_a_tokenizer_takes_ids():
    explorer = Explorer(WideModel(100), prompt="1, 2 3", max_new_tokens=3)
    assert "kept 100 of 100" in explorer.caption.value
    explorer.generate()
    assert explorer.generation.prompt_ids == (1, 2, 3)
    explorer.prompt.value = "one"
    assert "type token ids" in explorer.status.value


# Controls


def test_boxes_keep_exact_values_and_nothing_is_clamped_at_100():
    explorer = Explorer(WideModel(60_000), prompt="1", max_new_tokens=1)
    explorer.controls.seed.value = "12345"
    dial(explorer, "top_k").box.value = "50304"
    dial(explorer, "min_p").box.value = "0.005"
    dial(explorer, "temperature").box.value = "0.123"
    params = explorer.params
    assert (params.seed, params.top_k, params.min_p) == (12345, 50304, 0.005)
    assert params.temperature == 0.123
    assert dial(explorer, "top_k").box.value == "50304"
    assert dial(explorer, "min_p").box.value == "0.005"
    assert "kept" in explorer.caption.value


def test_the_largest_seed_is_kept_to_its_last_digit():
    explorer = make_explorer()
    explorer.controls.seed.value = str(2**64 - 1)
    assert explorer.params.seed == 2**64 - 1
    assert explorer.controls.seed.value == "18446744073709551615"


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("top_p", "1.5", "top_p must be in (0, 1], got 1.5"),
        ("top_p", "0", "top_p must be in (0, 1], got 0"),
        ("temperature", "-1", "temperature must be"),
        ("temperature", "nan", "temperature must be"),
        ("top_k", "0.5", "top_k must be"),
        ("min_p", "much", "min_p must be"),
    ],
)
def test_a_bad_value_is_refused_in_red_and_the_old_one_stands(name, typed, message):
    explorer = make_explorer()
    box = dial(explorer, name).box
    before, shown = explorer.params, box.value
    box.value = typed
    assert explorer.params == before
    assert box.value == shown
    assert 'role="alert"' in explorer.status.value
    assert message in text_of(explorer.status.value)
    box.value = "0.5" if name != "top_k" else "2"
    assert "alert" not in explorer.status.value


@pytest.mark.parametrize("typed", ["-5", str(2**64), "seven", "1.5"])
def test_a_bad_seed_is_refused(typed):
    explorer = make_explorer()
    explorer.controls.seed.value = typed
    assert "seed must be an integer in [0, 2**64)" in explorer.status.value
    assert explorer.params.seed == 0
    assert explorer.controls.seed.value == "0"


def test_every_control_shows_off_and_takes_it():
    explorer = make_explorer(params=SamplingParams(top_k=3, top_p=0.5, min_p=0.1))
    for name in ("top_k", "top_p", "min_p"):
        dial(explorer, name).box.value = "off"
        assert getattr(explorer.params, name) is None
        assert dial(explorer, name).box.value == "off"
    dial(explorer, "temperature").box.value = ""
    assert explorer.params.temperature == 1.0
    explorer.controls.seed.value = ""
    assert explorer.params.seed is None


def test_sliders_reach_every_end():
    explorer = make_explorer()
    for name, low, high in (
        ("temperature", 0.0, 3.0),
        ("top_k", 1, None),
        ("top_p", 0.01, None),
        ("min_p", None, 0.5),
    ):
        slider = dial(explorer, name).slider
        slider.value = slider.max
        slider.value = slider.min
        assert getattr(explorer.params, name) == low
        slider.value = slider.max
        assert getattr(explorer.params, name) == high


def test_the_dice_take_another_seed_and_the_dialect_can_be_chosen():
    explorer = make_explorer()
    seeds = set()
    for _ in range(5):
        explorer.controls.new_seed()
        seeds.add(explorer.params.seed)
    assert len(seeds) > 1
    explorer.controls.dialect.value = "xslm"
    assert explorer.params.dialect == "xslm"


def test_setting_params_moves_the_widgets_and_keeps_what_has_no_widget():
    explorer = make_explorer()
    explorer.params = SamplingParams(
        temperature=0.333, top_k=2, dialect="scratch_llm", repetition_penalty=1.2
    )
    assert dial(explorer, "temperature").box.value == "0.333"
    assert explorer.controls.dialect.value == "scratch_llm"
    dial(explorer, "top_k").slider.value = 0
    assert explorer.params.repetition_penalty == 1.2
    assert explorer.params.temperature == 0.333


@pytest.mark.parametrize("vocabulary", [1, 2, 4, 40, 49_152, 163_840])
def test_the_stops_of_top_k_go_from_one_to_off(vocabulary):
    scale = Counts(vocabulary)
    slider = scale.slider()
    values = [scale.value(at) for at in range(slider.min, slider.max + 1)]
    assert values[0] == 1 and values[-1] is None
    assert values[:-1] == sorted(set(values[:-1]))
    assert max(values[:-1]) <= max(1, vocabulary - 1)
    for value in values:
        assert scale.value(scale.position(value)) == value
    assert slider.max <= 121


def test_a_value_between_two_steps_survives_the_sliders_rounding():
    """A browser moves a slider to its nearest step and reports that as a move."""
    explorer = make_explorer()
    for name, value, nearest in (
        ("top_p", 0.923, 0.92),
        ("temperature", 0.123, 0.1),
        ("min_p", 0.0001, 0.0),
        ("temperature", 17.0, 3.0),
    ):
        turned = dial(explorer, name)
        turned.box.value = str(value)
        assert turned.slider.value == pytest.approx(nearest)
        turned.slider.value = turned.slider.value + 1e-15
        assert getattr(explorer.params, name) == value
        assert turned.box.value == f"{value:g}"


def test_a_move_is_not_answered_with_a_position(monkeypatch):
    """The browser may have moved on: an answer would set its slider back."""
    explorer = make_explorer()
    slider = dial(explorer, "temperature").slider
    sent = []
    monkeypatch.setattr(slider, "send_state", lambda key=None: sent.append(key))
    for _ in range(40):
        slider.set_state({"value": max(0.0, slider.value - 0.05)})
    assert explorer.params.temperature == pytest.approx(0.0)
    assert sent == []


def test_linear_positions_are_free_of_binary_rounding():
    scale = Linear(0.0, 3.0, 0.05)
    assert scale.value(0.05 * 3) == 0.15
    assert scale.position(17.0) == 3.0
    assert Linear(0.01, 1.0, 0.01, off=1.0).value(1.0) is None


def test_controls_do_not_need_a_panel():
    controls = Controls(SamplingParams(dialect="xslm"), 40)
    controls.set("temperature", -1)
    assert "temperature" in controls.problem
    controls.set("temperature", 2)
    assert controls.problem == "" and controls.params.temperature == 2.0


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


def test_interrupts_are_heard_again_after_a_message_took_its_own_handler():
    heard = []
    outer = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupts = Interrupts(lambda: heard.append("stop"))
        saved = signal.signal(signal.SIGINT, signal.default_int_handler)  # a message
        interrupts.listen()
        signal.signal(signal.SIGINT, saved)  # its end
        signal.raise_signal(signal.SIGINT)
        assert heard == []
        interrupts.listen()
        signal.raise_signal(signal.SIGINT)
        assert heard == ["stop"]
        interrupts.release()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        interrupts.release()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, outer)


def test_interrupts_are_left_alone_on_other_threads():
    interrupts = Interrupts(lambda: None)
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=interrupts.listen)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before


# Errors


def test_a_model_that_raises_is_reported_in_red_and_the_panel_goes_on():
    torch.manual_seed(0)
    model = FailingModel(torch.randn(8, 8), PIECES)
    explorer = Explorer(model, prompt="ab", max_new_tokens=12)
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
        torch.manual_seed(0)
        model = FailingModel(torch.randn(8, 8), PIECES)
        explorer = Explorer(model, prompt="ab", max_new_tokens=12)
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


def test_an_unknown_character_is_a_warning_in_the_status_line():
    explorer = Explorer("checkpoints/xslm/model-20-steps.json", prompt="Q: Zoë?\nA: ")
    assert "becomes �" in explorer.status.value
    explorer.generate()
    assert explorer.generation is not None


def test_logits_without_a_choice_are_reported():
    model = TableModel(torch.full((8, 8), float("nan")), PIECES)
    explorer = Explorer(model, prompt="ab")
    assert "NaN" in explorer.status.value
    assert explorer.picture.value == b""


def test_hostile_tokens_are_shown_literally():
    table = torch.full((8, 8), -20.0)
    for here, there in ((0, 4), (4, 5), (5, 7), (7, 6), (6, 4)):
        table[here, there] = 20.0
    explorer = Explorer(TableModel(table, PIECES), prompt="a", max_new_tokens=8)
    explorer.generate()
    texts = [chip["text"] for chip in explorer.strip.tokens]
    assert texts[1:5] == ["<b>x", "</script>", "<|im_end|>", "&lt;"]
    explorer.prompt.value = "<b>x"
    assert "seed 0 draws &lt;/script&gt;" in explorer.title.value
    assert "<b>" not in explorer.title.value


# Reading and forking


def generated():
    explorer = make_explorer(max_new_tokens=6)
    explorer.generate()
    return explorer


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


def test_the_prompt_deselects_and_shows_what_comes_first():
    explorer = generated()
    explorer.strip.selected = 1
    explorer.prompt.value = "b"
    assert explorer.strip.selected == -1
    assert "next token after the prompt" in explorer.title.value


def test_a_fork_goes_on_with_the_settings_on_the_screen():
    explorer = generated()
    explorer.params = explorer.params.replace(temperature=0)
    explorer.strip.selected = 1
    explorer.fork()
    assert explorer.generation.params.temperature == 0
    drawn = [step.drawn.method for step in explorer.generation.steps[1:]]
    assert drawn == ["given", "greedy", "greedy", "greedy", "greedy"]


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


# Pictures, memory, time


def test_a_burst_on_the_loop_draws_only_the_last_and_queues_nothing(monkeypatch):
    drawn = []
    original = Pictures.draw

    def counted(self, tab, view):
        drawn.append(view.ledger)
        return original(self, tab, view)

    monkeypatch.setattr(Pictures, "draw", counted)

    async def scenario():
        explorer = make_explorer()
        await asyncio.sleep(0.05)
        drawn.clear()
        slider = dial(explorer, "temperature").slider
        for step in range(100):
            slider.value = 0.1 + step * 0.02
            if step % 10 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        count = len(drawn)
        await asyncio.sleep(0.1)
        assert len(drawn) == count <= 10
        final = explorer.params.chain().ledger(drawn[-1].raw_logits)
        assert torch.equal(drawn[-1].final_probs, final.final_probs)
        assert explorer.params.temperature == 2.08

    asyncio.run(scenario())


def test_handlers_on_other_threads_are_served_on_the_panels_own_loop(monkeypatch):
    threads = set()
    original = Pictures.draw

    def noted(self, tab, view):
        threads.add(threading.current_thread())
        return original(self, tab, view)

    monkeypatch.setattr(Pictures, "draw", noted)

    async def scenario():
        explorer = make_explorer()

        def elsewhere():
            dial(explorer, "temperature").slider.value = 0.5
            explorer.generate_button.click()

        await asyncio.to_thread(elsewhere)
        await until(lambda: explorer.generation is not None)
        await until(lambda: not explorer.player.is_playing)
        assert len(explorer.generation.steps) == 12

    asyncio.run(scenario())
    assert threads == {threading.main_thread()}


def test_a_panel_survives_its_loop():
    async def make():
        return make_explorer()

    explorer = asyncio.run(make())
    dial(explorer, "temperature").slider.value = 0.5
    assert "kept 8 of 8" in explorer.caption.value
    explorer.generate()
    assert len(explorer.generation.steps) == 12


def living(kind):
    gc.collect()
    return sum(issubclass(type(thing), kind) for thing in gc.get_objects())


@pytest.mark.parametrize("tab", TABS)
def test_fifty_redraws_leave_no_figure_open_and_no_artist_behind(tab):
    explorer = generated()
    explorer.strip.selected = 2
    explorer.tab.value = tab

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


def test_the_picture_has_the_same_pixels_however_it_came_about():
    """Layers left over from another view would show through."""
    explorer = make_explorer()
    for params in ({"top_k": 2}, {"temperature": 0}, {"temperature": 3}, {}):
        explorer.params = SamplingParams(dialect="transformers", **params)
        fresh = DistributionCanvas().draw(explorer.view())
        assert explorer.picture.value == fresh


def test_the_canvas_takes_the_height_that_the_bars_need():
    canvas = DistributionCanvas(scale=1.0)
    heights = []
    for vocabulary in (2, 5, 100):
        ledger = SamplingParams().chain().ledger(torch.zeros(vocabulary))
        heights.append(
            pixels(canvas.draw(StepView(ledger, None, SamplingParams()))).shape[0]
        )
    assert heights == sorted(set(heights))


def test_the_palette_keeps_the_given_colours_and_the_greys():
    colors = [FINAL, CHOSEN, INK, "#ffffff", "#000000"]
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colors])
    image = np.full((4, len(colors), 4), 255, np.uint8)
    image[..., :3] = rgb
    png = PaletteEncoder(colors).encode(image)
    assert np.array_equal(pixels(png), image[..., :3])
    grey = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 4, -1)
    shown = pixels(PaletteEncoder([]).encode(grey)).astype(int)
    assert (shown == shown[..., :1]).all()
    assert np.abs(shown[..., 0] - grey[..., 0]).max() <= 32


def test_the_png_is_whole():
    png = PaletteEncoder([]).encode(np.zeros((3, 5, 4), np.uint8))
    assert png.startswith(b"\x89PNG")
    at, names = 8, []
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        names.append(png[at + 4 : at + 8])
        body = png[at + 4 : at + 8 + length]
        assert zlib.crc32(body) == int.from_bytes(png[at + 8 + length :][:4])
        at += 12 + length
    assert names == [b"IHDR", b"pHYs", b"PLTE", b"IDAT", b"IEND"]


def test_a_saved_notebook_keeps_the_picture():
    explorer = make_explorer()
    data, metadata = explorer._repr_mimebundle_()
    assert data["image/png"].startswith("iVBORw0KGgo")
    assert data["text/plain"] == "Explorer(table)"
    assert metadata["image/png"]["width"] == 640


def test_pacing_without_a_loop_is_immediate():
    calls = []
    pacer = Throttle(EventLoop(), lambda: calls.append(1), interval=1.0)
    pacer.request()
    pacer.request()
    assert calls == [1, 1]


def test_only_core_widgets_and_the_strip_are_used():
    explorer = make_explorer()

    def walk(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from walk(child)

    modules = {widget._model_module for widget in walk(explorer)}
    assert modules == {"@jupyter-widgets/controls", "anywidget"}
    explorer.close()


# Toy


def test_the_toy_has_the_known_numbers():
    toy = Toy({"warm": 2.0, "hot": 1.0, "blue": 0.2, "run": -1.0})
    dial(toy, "temperature").slider.value = 0.5
    final = [round(p, 3) for p in toy.view().ledger.final_probs.tolist()]
    assert final == [0.858, 0.116, 0.023, 0.002]
    assert "kept 4 of 4" in toy.caption.value


def test_the_toy_draws_what_its_seed_draws():
    toy = Toy(params=SamplingParams(seed=7, dialect="xslm"))
    toy.words.value = "a 1.609438, b 1.098612, c 0.693147"
    for _ in range(12):
        toy.draw_once()
    assert "".join(toy.drawn) == "aababaabaaaa"
    toy.draw_many()
    assert len(toy.drawn) == 1012 and toy.drawn[:12] == list("aababaabaaaa")
    assert "1,012 drawn" in toy.status.value
    toy.reset()
    toy.draw_once()
    assert toy.drawn == ["a"]


def test_a_change_begins_the_toys_draws_again():
    toy = Toy()
    toy.draw_many()
    dial(toy, "temperature").slider.value = 2.0
    assert toy.drawn == []
    assert "Draw words" in toy.tally.value


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("warm", "got &#x27;warm&#x27;"),
        ("warm 1, 2", "got &#x27;2&#x27;"),
        ("warm x", "got &#x27;warm x&#x27;"),
        (" , ", "words must not be empty"),
        ("warm inf", "+inf"),
    ],
)
def test_the_toy_says_what_it_cannot_read(words, message):
    toy = Toy()
    toy.words.value = words
    assert 'role="alert"' in toy.status.value
    assert message in toy.status.value
    toy.words.value = "warm 1, very hot 2"
    assert "alert" not in toy.status.value
    assert "kept 2 of 2" in toy.caption.value


def test_hostile_words_are_shown_literally():
    toy = Toy({"<b>x": 1.0, "</script>": 0.0})
    toy.draw_many()
    assert "<b>" not in toy.tally.value and "</script>" not in toy.tally.value
    assert "&lt;b&gt;x" in toy.tally.value


def test_nothing_is_printed(capfd):
    explorer = make_explorer()
    explorer.generate()
    explorer.prompt.value = ""
    Toy().draw_many()
    assert capfd.readouterr() == ("", "")


def test_widgets_are_boxes():
    assert isinstance(make_explorer(), widgets.VBox)
