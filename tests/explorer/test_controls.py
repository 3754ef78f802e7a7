"""The controls: sliders, boxes, presets, and what has no effect."""

from __future__ import annotations

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.explorer import Explorer
from sampling_lab.explorer.controls.settings import Controls
from sampling_lab.explorer.controls.slider_with_box import Counts, Linear
from sampling_lab.explorer.pictures.tabs import Pictures
from sampling_lab.explorer.presets import presets
from sampling_lab.sampling.parameters import PARAMETERS
from tests.explorer.panels import WideModel, alert, box, dial, greyed, make_explorer


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
        ("seed", "-5", "seed must be an integer in [0, 2**64)"),
        ("seed", str(2**64), "seed must be an integer in [0, 2**64)"),
        ("seed", "seven", "seed must be an integer in [0, 2**64)"),
        ("seed", "1.5", "seed must be an integer in [0, 2**64)"),
    ],
)
def test_a_bad_value_is_refused_in_red_and_the_old_one_stays(name, typed, message):
    explorer = make_explorer()
    before, shown = explorer.params, box(explorer, name).value
    box(explorer, name).value = typed
    assert explorer.params == before
    assert box(explorer, name).value == shown
    assert message in alert(explorer)
    box(explorer, name).value = "0.5" if name not in ("top_k", "seed") else "2"
    assert alert(explorer) == ""


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


def test_every_other_sampler_can_be_typed_and_is_listed():
    explorer = make_explorer()
    more = explorer.controls.more
    assert more.value == ""
    more.value = "dry 0.8, top-H 0.9, logit bias 3+2"
    assert explorer.params.dry_multiplier == 0.8
    assert explorer.params.top_h == 0.9
    assert more.value == "logit bias 3+2, top-H 0.9, DRY 0.8"
    assert "DRY 0.8" in explorer.controls.summary.value
    more.value = "top-H 7"
    assert "top_h must be in (0, 1]" in alert(explorer)
    assert explorer.params.top_h == 0.9
    assert more.value == "logit bias 3+2, top-H 0.9, DRY 0.8"
    more.value = ""
    assert explorer.params.dry_multiplier is explorer.params.logit_bias is None
    explorer.params = SamplingParams(mirostat=2, seed=1)
    assert more.value == "mirostat 2"
    explorer.controls.neutralise()
    assert more.value == ""
    listed = explorer.controls.children[-2].value
    boxes = {"temperature", "top_k", "top_p", "min_p", "seed", "dialect", "draw_method"}
    for name in PARAMETERS.keys() - boxes:
        assert f"<b>{PARAMETERS[name].label}</b>" in listed
