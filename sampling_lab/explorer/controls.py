"""The controls: sliders and boxes over one `SamplingParams`."""

from __future__ import annotations

import math
import secrets
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import ipywidgets as widgets
import traitlets

from ..dialects import DIALECTS
from ..errors import ParameterError
from ..params import SamplingParams

_DIGITS = 9
"""Decimals of a slider's position that count; the rest is binary rounding."""

_SEED_BITS = 16
"""A seed from the dice is short enough to be read out and typed."""


class Scale(Protocol):
    """Where a value stands on its slider, and what a position stands for."""

    def value(self, position: float) -> float | None:
        """Return the value at a position; None where that is off."""
        ...

    def position(self, value: float | None) -> float:
        """Return the position nearest to a value."""
        ...

    def slider(self) -> widgets.Widget:
        """Return a slider with these positions."""
        ...


@dataclass(frozen=True)
class Linear:
    """Even steps from low to high; one end may mean off."""

    low: float
    high: float
    step: float
    off: float | None = None

    def value(self, position: float) -> float | None:
        """Return the position, without the rounding of binary fractions."""
        value = round(position, _DIGITS)
        return None if value == self.off else value

    def position(self, value: float | None) -> float:
        """Return the step nearest to a value: a slider would round it, and say so."""
        value = self.off if value is None else value
        steps = round((value - self.low) / self.step)
        nearest = round(self.low + steps * self.step, _DIGITS)
        return min(max(nearest, self.low), self.high)

    def slider(self) -> widgets.FloatSlider:
        """Return a slider in steps."""
        return widgets.FloatSlider(
            min=self.low, max=self.high, step=self.step, readout=False
        )


class Counts:
    """Whole numbers from 1, ever further apart, to the vocabulary, which is off."""

    def __init__(self, vocab_size: int, stops: int = 120) -> None:
        last = max(1, vocab_size - 1)
        ratios = (at / stops for at in range(stops + 1))
        self._values = sorted({round(last**ratio) for ratio in ratios})

    def value(self, position: float) -> int | None:
        """Return the number at a stop, or None at the last one."""
        at = int(position)
        return self._values[at] if at < len(self._values) else None

    def position(self, value: float | None) -> int:
        """Return the stop at or just above a number."""
        return bisect_left(self._values, math.inf if value is None else value)

    def slider(self) -> widgets.IntSlider:
        """Return a slider over the stops."""
        return widgets.IntSlider(min=0, max=len(self._values), readout=False)


class Dial(widgets.HBox):
    """A name, a slider to move and a box that shows and takes the exact value.

    Args:
        name: what stands before it.
        scale: the slider's positions.
        on_change: called with a value when a person moves the slider, or with the
            number (or words) typed into the box.
        tooltip: one sentence.
    """

    def __init__(
        self,
        name: str,
        scale: Scale,
        on_change: Callable[[Any], None],
        tooltip: str,
    ) -> None:
        self.scale = scale
        self.slider = scale.slider()
        self.slider.tooltip = tooltip
        self.slider.layout = widgets.Layout(flex="1 1 auto", min_width="60px")
        self.box = _box(tooltip)
        self._on_change = on_change
        super().__init__([label(name), self.slider, self.box])
        self.slider.observe(self._slider_moved, "value")
        self.box.observe(self._box_filled, "value")
        self._value: float | None = None

    def show(self, value: float | None) -> None:
        """Show a value; a value between two positions keeps all its digits."""
        self._value = value
        if not self._stands_right(self.slider.value):
            self.slider.value = self.scale.position(value)
        self.box.value = _shown(value)

    def _stands_right(self, position: float) -> bool:
        """Return whether the slider's position is that of the value.

        Up to binary rounding: to correct that would send a position to the browser,
        and a slider that a person moves on meanwhile would jump back.
        """
        return round(position, _DIGITS) == self.scale.position(self._value)

    def _slider_moved(self, change: dict[str, Any]) -> None:
        if not self._stands_right(change["new"]):  # else `show` has moved it
            self._on_change(self.scale.value(change["new"]))

    def _box_filled(self, change: dict[str, Any]) -> None:
        if change["new"] != _shown(self._value):
            self._on_change(_typed(change["new"]))


class Controls(widgets.VBox):
    """Everything that `SamplingParams` holds, as widgets.

    Args:
        params: the values to begin with; its dialect is resolved already.
        vocab_size: the end of top-k.

    Attributes:
        params: the values in force; setting it moves the widgets.
        problem: why the last input was refused, or "".
    """

    params = traitlets.Instance(SamplingParams)
    problem = traitlets.Unicode()

    def __init__(self, params: SamplingParams, vocab_size: int) -> None:
        self.dials = self._make_dials(vocab_size)
        self.seed = _box("An integer below 2**64; empty draws a new one each run")
        self.seed.layout.flex = "1 1 auto"
        self.dice = widgets.Button(
            icon="random", tooltip="Another seed", layout=widgets.Layout(width="38px")
        )
        self.dialect = widgets.Dropdown(
            options=list(DIALECTS),
            tooltip="Whose rules: order of the stages, ties, and the draw",
            layout=widgets.Layout(flex="1 1 auto", width="auto"),
        )
        super().__init__(
            [
                *self.dials.values(),
                widgets.HBox([label("seed"), self.seed, self.dice]),
                widgets.HBox([label("dialect"), self.dialect]),
            ],
            params=params,
        )
        self.add_class("sampling-lab-controls")
        self.seed.observe(self._seed_filled, "value")
        self.dialect.observe(self._dialect_chosen, "value")
        self.dice.on_click(self._dice_clicked)
        self._show(params)

    def set(self, name: str, value: Any) -> None:
        """Change one parameter; what it refuses is in `problem`."""
        try:
            params, self.problem = self.params.replace(**{name: value}), ""
        except ParameterError as error:
            params, self.problem = self.params, str(error)
        if params == self.params:
            self._show(params)  # over what was typed
        self.params = params

    def new_seed(self) -> None:
        """Take another seed."""
        self.set("seed", secrets.randbits(_SEED_BITS))

    def _make_dials(self, vocab_size: int) -> dict[str, Dial]:
        scales: dict[str, tuple[Scale, str]] = {
            "temperature": (Linear(0.0, 3.0, 0.05), "Divides the logits; 0 is greedy"),
            "top_k": (Counts(vocab_size), "Keep the k most likely tokens"),
            "top_p": (
                Linear(0.01, 1.0, 0.01, off=1.0),
                "Keep the most likely tokens that reach this mass together",
            ),
            "min_p": (
                Linear(0.0, 0.5, 0.005, off=0.0),
                "Keep tokens at least this fraction as likely as the likeliest",
            ),
        }
        return {
            name: Dial(
                name.replace("_", "-"), scale, partial(self._dial_turned, name), tooltip
            )
            for name, (scale, tooltip) in scales.items()
        }

    @traitlets.observe("params")
    def _params_set(self, change: dict[str, Any]) -> None:
        self._show(change["new"])

    def _show(self, params: SamplingParams) -> None:
        for name, dial in self.dials.items():
            dial.show(getattr(params, name))
        self.seed.value = "" if params.seed is None else str(params.seed)
        self.dialect.value = params.dialect

    def _dial_turned(self, name: str, value: Any) -> None:
        self.set(name, 1.0 if name == "temperature" and value is None else value)

    def _seed_filled(self, change: dict[str, Any]) -> None:
        seed = _typed(change["new"])
        if seed != self.params.seed:
            self.set("seed", seed)

    def _dialect_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] != self.params.dialect:
            self.set("dialect", change["new"])

    def _dice_clicked(self, button: widgets.Button) -> None:
        self.new_seed()


def label(text: str) -> widgets.Label:
    """Return the name of a control."""
    return widgets.Label(text, layout=widgets.Layout(width="84px", flex="0 0 auto"))


def _box(tooltip: str) -> widgets.Text:
    """Return a text box: unlike a number box it keeps 2**64 - 1 to the last digit."""
    return widgets.Text(
        continuous_update=False,
        tooltip=tooltip,
        layout=widgets.Layout(width="76px", flex="0 0 auto"),
    )


def _shown(value: float | None) -> str:
    return "off" if value is None else f"{value:.12g}"


def _typed(text: str) -> Any:
    """Return what was typed as a number, None for off, or as it is."""
    text = text.strip()
    if text.lower() in ("", "off", "none"):
        return None
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
