"""The controls: sliders, boxes, presets, and what has no effect."""

from __future__ import annotations

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.explorer.controls.settings import Controls
from sampling_lab.explorer.controls.slider_with_box import Counts, Linear
from sampling_lab.explorer.pictures.tabs import Pictures
from sampling_lab.explorer.presets import presets
from tests.explorer.panels import (
    Case,
    WideModel,
    alert,
    box,
    cases,
    dial,
    enter,
    fill,
    greyed,
    has,
    made,
    make_explorer,
    press,
    select,
    settings,
    slide,
)


@cases(
    Case(
        "boxes keep exact values and nothing is clamped at 100",
        [
            fill("seed", "12345"),
            fill("top_k", "50304"),
            fill("min_p", "0.005"),
            fill("temperature", "0.123"),
        ],
        {
            "params.seed": 12345,
            "params.top_k": 50304,
            "params.min_p": 0.005,
            "params.temperature": 0.123,
            "dials.top_k.box.value": "50304",
            "dials.min_p.box.value": "0.005",
            "caption": has("kept"),
        },
        given=made(lambda: WideModel(60_000), prompt="1", max_new_tokens=1),
    ),
    Case(
        "the largest seed is kept to its last digit",
        [fill("seed", str(2**64 - 1))],
        {"params.seed": 2**64 - 1, "controls.seed.value": "18446744073709551615"},
    ),
    Case(
        "every control shows off and takes it",
        [
            *(fill(name, "off") for name in ("top_k", "top_p", "min_p")),
            {"dials.top_k.box.value": "off", "dials.top_p.box.value": "off"},
            fill("temperature", ""),
            fill("seed", ""),
        ],
        {
            "params.top_k": None,
            "params.top_p": None,
            "params.min_p": None,
            "dials.min_p.box.value": "off",
            "params.temperature": 1.0,
            "params.seed": None,
        },
        given=made(params=SamplingParams(top_k=3, top_p=0.5, min_p=0.1)),
    ),
    Case(
        "setting params moves the widgets and keeps what has no widget",
        [
            settings(
                temperature=0.333,
                top_k=2,
                dialect="scratch_llm",
                repetition_penalty=1.2,
            ),
            {"controls.dialect.value": "scratch_llm"},
            slide("top_k", 0),
        ],
        {
            "dials.temperature.box.value": "0.333",
            "params.repetition_penalty": 1.2,
            "params.temperature": 0.333,
        },
    ),
    Case(
        "the dialect can be chosen",
        [enter("controls.dialect", "xslm")],
        {"params.dialect": "xslm"},
    ),
    Case(
        "neutralise turns everything off and says so",
        [
            {"summary": has("temperature 0.4, top-k 3, repetition penalty 1.3")},
            press("Neutralise"),
        ],
        {
            "params": SamplingParams(seed=9, dialect="transformers").to_dict(),
            "summary": has("neutral"),
        },
        given=made(
            params=SamplingParams(
                temperature=0.4, top_k=3, repetition_penalty=1.3, seed=9
            )
        ),
    ),
    Case(
        "controls without effect are greyed with the reason",
        [
            {"greyed": set()},
            settings(temperature=0),
            {
                "greyed": {"top_k", "top_p", "min_p", "seed"},
                "summary": has("(temperature is 0)"),
            },
            settings(temperature=1, top_k=1),
            {
                "greyed": {"top_p", "min_p", "seed"},
                "summary": has("(top-k left 1 token)"),
            },
            settings(top_k=None),
        ],
        {"greyed": set()},
    ),
    Case(
        "a greyed control can still be used",
        [slide("top_p", 0.5)],
        {"params.top_p": 0.5, "params.temperature": 0},
        given=made(params=SamplingParams(temperature=0)),
    ),
)
def test_controls(case):
    case.check()


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("top_p", "1.5", "top_p must be in (0, 1], got 1.5"),
        ("top_p", "0", "top_p must be in (0, 1], got 0"),
        ("temperature", "-1", "temperature must be"),
        ("temperature", "nan", "temperature must be"),
        ("top_k", "0.5", "top_k must be"),
        ("min_p", "much", "min_p must be"),
        ("seed", "-5", "seed must be an integer in [0, 2**64)"),
        ("seed", str(2**64), "seed must be an integer in [0, 2**64)"),
        ("seed", "seven", "seed must be an integer in [0, 2**64)"),
        ("seed", "1.5", "seed must be an integer in [0, 2**64)"),
    ],
)
def test_a_bad_value_is_refused_in_red_and_the_old_one_stays(name, typed, message):
    explorer = make_explorer()
    before, shown = explorer.params, box(explorer, name).value
    fill(name, typed)(explorer)
    assert explorer.params == before
    assert box(explorer, name).value == shown
    assert message in alert(explorer)
    fill(name, "0.5" if name not in ("top_k", "seed") else "2")(explorer)
    assert alert(explorer) == ""


@pytest.mark.parametrize("temperature", ["1e307", "1e308", "5e-324"])
def test_a_number_far_off_the_slider_is_what_is_shown_and_in_force(temperature):
    explorer = make_explorer()
    fill("temperature", temperature)(explorer)
    assert explorer.params.temperature == float(temperature)
    assert explorer.view().params == explorer.params
    fresh = Pictures().draw("Distribution", explorer.view())
    assert explorer.picture.value == fresh.png
    fill("top_k", "1" + "0" * 400)(explorer)
    assert explorer.params.top_k == 10**400
    fill("top_k", "-3")(explorer)
    assert "top_k must be" in alert(explorer)
    fill("top_k", "2")(explorer)
    assert explorer.params.top_k == 2 and "kept " in explorer.caption.value


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("temperature", 0.0, 3.0),
        ("top_k", 1, None),
        ("top_p", 0.01, None),
        ("min_p", None, 0.5),
    ],
)
def test_a_slider_reaches_both_ends(name, low, high):
    explorer = make_explorer()
    slider = dial(explorer, name).slider
    slider.value = slider.max
    slider.value = slider.min
    assert getattr(explorer.params, name) == low
    slider.value = slider.max
    assert getattr(explorer.params, name) == high


def test_the_dice_take_another_seed():
    explorer, seeds = make_explorer(), set()
    for _ in range(5):
        explorer.controls.dice.click()
        seeds.add(explorer.params.seed)
    assert len(seeds) > 1


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


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("top_p", 0.923, 0.92),
        ("temperature", 0.123, 0.1),
        ("min_p", 0.0001, 0.0),
        ("temperature", 17.0, 3.0),
    ],
)
def test_a_value_between_two_steps_survives_the_sliders_rounding(name, value, nearest):
    """A browser moves a slider to its nearest step and reports that as a move."""
    explorer = make_explorer()
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


def test_neutral_settings_leave_the_models_own_probabilities():
    explorer = make_explorer(params=SamplingParams(temperature=0.4, top_k=3))
    press("Neutralise")(explorer)
    ledger = explorer.view().ledger
    assert torch.equal(ledger.final_probs, ledger.raw_probs)


def test_a_step_as_it_was_greys_nothing_for_its_own_settings():
    explorer = make_explorer(params=SamplingParams(top_k=1), max_new_tokens=4)
    explorer.generate()
    settings(top_k=None)(explorer)
    select(1)(explorer)
    assert explorer.view().ledger.kept_count == 1
    assert greyed(explorer) == set()
