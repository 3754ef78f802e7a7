"""Which token a seed chooses at every temperature, and many seeds at a few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
from matplotlib.axes import Axes
from torch import Tensor

from ..luck import Luck, SeedGrid, TemperatureMap
from ._labels import FONT, Tokens, shorten, token_label
from ._style import DASHES, FONT_SIZE, INK, PAPER, SERIES, new_axes, quiet_frame
from ._text import ink_on, letters_that_fit, name_ticks, write

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

OTHER = "#d0d0d0"
"""Tokens beyond the colours: told apart by their text alone."""

_MARKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LINE_MARKS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0)


def token_colors(token_ids: Sequence[int]) -> dict[int, str]:
    """Return a colour for each token, in order of first appearance."""
    distinct = dict.fromkeys(token_ids)
    colors = chain(FILLS, repeat(OTHER))
    return dict(zip(distinct, colors, strict=False))


def plot_temperature_map(
    found: TemperatureMap,
    *,
    tokens: Tokens = None,
    current: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the temperatures as a band, cut where the choice changes.

    Args:
        found: from `temperature_map`.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        current: a temperature to mark.
        ax: the axes to draw on; None makes a new figure.
    """
    ax = ax or new_axes(9.0, 2.2)
    colors = token_colors(found.token_ids)
    quiet_frame(ax)
    ax.set_xscale("log")
    low, high = found.segments[0].low, found.segments[-1].high
    for segment in found.segments:
        color = colors[segment.token_id]
        width = segment.high - segment.low
        ax.barh(0, width, 1.0, segment.low, color=color, edgecolor=PAPER, linewidth=2)
        share = math.log(segment.high / segment.low) / math.log(high / low)
        label = token_label(tokens, segment.token_id)
        label = _fit(label, letters_that_fit(ax, share))
        middle = math.sqrt(segment.low * segment.high)
        style = {"ha": "center", "color": ink_on(color), "weight": "bold"}
        write(ax, middle, -0.12, label, **style)
    _write_flips(ax, found)
    if current is not None and low <= current <= high:
        _mark_current(ax, current)
    _temperature_axis(ax, low, high)
    ax.set_ylim(-0.85, 0.95)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    return ax


def _fit(label: str, letters: int) -> str:
    """Shorten a label to the room there is; "" where three letters do not fit."""
    if letters >= len(label):
        return label
    return shorten(label, letters) if letters >= 3 else ""


def _write_flips(ax: Axes, found: TemperatureMap) -> None:
    """Write the temperatures of the changes under the band, none over another."""
    low, high = found.segments[0].low, found.segments[-1].high
    last = -1.0
    for flip in found.flips:
        place = math.log(flip.temperature / low) / math.log(high / low)
        if place - last < 0.06:
            continue
        last = place
        text = f"{flip.temperature:.2f}"
        write(ax, flip.temperature, -0.55, text, ha="center", va="top")


def _mark_current(ax: Axes, temperature: float) -> None:
    """Point at the band from above, where no label is."""
    for color, width in ((PAPER, 5.0), (INK, 2.2)):
        ax.plot([temperature] * 2, [0.2, 0.6], color=color, linewidth=width, zorder=4)
    ax.plot(temperature, 0.66, marker="v", markersize=11, color=INK, zorder=4)
    style = {"weight": "bold", "xytext": (12, 0), "textcoords": "offset points"}
    ax.annotate(
        f"T = {temperature:g}",
        (temperature, 0.78),
        va="center",
        family=FONT,
        fontsize=FONT_SIZE,
        color=INK,
        **style,
    )


def _temperature_axis(ax: Axes, low: float, high: float) -> None:
    ax.set_xlim(low, high)
    marks = [mark for mark in _MARKS if low <= mark <= high]
    ax.set_xticks(marks, labels=[f"{mark:g}" for mark in marks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("temperature", fontsize=FONT_SIZE, color=INK)


def plot_race_lines(
    logits: Tensor,
    luck: Luck,
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
        luck: a race's, from `luck_of`.
        token_ids: the tokens to draw.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        low: the lowest temperature.
        high: the highest.
        ax: the axes to draw on; None makes a new figure.
    """
    ax = ax or new_axes(8.0, 4.4)
    quiet_frame(ax, grid="both")
    beta = np.linspace(1 / high, 1 / low, 200)  # (200,)
    slopes = logits[list(token_ids)].double().numpy()
    heights = -luck.exponentials[list(token_ids)].double().log().numpy()
    scores = beta[:, None] * slopes + heights  # (200, tokens)
    for at, token_id in enumerate(token_ids):
        style = {"color": SERIES[at % 7], "linestyle": DASHES[at % 6], "linewidth": 2.4}
        ax.plot(beta, scores[:, at], **style)
        text = " " + token_label(tokens, token_id)
        write(ax, beta[-1], scores[-1, at], text, color=SERIES[at % 7], weight="bold")
    ax.plot(beta, scores.max(-1), color=INK, linewidth=7, alpha=0.25, zorder=1)
    ax.set_xlim(beta[0], beta[-1])
    marks = [mark for mark in _LINE_MARKS if low <= mark <= high]
    ax.set_xticks([1 / mark for mark in marks], labels=[f"{mark:g}" for mark in marks])
    ax.set_xlabel("temperature, evenly in 1 / T", fontsize=FONT_SIZE, color=INK)
    ax.set_ylabel("logit / T − log q", fontsize=FONT_SIZE, color=INK)
    return ax


def plot_seed_grid(
    grid: SeedGrid, *, tokens: Tokens = None, ax: Axes | None = None
) -> Axes:
    """Draw the chosen token of each seed (row) at each temperature (column).

    Args:
        grid: from `seed_grid`.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        ax: the axes to draw on; None makes a new figure.
    """
    columns = len(grid.temperatures)
    ax = ax or new_axes(1.6 + 1.05 * columns, 1.2 + 0.42 * len(grid.seeds))
    ids = [token_id for row in grid.token_ids for token_id in row]
    colors = token_colors(sorted(ids, key=ids.count, reverse=True))
    for y, row in enumerate(grid.token_ids):
        for x, token_id in enumerate(row):
            color = colors[token_id]
            ax.barh(y, 1.0, 1.0, x - 0.5, color=color, edgecolor=PAPER, linewidth=2)
            label = token_label(tokens, token_id, width=9)
            write(ax, x, y, label, ha="center", color=ink_on(color))
    name_ticks(ax, "x", [f"{temperature:g}" for temperature in grid.temperatures])
    name_ticks(ax, "y", [str(seed) for seed in grid.seeds])
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(len(grid.seeds) - 0.5, -0.5)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("temperature", fontsize=FONT_SIZE, color=INK)
    ax.set_ylabel("seed", fontsize=FONT_SIZE, color=INK)
    return ax
