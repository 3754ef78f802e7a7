"""The tabs of a step's random numbers: what they draw now, and at any temperature."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ...counterfactuals import (
    StepNoise,
    TemperatureMap,
    race_rows,
    temperature_map,
    wheel_slices,
)
from ...errors import ParameterError
from ...plots.drawing.labels import token_label, token_text
from ...plots.race import RaceArtists, race_table
from ...plots.temperature_map import MapArtists
from ...plots.wheel import WheelArtists, wheel_table
from ...sampling.draws import GIVEN, uniform_result
from ...text import counted
from .fast_figure import FastFigures, Place
from .step_view import StepView
from .tab import LABEL_ROOM, Picture, Tab, bar_label

COLDEST, HOTTEST = 0.05, 5.0
"""The range of the temperature map."""

_GREEDY = "Temperature is 0: the highest logit is taken, and no random number decides."
_NO_SEED = "Each run has a fresh seed. Set a seed to see what its numbers choose."


class DrawTab(Tab):
    """The random numbers of the draw: a race, or a wheel (the inverse CDF)."""

    name = "Draw"

    def draw(self, view: StepView) -> Picture:
        """Return the picture of the race or of the wheel."""
        if view.params.is_greedy:
            return self.sentence(_GREEDY)
        if view.noise is None:
            return self.sentence(_NO_SEED)
        if view.noise.uniform is None:
            return self._race(view, view.noise)
        return self._wheel(view, view.noise.method, view.noise.uniform)

    def _race(self, view: StepView, noise: StepNoise) -> Picture:
        logits = view.ledger.final.logits
        rows, room = race_rows(logits, noise, 8), min(8, len(logits))
        figure = self._figures.find(
            "race",
            28 * room + 84,
            [Place(LABEL_ROOM + 20, 50, self._width - LABEL_ROOM - 216, 28 * room)],
            lambda axes: RaceArtists(axes[0], room),
        )
        figure.artists.show(rows, [bar_label(view, row.token_id) for row in rows])
        names = [token_label(view.tokens, row.token_id) for row in rows[:2]]
        told = f"{names[0]}: q = {rows[0].exponential:.3g} · p/q = {rows[0].score:.3g}"
        if len(rows) > 1:
            told += f", the next best {names[1]} {rows[1].score:.3g}"
        table = race_table(rows, view.tokens)
        return Picture(figure.png(), self._prefix(view) + told, table)

    def _wheel(self, view: StepView, method: str, uniform: float) -> Picture:
        logits = view.ledger.final.logits
        drawn = uniform_result(method, uniform, logits)
        slices = wheel_slices(logits, 12)
        figure = self._figures.find(
            "wheel",
            170,
            [Place(20, 32, self._width - 40, 130)],
            lambda axes: WheelArtists(axes[0]),
        )
        figure.artists.show(slices, drawn, view.tokens)
        low, high = drawn.segment or (0.0, 1.0)
        name = token_label(view.tokens, drawn.token_id)
        told = f"{uniform:.4f} falls on {name}, from {low:.4f} to {high:.4f}"
        table = wheel_table(slices, (low, high), view.tokens)
        return Picture(figure.png(), self._prefix(view) + told, table)

    @staticmethod
    def _prefix(view: StepView) -> str:
        """Return a caption prefix when a person, not the draw, chose the token."""
        if view.drawn is None or view.drawn.method != GIVEN:
            return ""
        name = token_label(view.tokens, view.drawn.token_id)
        return f"a person chose {name}; the draw alone: "


class TemperatureMapTab(Tab):
    """The token that the same random numbers choose at every temperature."""

    name = "Temperature map"

    def __init__(self, figures: FastFigures) -> None:
        super().__init__(figures)
        self._asked: tuple[object, ...] = ()
        self._found: TemperatureMap

    def draw(self, view: StepView) -> Picture:
        """Return the picture of the map, or the sentence why there is none."""
        if view.noise is None:
            return self.sentence(_NO_SEED)
        try:
            found = self._find(view, view.noise)
        except ParameterError as error:
            return self.sentence(str(error))
        figure = self._figures.find(
            self.name,
            178,
            [Place(20, 50, self._width - 40, 120)],
            lambda axes: MapArtists(axes[0], COLDEST, HOTTEST),
        )
        temperature = view.params.temperature
        figure.artists.show(found, view.tokens)
        figure.artists.mark(temperature)
        is_inside = COLDEST <= temperature <= HOTTEST
        outside = "" if is_inside else f" · T = {temperature:g} is outside"
        changes = counted(len(found.flips), "change")
        told = f"{changes} from T = {COLDEST:g} to {HOTTEST:g}{outside} · {found.note}"
        table = found.table(partial(token_text, view.tokens))
        return Picture(figure.png(), told, table)

    def _find(self, view: StepView, noise: StepNoise) -> TemperatureMap:
        """Return the map. The last one is kept: it is the same at any temperature."""
        logits, params = view.ledger.raw_logits, view.params.replace(temperature=2.0)
        tensors = map(_bytes, (logits, noise.exponentials))
        asked = (params, view.history, noise.method, noise.uniform, *tensors)
        if asked != self._asked:
            self._found = temperature_map(
                logits,
                params,
                noise=noise,
                history=view.history,
                low=COLDEST,
                high=HOTTEST,
            )
            self._asked = asked
        return self._found


def _bytes(tensor: Tensor | None) -> bytes:
    return b"" if tensor is None else tensor.numpy().tobytes()
