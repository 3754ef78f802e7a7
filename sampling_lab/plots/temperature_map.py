"""Which token a seed chooses at every temperature, and many seeds at a few."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from torch import Tensor

from ..counterfactuals import SeedGrid, Segment, StepNoise, TemperatureMap
from ..errors import ParameterError
from ..sampling.arguments import check_range, checked
from ..sampling.validation import rule_error
from .drawing import style
from .drawing.band import Band
from .drawing.labels import Tokens, token_label
from .drawing.text import (
    LEAST_ROOM,
    ink_on,
    name_ticks,
    points_high,
    points_wide,
    write,
)
from .drawing.text_labels import TextLabel, TextLabels, fitted

FILLS = (
    "#0072b2",
    "#f0e442",
    "#cc79a7",
    "#222222",
    "#8fc8e6",
    "#d55e00",
    "#009e73",
)
"""Areas, each far from the one before it in greyscale."""

OTHER = style.GRID
"""Tokens beyond the colours: told apart by their text alone."""

_MARKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LINE_MARKS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0)


def token_colors(token_ids: Sequence[int]) -> dict[int, str]:
    """Return a colour for each token, in order of first appearance."""
    distinct = dict.fromkeys(token_ids)
    colors = chain(FILLS, repeat(OTHER))
    return dict(zip(distinct, colors, strict=False))


@checked
def plot_temperature_map(
    found: TemperatureMap,
    *,
    tokens: Tokens = None,
    current: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the temperatures as a band, cut where the choice changes.

    `found` is from `temperature_map`, `current` a temperature to mark; the others are
    as in `plot_distribution`.
    """
    ax = ax or style.new_axes(9.0, 2.2)
    artists = MapArtists(ax, found.segments[0].low, found.segments[-1].high)
    artists.show(found, tokens)
    artists.mark(current)
    return ax


class MapArtists:
    """The artists of one picture, which can show other numbers.

    Args:
        ax: the axes to draw on.
        low: the lowest temperature.
        high: the highest.
    """

    def __init__(self, ax: Axes, low: float, high: float) -> None:
        self._ax, self._low, self._high = ax, low, high
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        marks = [mark for mark in _MARKS if low <= mark <= high]
        ax.set_xticks(marks, labels=[f"{mark:g}" for mark in marks])
        ax.set_xticks([], minor=True)
        style.name_axes(ax, "temperature")
        self._names, self._flips = TextLabels(ax), TextLabels(ax)
        self._band = Band(ax, -0.9)

    def show(self, found: TemperatureMap, tokens: Tokens) -> None:
        """Draw another map of the same range."""
        colors = token_colors(found.token_ids)
        segments = found.segments
        fills = [colors[s.token_id] for s in segments]
        self._band.show([s[:2] for s in segments], fills)
        self._names.write(
            self._name(segment, token_label(tokens, segment.token_id), ink_on(fill))
            for segment, fill in zip(segments, fills, strict=True)
        )
        self._flips.write(self._flip_notes(found))

    def mark(self, temperature: float | None) -> None:
        """Point at a temperature from above, where no name is."""
        if temperature is None or not self._low <= temperature <= self._high:
            self._band.point(None)
        else:
            self._band.point(temperature, f"T = {temperature:g}")

    def _share(self, temperature: float) -> float:
        """Return the place of a temperature on the axis, from 0 to 1."""
        return math.log(temperature / self._low) / math.log(self._high / self._low)

    def _name(self, segment: Segment, label: str, ink: str) -> TextLabel:
        """Return the name of a segment, reading upwards where that is narrow."""
        share = self._share(segment.high) - self._share(segment.low)
        room = share * points_wide(self._ax) - 8
        middle = math.sqrt(segment.low * segment.high)
        level = fitted(label, room, bold=True)
        note = TextLabel(middle, -0.1, level, "center", ink, bold=True)
        if level or room < LEAST_ROOM:
            return note
        upwards = fitted(label, 0.5 * points_high(self._ax), bold=True)
        return note._replace(y=0.0, text=upwards, turned=True)

    def _flip_notes(self, found: TemperatureMap) -> Iterator[TextLabel]:
        """Yield the temperatures of the changes, none over another."""
        last = -1.0
        for flip in found.flips:
            share = self._share(flip.temperature)
            if share - last >= 0.07:
                last = share
                text = f"{flip.temperature:.2f}"
                yield TextLabel(flip.temperature, -0.68, text, "center")


@checked
def plot_race_lines(
    logits: Tensor,
    noise: StepNoise,
    token_ids: Sequence[int],
    *,
    tokens: Tokens = None,
    low: float = 0.2,
    high: float = 5.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the lines logit / T - log q of a race; the topmost one wins.

    The axis runs evenly in 1 / T, over which a score's logarithm is a straight line;
    the broad line behind is the envelope, the score of the winner.

    Args:
        logits: what temperature is given, shape (V,).
        noise: a race's, from `noise_of_step`.
        token_ids: the tokens to draw.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        low: the lowest temperature.
        high: the highest.
        ax: the axes to draw on; None makes a new figure.

    Raises:
        ParameterError: the random numbers are not those of a race.
    """
    if noise.exponentials is None:
        raise ParameterError(
            f"a race needs the random numbers of a race, got {noise.method}; set the "
            "draw method of the parameters to race"
        )
    check_range(low, high)
    if not token_ids:
        raise rule_error("token_ids", "at least one token id", token_ids)
    ax = ax or style.new_axes(8.0, 4.4)
    style.quiet_frame(ax, grid="both")
    beta = np.linspace(1 / high, 1 / low, 200)  # (200,)
    slopes = logits[list(token_ids)].double().numpy()
    heights = -noise.exponentials[list(token_ids)].double().log().numpy()
    scores = beta[:, None] * slopes + heights  # (200, tokens)
    for at, token_id in enumerate(token_ids):
        (line,) = ax.plot(beta, scores[:, at], linewidth=2.4, **style.series(at))
        look = {"color": line.get_color(), "weight": "bold"}
        write(ax, beta[-1], scores[-1, at], f" {token_label(tokens, token_id)}", **look)
    ax.plot(beta, scores.max(-1), color=style.INK, linewidth=7, alpha=0.25, zorder=1)
    ax.set_xlim(beta[0], beta[-1])
    marks = [mark for mark in _LINE_MARKS if low <= mark <= high]
    ax.set_xticks([1 / mark for mark in marks], labels=[f"{mark:g}" for mark in marks])
    style.name_axes(ax, "temperature, evenly in 1 / T", "logit / T − log q")
    return ax


@checked
def plot_seed_grid(
    grid: SeedGrid, *, tokens: Tokens = None, ax: Axes | None = None
) -> Axes:
    """Draw the chosen token of each seed (row) at each temperature (column).

    `grid` is from `seed_grid`; the others are as in `plot_distribution`.
    """
    columns = len(grid.temperatures)
    ax = ax or style.new_axes(1.6 + 1.05 * columns, 1.2 + 0.42 * len(grid.seeds))
    ids = [token_id for row in grid.token_ids for token_id in row]
    colors = token_colors(sorted(ids, key=ids.count, reverse=True))
    for y, row in enumerate(grid.token_ids):
        for x, token_id in enumerate(row):
            color = colors[token_id]
            edge: dict[str, Any] = {"edgecolor": style.PAPER, "linewidth": 2}
            ax.barh(y, 1.0, 1.0, x - 0.5, color=color, **edge)
            label = token_label(tokens, token_id, width=9)
            write(ax, x, y, label, ha="center", color=ink_on(color))
    name_ticks(ax, "x", [f"{temperature:g}" for temperature in grid.temperatures])
    name_ticks(ax, "y", [str(seed) for seed in grid.seeds])
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(len(grid.seeds) - 0.5, -0.5)
    ax.spines[:].set_visible(False)
    style.name_axes(ax, "temperature", "seed")
    return ax
