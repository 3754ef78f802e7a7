"""The controls: sliders and boxes over one `SamplingParams`, and what they come to."""

from __future__ import annotations

import html
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ipywidgets as widgets
import traitlets

from ...errors import ParameterError
from ...sampling.dialects import DIALECTS
from ...sampling.notes import label as words_for
from ...sampling.parameters import PARAMETERS
from ...sampling.params import SamplingParams
from ...sampling.settings_text import read_value
from ..panel.parts import Column
from ..presets import apply_preset, neutral
from .slider_with_box import (
    Counts,
    Linear,
    Scale,
    SliderWithBox,
    label,
    value_box,
)

_SEED_BITS = 16
"""A seed from the dice is short enough to be read out and typed."""

_NO_PRESET = ("choose …", "")

_SCALES: dict[str, Scale] = {
    "temperature": Linear(0.0, 3.0, 0.05),
    "top_k": Counts(2),
    "top_p": Linear(0.01, 1.0, 0.01, off=1.0),
    "min_p": Linear(0.0, 0.5, 0.005, off=0.0),
}
"""The scale of each slider; that of top-k ends with the vocabulary."""


class Controls(Column):
    """Everything that `SamplingParams` holds, as widgets.

    Args:
        params: the values to begin with; its dialect is resolved already.
        vocab_size: the end of top-k.
        presets: settings to choose from by name, as `sampling_lab.presets` has them.

    Attributes:
        params: the values in force; setting it moves the widgets.
        problem: why the last input was refused, or "".
        summary: what differs from neutral, and what cannot matter; HTML.
    """

    params = traitlets.Instance(SamplingParams)
    problem = traitlets.Unicode()

    def __init__(
        self,
        params: SamplingParams,
        vocab_size: int,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.dials = {
            name: SliderWithBox(
                PARAMETERS[name].label,
                scale,
                partial(self._value_changed, name),
                _sentence(PARAMETERS[name].help),
            )
            for name, scale in _SCALES.items()
        }
        self.presets: dict[str, Mapping[str, Any]] = {}
        self._make_boxes()
        self.seed_row = widgets.HBox([label("seed"), self.seed, self.dice])
        super().__init__(
            [
                widgets.HBox([label("preset"), self.preset, self.neutralise_button]),
                *self.dials.values(),
                self.seed_row,
                widgets.HBox([label("dialect"), self.dialect]),
                self.summary,
            ],
            params=params,
        )
        self.add_class("sampling-lab-controls")
        self.preset.observe(self._preset_chosen, "value")
        self.fit(vocab_size, presets or {})
        self.seed.observe(self._seed_filled, "value")
        self.dialect.observe(self._dialect_chosen, "value")
        self.dice.on_click(self._dice_clicked)
        self.neutralise_button.on_click(self._neutralise_clicked)

    def fit(self, vocab_size: int, presets: Mapping[str, Mapping[str, Any]]) -> None:
        """Fit a model: the end of top-k, and the settings that can be chosen."""
        self.presets = dict(presets)
        self.dials["top_k"].fit(Counts(vocab_size))
        self._offer_presets()
        self.show_idle({})

    def set(self, name: str, value: Any) -> None:
        """Change one parameter; what it refuses is in `problem`."""
        self._change(lambda: self.params.replace(**{name: value}))

    def new_seed(self) -> None:
        """Take another seed."""
        self.set("seed", secrets.randbits(_SEED_BITS))

    def neutralise(self) -> None:
        """Turn everything off; seed, dialect and draw stay."""
        self._change(lambda: neutral(self.params))

    def choose_preset(self, name: str) -> None:
        """Set everything as a preset has it; a seed that it lacks stays."""
        self._change(lambda: apply_preset(self.params, self.presets[name]))

    def show_idle(self, reasons: Mapping[str, str]) -> None:
        """Grey the controls that cannot matter; nothing keeps a person from using them.

        Args:
            reasons: for each such parameter, as `words.idle` gives them.
        """
        rows = {**self.dials, "seed": self.seed_row}
        for name, row in rows.items():
            change = row.add_class if name in reasons else row.remove_class
            change("sampling-lab-idle")
        lines = [_difference(self.params)]
        names = [words_for(name) for name in rows if name in reasons]
        if names:
            reason = next(reasons[name] for name in rows if name in reasons)
            lines.append(f"no effect: {', '.join(names)} ({reason})")
        self.summary.value = "<br>".join(map(html.escape, lines))

    def _change(self, change: Callable[[], SamplingParams]) -> None:
        """Take other parameters; where they are refused, say why and keep these."""
        try:
            params, self.problem = change(), ""
        except ParameterError as error:
            params, self.problem = self.params, str(error)
        if params == self.params:
            self._show(params)  # over what was typed
        self.params = params

    def _make_boxes(self) -> None:
        wide = {"flex": "1 1 auto", "width": "auto", "min_width": "0"}
        self.seed = value_box("An integer below 2**64; empty draws a new one each run")
        self.seed.layout.flex = "1 1 auto"
        self.dice = widgets.Button(
            icon="random", tooltip="Another seed", layout=widgets.Layout(width="38px")
        )
        self.dialect = widgets.Dropdown(
            options=list(DIALECTS),
            tooltip="Whose rules: order of the stages, ties, and the draw",
            layout=widgets.Layout(**wide),
        )
        self.preset = widgets.Dropdown(
            options=[_NO_PRESET],
            tooltip="Settings to begin with",
            layout=widgets.Layout(**wide),
        )
        self.neutralise_button = widgets.Button(
            description="Neutralise",
            tooltip="Turn everything off: the model's own distribution",
            layout=widgets.Layout(width="100px", flex="0 0 auto"),
        )
        self.summary = widgets.HTML()
        self.summary.add_class("sampling-lab-summary")

    def _offer_presets(self) -> None:
        # New options select the first one on their way; no person has chosen that.
        self.preset.unobserve(self._preset_chosen, "value")
        self.preset.options = [
            ("choose …", ""),
            *((name, name) for name in self.presets),
        ]
        self.preset.observe(self._preset_chosen, "value")
        self._show(self.params)

    @traitlets.observe("params")
    def _params_set(self, change: dict[str, Any]) -> None:
        self._show(change["new"])

    def _show(self, params: SamplingParams) -> None:
        for name, dial in self.dials.items():
            dial.show(getattr(params, name))
        self.seed.value = "" if params.seed is None else str(params.seed)
        self.dialect.value = params.dialect
        self.preset.value = next(filter(self._is_set, self.presets), "")

    def _is_set(self, name: str) -> bool:
        """Return whether a preset is what is in force."""
        if self.presets[name].get("temperature", 1.0) != self.params.temperature:
            return False  # as most are, and a slider asks for each of them
        try:
            return apply_preset(self.params, self.presets[name]) == self.params
        except ParameterError:  # an author's slip; choosing the preset tells of it
            return False

    def _value_changed(self, name: str, value: Any) -> None:
        self.set(name, read_value(name, value) if isinstance(value, str) else value)

    def _seed_filled(self, change: dict[str, Any]) -> None:
        seed = read_value("seed", change["new"])
        if seed != self.params.seed:
            self.set("seed", seed)

    def _dialect_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] != self.params.dialect:
            self.set("dialect", change["new"])

    def _preset_chosen(self, change: dict[str, Any]) -> None:
        name = change["new"]
        if name and not self._is_set(name):
            self.choose_preset(name)

    def _dice_clicked(self, button: widgets.Button) -> None:
        self.new_seed()

    def _neutralise_clicked(self, button: widgets.Button) -> None:
        self.neutralise()


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _difference(params: SamplingParams) -> str:
    parts = params.differences()
    if not parts:
        return "neutral: the model's own distribution"
    return f"differs from neutral: {', '.join(parts)}"
