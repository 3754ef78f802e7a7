"""The pictures of the explorer's tabs, each with its caption and its table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from ..draws import Drawn, land
from ..errors import ParameterError
from ..luck import Luck, TemperatureMap, race_rows, temperature_map, wheel_slices
from ..plots import (
    caption,
    distribution_table,
    plot_race,
    plot_stages,
    plot_steps,
    plot_temperature_map,
    plot_wheel,
    stages_table,
    steps_table,
)
from ..plots._columns import TextColumn
from ..plots._labels import token_label
from ..plots._style import CHOSEN, FAINT, FINAL, GRID, INK, PAPER
from ..plots._text import write
from ..plots.temperature_map import FILLS, OTHER
from .canvas import DistributionCanvas
from .png import PaletteEncoder
from .view import View

TABS = ("Distribution", "Stages", "Draw", "Temperature map", "Steps")
"""The tabs, in their order."""

_SCALE = 1.5


class Picture(NamedTuple):
    """One tab's picture, the line under it and the rows behind it."""

    png: bytes
    caption: str
    table: list[dict[str, Any]]


class Pictures:
    """Draw any tab of a view.

    Args:
        width: in CSS pixels.
    """

    def __init__(self, width: int = 640) -> None:
        self.width = width
        self._bars = DistributionCanvas(width)
        self._encoder = PaletteEncoder(
            [PAPER, FINAL, CHOSEN, INK, FAINT, GRID, *FILLS, OTHER]
        )
        self._figure = Figure((1, 1), dpi=72 * _SCALE, facecolor=PAPER)
        self._canvas = FigureCanvasAgg(self._figure)
        self._map: tuple[Any, TemperatureMap] | None = None

    def draw(self, tab: str, view: View) -> Picture:
        """Return a tab's picture.

        Args:
            tab: one of `TABS`.
            view: what there is to see.

        Raises:
            ParameterError: there is no such tab.
        """
        if tab not in TABS:
            raise ParameterError(f"tab must be one of {', '.join(TABS)}, got {tab!r}")
        draw: Callable[[View], Picture] = {
            "Distribution": self._distribution,
            "Stages": self._stages,
            "Draw": self._draw,
            "Temperature map": self._temperature_map,
            "Steps": self._steps,
        }[tab]
        return draw(view)

    def _distribution(self, view: View) -> Picture:
        bars = distribution_table(
            view.ledger, tokens=view.tokens, chosen=view.chosen, n=self._bars.bars
        )
        rows = [dataclasses.asdict(bar) for bar in bars]
        return Picture(self._bars.draw(view), caption(view.ledger), rows)

    def _stages(self, view: View) -> Picture:
        ledger = view.ledger
        ids = ledger.top(10)
        columns = stages_table(ledger)
        labels = [token_label(view.tokens, token_id) for token_id in ids]
        records = [ledger.removed_by(token_id) for token_id in ids]
        verdicts = [record.stage.name if record else "kept" for record in records]
        wide = (self.width - 120 - 90) / len(columns)
        axes = self._axes(
            340, [(120 + at * wide, wide - 8, 60, 240) for at in range(len(columns))]
        )
        plot_stages(ledger, tokens=view.tokens, axes=axes)
        TextColumn(axes[-1], 1.0, 5.0, range(len(ids)), verdicts, align="left")
        rows = [
            {"token_id": token_id, "token": label, "removed_by": verdict}
            | {column.title: column.after[at] for column in columns}
            for at, (token_id, label, verdict) in enumerate(
                zip(ids, labels, verdicts, strict=True)
            )
        ]
        told = " → ".join(f"{c.title}: {c.kept_count:,}" for c in columns)
        if not ledger.stages:
            told = "no stage acts: the final distribution is the raw one"
        return Picture(self._png(), told, rows)

    def _draw(self, view: View) -> Picture:
        if view.params.is_greedy:
            return self._sentence(
                "Temperature is 0: the highest logit is taken, there is no luck."
            )
        if view.luck is None:
            return self._sentence(
                "Every run brings a fresh seed; set a seed to see its luck here."
            )
        if view.luck.exponentials is None:
            return self._wheel(view, view.luck)
        return self._race(view, view.luck)

    def _race(self, view: View, luck: Luck) -> Picture:
        logits = view.ledger.final.logits
        rows = race_rows(logits, luck, 8)
        (ax,) = self._axes(340, [(130, 280, 50, 250)])
        plot_race(logits, luck, tokens=view.tokens, ax=ax)
        best, *others = rows
        told = f"q = {best.exponential:.3f} · p/q = {best.score:.3g}"
        if others:
            told += f", the next best {others[0].score:.3g}"
        table = [
            {"token": token_label(view.tokens, row.token_id), **row._asdict()}
            for row in rows
        ]
        return Picture(self._png(), told, table)

    def _wheel(self, view: View, luck: Luck) -> Picture:
        logits = view.ledger.final.logits
        drawn = land(luck.method, luck.uniform, logits)
        (ax,) = self._axes(180, [(20, 600, 40, 130)])
        plot_wheel(logits, drawn, tokens=view.tokens, ax=ax)
        low, high = drawn.segment
        told = f"{luck.uniform:.3f} falls on {low:.3f} to {high:.3f}"
        table = [
            {
                "token": "everything else"
                if part.token_id is None
                else token_label(view.tokens, part.token_id),
                **part._asdict(),
            }
            for part in wheel_slices(logits, 12)
        ]
        return Picture(self._png(), told, table)

    def _temperature_map(self, view: View) -> Picture:
        if view.luck is None:
            return self._sentence(
                "Every run brings a fresh seed; set a seed to see its luck here."
            )
        try:
            found = self._found(view, view.luck)
        except ParameterError as error:
            return self._sentence(str(error))
        (ax,) = self._axes(180, [(20, 600, 50, 120)])
        temperature = view.params.temperature
        plot_temperature_map(found, tokens=view.tokens, current=temperature, ax=ax)
        told = f"{len(found.flips)} changes · {found.note}"
        text = lambda token_id: token_label(view.tokens, token_id)  # noqa: E731
        return Picture(self._png(), told, found.table(text))

    def _found(self, view: View, luck: Luck) -> TemperatureMap:
        logits, params = view.ledger.raw_logits, view.params.replace(temperature=1.0)
        key = (params, view.history, luck.method, luck.uniform)
        if self._map is not None:
            (known, before, numbers), found = self._map
            same = known == key and before.equal(logits)
            if same and _same(numbers, luck.exponentials):
                return found
        drawn = _Replayed(-1, luck.method, luck.uniform)
        object.__setattr__(drawn, "luck", luck)
        found = temperature_map(logits, params, drawn=drawn, history=view.history)
        self._map = ((key, logits, luck.exponentials), found)
        return found

    def _steps(self, view: View) -> Picture:
        if not view.steps:
            return self._sentence("No token was drawn yet: Generate first.")
        axes = self._axes(
            380, [(70, 560, 40 + at * 110, 95) for at in reversed(range(3))]
        )
        plot_steps(view.steps, selected=view.selected, axes=axes)
        rows = steps_table(view.steps)
        mean = sum(row.surprisal for row in rows) / len(rows)
        told = (
            f"mean surprisal {mean:.2f} bits · perplexity {2.0 ** min(mean, 999):.3g}"
        )
        table = [
            {
                name: None if value == math.inf else value
                for name, value in dataclasses.asdict(row).items()
            }
            for row in rows
        ]
        return Picture(self._png(), told, table)

    def _sentence(self, text: str) -> Picture:
        self._axes(120, [])
        ax = self._figure.add_axes([0, 0, 1, 1])
        ax.axis("off")
        write(ax, 0.5, 0.5, text, ha="center", wrap=True)
        return Picture(self._png(), text, [])

    def _axes(
        self, height: int, boxes: Sequence[tuple[float, float, float, float]]
    ) -> list[Axes]:
        self._figure.clear()
        self._figure.set_size_inches(self.width / 72, height / 72)
        return [
            self._figure.add_axes(
                [left / self.width, low / height, wide / self.width, high / height]
            )
            for left, wide, low, high in boxes
        ]

    def _png(self) -> bytes:
        self._canvas.draw()
        return self._encoder.encode(np.asarray(self._canvas.buffer_rgba()), 72 * _SCALE)


class _Replayed(Drawn):
    """A draw whose luck is known already."""

    luck: Luck

    def exponentials(self, probs: Tensor) -> Tensor:
        return self.luck.exponentials


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other or (one is not None and other is not None and one.equal(other))
