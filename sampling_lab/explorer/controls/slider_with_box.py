"""A dial: a slider for a person to move, and a box that shows the exact value."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ipywidgets as widgets

from ...sampling.parameters import PARAMETERS, format_number
from ..panel.parts import label, text_box

_DIGITS = 9
"""Decimals of a slider's position that count; the rest is binary rounding."""


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
        if value is None:
            value = self.high if self.off is None else self.off
        value = min(max(value, self.low), self.high)  # 1e308 has no steps to count
        steps = round((value - self.low) / self.step)
        nearest = round(self.low + steps * self.step, _DIGITS)
        return min(max(nearest, self.low), self.high)

    def slider(self) -> widgets.FloatSlider:
        """Return a slider in steps."""
        return widgets.FloatSlider(
            min=self.low,
            max=self.high,
            step=self.step,
        )


class Counts:
    """Whole numbers from 1, ever further apart, to the vocabulary, which is off.

    Attributes:
        last: the highest position, which is off.
    """

    def __init__(self, vocab_size: int, stops: int = 120) -> None:
        last = max(1, vocab_size - 1)
        ratios = (at / stops for at in range(stops + 1))
        self._values = sorted({round(last**ratio) for ratio in ratios})
        self.last = len(self._values)

    def value(self, position: float) -> int | None:
        """Return the number at a stop, or None at the last one."""
        at = int(position)
        return self._values[at] if at < len(self._values) else None

    def position(self, value: float | None) -> int:
        """Return the stop at or just above a number."""
        return bisect_left(self._values, math.inf if value is None else value)

    def slider(self) -> widgets.IntSlider:
        """Return a slider over the stops."""
        return widgets.IntSlider(min=0, max=self.last)


Scale = Linear | Counts
"""Where a value is on its slider, and what a position means."""


class SliderWithBox(widgets.HBox):  # type: ignore[misc]  # ipywidgets has no types
    """A name, a slider to move and a box that shows and takes the exact value.

    Args:
        name: of the parameter.
        scale: the slider's positions.
        on_change: called with the name, and with a value when a person moves the
            slider, or with the number (or words) typed into the box.
    """

    def __init__(
        self, name: str, scale: Scale, on_change: Callable[[str, Any], None]
    ) -> None:
        help_text = PARAMETERS[name].help
        tooltip = help_text[0].upper() + help_text[1:]
        self.scale: Scale = scale
        self.slider = scale.slider()
        self.slider.tooltip, self.slider.readout = tooltip, False
        self.slider.layout.flex, self.slider.layout.min_width = "1 1 auto", "60px"
        # Unlike a number box, a text box keeps 2**64 - 1 to the last digit.
        self.box = text_box(tooltip, width="76px", flex="0 0 auto")
        self._on_change = partial(on_change, name)
        super().__init__([label(PARAMETERS[name].label), self.slider, self.box])
        self.slider.observe(self._slider_moved, "value")
        self.box.observe(self._box_filled, "value")
        self._value: float | None = None

    def show(self, value: float | None) -> None:
        """Show a value; a value between two positions keeps all its digits."""
        self._value = value
        if not self._stands_right(self.slider.value):
            self.slider.value = self.scale.position(value)
        self.box.value = _shown(value)

    def fit(self, scale: Counts) -> None:
        """Take another scale; the value stays."""
        self.scale = scale
        # A slider pulls its position into the new range, which no person has done.
        self.slider.unobserve(self._slider_moved, "value")
        self.slider.max = scale.last
        self.show(self._value)
        self.slider.observe(self._slider_moved, "value")

    def _stands_right(self, position: float) -> bool:
        """Return whether the slider's position is that of the value.

        Ignore rounding in the last bits: sending a correction would make a slider jump
        while it is being dragged.
        """
        return round(position, _DIGITS) == self.scale.position(self._value)

    def _slider_moved(self, change: dict[str, Any]) -> None:
        if not self._stands_right(change["new"]):  # else `show` has moved it
            self._on_change(self.scale.value(change["new"]))

    def _box_filled(self, change: dict[str, Any]) -> None:
        if change["new"] != _shown(self._value):
            self._on_change(change["new"])


def _shown(value: float | None) -> str:
    return "off" if value is None else format_number(value)
