"""A text step by step: how surprising each token was, and how much choice there was."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from matplotlib.axes import Axes

from ..errors import ParameterError
from ..generation.results import Step
from ..sampling.arguments import checked
from .drawing.labels import drawable, shorten
from .drawing.shapes import Box, HatchedRectangles, Markers
from .drawing.style import CHOSEN, FINAL, GRID, INK, SERIES, new_panels, quiet_frame
from .drawing.text import points_wide
from .drawing.text_labels import TextLabel, TextLabels, text_width
from .drawing.ticks import decade_ticks, even_ticks, step_ticks

GIVEN = SERIES[1]
"""A token that a person chose; its diamond tells it apart in greyscale."""

_LEAST_STEPS = 12
"""Room for so many from the first on; bars of fewer would be slabs."""

_HEADROOM = 1.22
"""The end of an axis over the highest bar, for diamonds and the sign of infinity."""

_LEGIBLE, _LETTERS = 14.5, 10
"""Points that a token reading upwards needs, and how long it may be."""

_MARK_ROOM = 40.0
"""Points for a mark of the axis with its number."""


@checked
def plot_steps(
    steps: Sequence[Step],
    *,
    selected: int | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw surprisal, entropy and kept count of each step, one below the other.

    Tokens are written under the steps where they fit. A bar of infinite
    surprisal (a token of probability 0, which only a person can choose) reaches the
    top and is marked as such.

    Args:
        steps: of a `Generation`, or some of them; there may be none yet.
        selected: the place in `steps` of one to mark; None or -1 marks none.
        axes: three, from top to bottom; None makes a new figure.

    Raises:
        ParameterError: another number of axes.

    Example:
        >>> len(plot_steps([]))
        3
    """
    if axes is None:
        axes = new_panels(9.0, 5.2, rows=3)
    if len(axes) != 3:
        raise ParameterError(
            f"axes must be 3, for surprisal, entropy and kept count, got {len(axes)}"
        )
    StepArtists(axes).show(steps, selected)
    return list(axes)


class StepArtists:
    """The artists of one picture, which can show other numbers.

    Args:
        axes: three, from top to bottom.
    """

    def __init__(self, axes: Sequence[Axes]) -> None:
        pairs = zip(axes, _MEASURES, strict=True)
        self._panels = [_Panel(ax, measure) for ax, measure in pairs]
        self._bottom = bottom = axes[-1]
        self._tokens = TextLabels(bottom, bottom.get_xaxis_transform())
        word = TextLabel(0.0, 0.0, "step", "right", move=(-8.0, -13.0))
        TextLabels(bottom, bottom.transAxes).write([word])

    def show(self, steps: Sequence[Step], selected: int | None = None) -> None:
        """Draw these steps; `selected` is the place of one among them."""
        is_known = selected is not None and 0 <= selected < len(steps)
        marked = steps[selected or 0] if is_known else None
        first = steps[0].index + 1 if steps else 1
        last = max([first + _LEAST_STEPS - 1, *(step.index + 1 for step in steps)])
        for panel in self._panels:
            panel.show(steps, marked, (first - 0.5, last + 0.5))
        room = points_wide(self._bottom)
        marks = step_ticks(first, last, int(room / _MARK_ROOM))
        self._bottom.set_xticks(marks, labels=[f"{mark:,}" for mark in marks])
        self._tokens.write(_token_notes(steps, marked, room))


class _Measure(NamedTuple):
    """What one panel shows of every step."""

    name: str
    value: Callable[[Step], float]
    unit: str
    is_logarithmic: bool = False

    def limits(self, highest: float) -> tuple[float, float]:
        """Return the ends of an axis that reaches over the highest value."""
        if self.is_logarithmic:  # from below 1, so that a bar of 1 is seen as well
            return 0.7, 1.4 * max(highest, 8.0) ** _HEADROOM
        return 0.0, _HEADROOM * max(highest, 1.0)

    def told(self, step: Step) -> str:
        """Return a step's value with its unit."""
        value = self.value(step)
        if self.is_logarithmic:
            return f"{value:,} token{'' if value == 1 else 's'}"
        return f"{value:.2f} {self.unit}" if value < math.inf else "∞ bits"

    def marks(self, highest: float) -> list[float]:
        """Return a few round numbers up to the highest value."""
        if self.is_logarithmic:
            return decade_ticks(1.0, max(highest, 10.0), 3)
        return even_ticks(highest)


_MEASURES = (
    _Measure("surprisal", attrgetter("surprisal"), "bits"),
    _Measure("entropy of the draw", attrgetter("entropy"), "bits"),
    _Measure("kept", attrgetter("kept_count"), "tokens", is_logarithmic=True),
)


class _Panel:
    """One measure of every step as bars, that of one step marked."""

    def __init__(self, ax: Axes, measure: _Measure) -> None:
        self._ax, self._measure = ax, measure
        quiet_frame(ax, grid="y")
        if measure.is_logarithmic:
            ax.set_yscale("log")
        ax.set_xticks([])
        ax.tick_params(axis="y", length=0)
        self._band = HatchedRectangles(ax, facecolor=GRID, zorder=1)
        colors = {"drawn": FINAL, "given": GIVEN, "marked": CHOSEN}
        self._bars = {
            kind: HatchedRectangles(ax, facecolor=color, zorder=2)
            for kind, color in colors.items()
        }
        edge = {"markeredgecolor": INK, "zorder": 4, "clip_on": False}
        self._diamonds = Markers(ax, "D", 7, color=GIVEN, **edge)
        self._infinite = TextLabels(ax)
        self._heading = TextLabels(ax, ax.transAxes)

    def show(
        self,
        steps: Sequence[Step],
        marked: Step | None,
        limits: tuple[float, float],
    ) -> None:
        """Draw these steps; `limits` are the ends of their axis."""
        values = [self._measure.value(step) for step in steps]
        highest = max((value for value in values if value < math.inf), default=0.0)
        low, high = self._measure.limits(highest)
        self._ax.set_xlim(*limits)
        self._ax.set_ylim(low, high)
        marks = self._measure.marks(highest)
        self._ax.set_yticks(marks, labels=[f"{mark:,g}" for mark in marks])
        self._ax.set_yticks([], minor=True)
        half = max(0.4, 0.5 * (limits[1] - limits[0]) / points_wide(self._ax))
        boxes: dict[str, list[Box]] = {kind: [] for kind in self._bars}
        for step, value in zip(steps, values, strict=True):
            kind = "given" if step.is_given else "drawn"
            box = (step.index + 1 - half, step.index + 1 + half, low, min(value, high))
            boxes["marked" if step is marked else kind].append(box)
        for kind, region in self._bars.items():
            region.show(boxes[kind])
        at = [] if marked is None else [marked.index + 1]
        self._band.show((x - 1.25 * half, x + 1.25 * half, low, high) for x in at)
        self._show_given(steps, values, high)
        self._heading.write(self._told(steps, marked))

    def _show_given(
        self, steps: Sequence[Step], values: Sequence[float], high: float
    ) -> None:
        """Put a diamond on what a person chose, and say where a bar has no end."""
        pairs = list(zip(steps, values, strict=True))
        given = [(step.index + 1, value) for step, value in pairs if step.is_given]
        self._diamonds.show([x for x, _ in given], [min(y, high) for _, y in given])
        endless = [step.index + 1 for step, value in pairs if value == math.inf]
        self._infinite.write(
            TextLabel(x, high, "∞", bold=True, move=(8.0, -5.0))
            for x in endless[:_LEAST_STEPS]
        )

    def _told(self, steps: Sequence[Step], marked: Step | None) -> Iterator[TextLabel]:
        """Yield the texts over the panel: its name, and the marked step's value."""
        measure = self._measure
        yield TextLabel(0.0, 1.0, f"{measure.name}, {measure.unit}", move=(0.0, 9.0))
        is_first = measure is _MEASURES[0]
        if is_first and any(step.is_given for step in steps):
            key = "◆ chosen by a person"
            yield TextLabel(0.5, 1.0, key, "center", GIVEN, move=(0.0, 9.0))
        if marked is not None:
            value = measure.told(marked)
            if is_first:
                token = shorten(drawable(marked.token_text), 12)
                value = f"step {marked.index + 1:,} · {token} · {value}"
            yield TextLabel(1.0, 1.0, value, "right", bold=True, move=(0.0, 9.0))


def tokens_height(steps: Sequence[Step], width: float) -> float:
    """Return how many points under the axis their tokens take, 0 if they are left out.

    Args:
        steps: of a text.
        width: of the axes, in points.
    """
    labels = [shorten(drawable(step.token_text), _LETTERS) for step in steps]
    room = width / max(_LEAST_STEPS, len(steps))
    widths = [text_width(label, bold=True) for label in labels]
    if not widths or max(widths) + 6 <= room:
        return 20.0 if widths else 0.0
    return max(widths) + 8.0 if room >= _LEGIBLE else 0.0


def _token_notes(
    steps: Sequence[Step], marked: Step | None, width: float
) -> Iterator[TextLabel]:
    """Yield the tokens under their steps, along the axis or reading upwards to it."""
    height = tokens_height(steps, width)
    if not height:
        return
    level = TextLabel(0.0, 0.0, "", "center", move=(0.0, -32.0))
    turned = TextLabel(0.0, 0.0, "", "right", move=(0.0, -24.0), turned=True)
    note = level if height == 20.0 else turned
    for step in steps:
        text = shorten(drawable(step.token_text), _LETTERS)
        yield note._replace(x=step.index + 1, text=text, bold=step is marked)
