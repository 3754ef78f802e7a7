"""The controls: sliders and boxes over one `SamplingParams`, and what they come to."""

from __future__ import annotations

import html
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import traitlets

from ...errors import ParameterError
from ...sampling.dialects import DIALECTS
from ...sampling.notes import label as words_for
from ...sampling.parameters import PARAMETERS
from ...sampling.params import SamplingParams
from ...sampling.settings_text import parse_fields, read_value
from ..panel import parts
from ..presets import apply_preset, neutral
from .slider_with_box import Counts, Linear, Scale, SliderWithBox

_SEED_BITS = 16
"""A seed from the dice is short enough to be read out and typed."""

_NO_PRESET = ("choose …", "")
_NEUTRAL = "neutral: the model's own distribution"

_NOT_MORE = ("temperature", "top_k", "top_p", "min_p", "seed", "dialect", "draw_method")
_MORE = [parameter for name, parameter in PARAMETERS.items() if name not in _NOT_MORE]
_MORE_HELP = "".join(
    (
        "<details><summary>more samplers</summary><ul>",
        *(f"<li><b>{p.label}</b>: {html.escape(p.help)}</li>" for p in _MORE),
        "</ul></details>",
    )
)

_SCALES: dict[str, Scale] = {
    "temperature": Linear(0.0, 3.0, 0.05),
    "top_k": Counts(2),
    "top_p": Linear(0.01, 1.0, 0.01, off=1.0),
    "min_p": Linear(0.0, 0.5, 0.005, off=0.0),
}
"""The scale of each slider; that of top-k ends with the vocabulary."""


class Controls(parts.Column):
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
        self.presets: dict[str, Mapping[str, Any]] = {}
        self.dials = {
            name: SliderWithBox(name, scale, self.set)
            for name, scale in _SCALES.items()
        }
        self.seed = parts.text_box(
            "An integer below 2**64; empty draws a new one each run",
            flex="1 1 auto",
            width="76px",
        )
        self.dialect = parts.dropdown(
            "Whose rules: order of the stages, ties, and the draw",
            DIALECTS,
            flex="1 1 auto",
        )
        self.preset = parts.dropdown(
            "Settings to begin with", [_NO_PRESET], flex="1 1 auto"
        )
        self.dice = parts.button(self.new_seed, "", "random", width="38px")
        self.neutralise_button = parts.button(
            self.neutralise, "Neutralise", width="100px", flex="0 0 auto"
        )
        self.summary = parts.html_line("summary")
        self.more = parts.text_box(
            "Any other settings, such as DRY 0.8, top-H 0.9; empty is none",
            placeholder="DRY 0.8, top-H 0.9",
            flex="1 1 auto",
        )
        self.seed_row = parts.labelled("seed", self.seed, self.dice)
        rows = [
            parts.labelled("preset", self.preset, self.neutralise_button),
            *self.dials.values(),
            self.seed_row,
            parts.labelled("dialect", self.dialect),
            parts.labelled("more", self.more),
            parts.html_line("more", _MORE_HELP),
            self.summary,
        ]
        super().__init__(rows, params=params)
        self.add_class("sampling-lab-controls")
        self.preset.observe(self._preset_chosen, "value")
        self.fit(vocab_size, presets or {})
        self.seed.observe(partial(self._box_filled, "seed"), "value")
        self.more.observe(self._more_filled, "value")
        self.dialect.observe(partial(self._box_filled, "dialect"), "value")

    def fit(self, vocab_size: int, presets: Mapping[str, Mapping[str, Any]]) -> None:
        """Fit a model: the end of top-k, and the settings that can be chosen."""
        self.presets = dict(presets)
        self.dials["top_k"].fit(Counts(vocab_size))
        options = [_NO_PRESET, *((name, name) for name in self.presets)]
        parts.offer(self.preset, self._preset_chosen, options, self._current_preset())
        self.show_idle({})

    def set(self, name: str, value: Any) -> None:
        """Change one parameter, to a value or its text; `problem` says why not."""
        value = read_value(name, value) if isinstance(value, str) else value
        self._change(lambda: self.params.replace(**{name: value}))

    def new_seed(self) -> None:
        """Take another seed."""
        self.set("seed", secrets.randbits(_SEED_BITS))

    def neutralise(self) -> None:
        """Turn everything off but seed, dialect and draw: the model's own numbers."""
        self._change(lambda: neutral(self.params))

    def show_idle(self, reasons: Mapping[str, str]) -> None:
        """Grey the controls that cannot matter; they can still be used.

        Args:
            reasons: for each such parameter, as `idle` gives them.
        """
        rows = {**self.dials, "seed": self.seed_row}
        for name, row in rows.items():
            change = row.add_class if name in reasons else row.remove_class
            change("sampling-lab-idle")
        differences = ", ".join(self.params.differences())
        lines = [f"differs from neutral: {differences}" if differences else _NEUTRAL]
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
            self._show()  # over what was typed
        self.params = params

    @traitlets.validate("params")
    def _with_dialect(self, proposal: dict[str, Any]) -> SamplingParams:
        """Keep the engine where new parameters name none."""
        params: SamplingParams = proposal["value"]
        return params.replace(dialect=params.dialect or self.dialect.value)

    @traitlets.observe("params")
    def _show(self, change: object = None) -> None:
        for name, dial in self.dials.items():
            dial.show(getattr(self.params, name))
        self.seed.value = "" if self.params.seed is None else str(self.params.seed)
        self.dialect.value = self.params.dialect
        self.more.value = self._more_text()
        self.preset.value = self._current_preset()

    def _current_preset(self) -> str:
        return next(filter(self._is_set, self.presets), "")

    def _is_set(self, name: str) -> bool:
        """Return whether a preset is what is in force."""
        if self.presets[name].get("temperature", 1.0) != self.params.temperature:
            return False  # as most are, and a slider asks for each of them
        try:
            return apply_preset(self.params, self.presets[name]) == self.params
        except ParameterError:  # an author's slip; choosing the preset tells of it
            return False

    def _box_filled(self, name: str, change: dict[str, Any]) -> None:
        if read_value(name, change["new"]) != getattr(self.params, name):
            self.set(name, change["new"])

    def _more_text(self) -> str:
        more = {p.name: getattr(self.params, p.name) for p in _MORE}
        return ", ".join(SamplingParams(**more).differences())

    def _more_filled(self, change: dict[str, Any]) -> None:
        if change["new"] == self._more_text():
            return

        def changed() -> SamplingParams:
            neutral = {parameter.name: parameter.neutral for parameter in _MORE}
            return self.params.replace(**neutral | parse_fields(change["new"]))

        self._change(changed)

    def _preset_chosen(self, change: dict[str, Any]) -> None:
        name = change["new"]
        if name and not self._is_set(name):
            self._change(lambda: apply_preset(self.params, self.presets[name]))
