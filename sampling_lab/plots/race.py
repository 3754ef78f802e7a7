"""One draw as an exponential race (the Gumbel-max trick): p and p / q of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from ..counterfactuals import RaceRow, StepNoise, race_rows
from ..sampling.arguments import checked
from .drawing import style
from .drawing.labels import Tokens, token_label, token_text
from .drawing.shapes import Markers, Rectangles
from .drawing.text import points_wide
from .drawing.text_labels import TextColumn, TextLabel, TextLabels, number
from .drawing.ticks import decade_ticks

_COLUMNS = {"p": 54.0, "q": 116.0, "p / q": 180.0}
"""Where the columns of numbers end, in points right of the axes."""

_MARK_ROOM = 46.0
"""Points for a mark of the axis with its number."""


@checked
def plot_race(
    logits: Tensor,
    noise: StepNoise,
    *,
    tokens: Tokens = None,
    n: int = 8,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a race: each token starts at p, and its random number carries it to p/q.

    On the logarithmic axis the length of a bar is 1/q alone, the same at every
    temperature; the furthest right wins.

    Args:
        logits: final logits, shape (V,).
        noise: a race's, from `noise_of_step`.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        n: how many of the best.
        limits: the ends of the axis, both > 0, so that pictures can be compared;
            None fits all that is drawn.
        ax: the axes to draw on; None makes a new figure.
    """
    rows = race_rows(logits, noise, n)
    ax = ax or style.new_axes(8.0, 1.6 + 0.4 * len(rows))
    labels = [token_label(tokens, row.token_id) for row in rows]
    RaceArtists(ax, len(rows)).show(rows, labels, limits)
    return ax


def race_table(rows: Sequence[RaceRow], tokens: Tokens = None) -> list[dict[str, Any]]:
    """Return `rows` of `race_rows` with the texts of their tokens."""
    return [
        {
            "token_id": row.token_id,
            "token": token_text(tokens, row.token_id),
            "p": row.prob,
            "q": row.exponential,
            "p/q": row.score,
        }
        for row in rows
    ]


class RaceArtists:
    """The artists of one picture, which can show other numbers.

    Args:
        ax: the axes to draw on.
        rows: how many tokens there is room for.
    """

    def __init__(self, ax: Axes, rows: int) -> None:
        self._ax = ax
        self._prepare_axes(rows)
        self._bars = Rectangles(ax, edgecolors=style.INK, linewidths=1.0, zorder=2)
        edge = {"markeredgecolor": style.INK}
        self._starts = Markers(ax, "o", 8, color=style.PAPER, zorder=4, **edge)
        self._ends = Markers(ax, "D", 8, color=style.FINAL, zorder=5, **edge)
        self._winner = Markers(ax, "D", 9, color=style.CHOSEN, zorder=5, **edge)
        self._labels = TextColumn(ax, 0.0, -9.0, range(rows))
        self._numbers = TextLabels(ax, ax.get_yaxis_transform())
        self._heading = TextLabels(ax, ax.get_yaxis_transform())
        self._heading.write(
            TextLabel(1.0, -0.85, name, "right", style.FAINT, move=(end, 0.0))
            for name, end in _COLUMNS.items()
        )

    def show(
        self,
        rows: Sequence[RaceRow],
        labels: Sequence[str],
        limits: tuple[float, float] | None = None,
    ) -> None:
        """Draw rows from `race_rows`; no `limits` of the axis fit all of them."""
        self._scale(*(limits or _fitting(rows)))
        self._bars.show(
            (min(row.prob, row.score), max(row.prob, row.score), at - 0.25, at + 0.25)
            for at, row in enumerate(rows)
        )
        self._bars.color([style.CHOSEN, *[style.FINAL] * (len(rows) - 1)])
        places = range(len(rows))
        self._starts.show([row.prob for row in rows], places)
        self._ends.show([row.score for row in rows[1:]], places[1:])
        self._winner.show([row.score for row in rows[:1]], places[:1])
        self._labels.set_texts([f"▶ {labels[0]}", *labels[1:]])
        self._numbers.write(
            TextLabel(1.0, at, number(value), "right", bold=at == 0, move=(end, 0.0))
            for at, row in enumerate(rows)
            for value, end in zip(row[1:], _COLUMNS.values(), strict=True)
        )

    def _prepare_axes(self, rows: int) -> None:
        ax = self._ax
        style.quiet_frame(ax)
        ax.set_xscale("log")
        ax.set_yticks([])
        ax.set_ylim(rows - 0.5, -0.5)
        style.name_axes(ax, "○ probability p      ◆ score p / q: the highest wins")

    def _scale(self, low: float, high: float) -> None:
        ax = self._ax
        ax.set_xlim(low, high)
        marks = decade_ticks(low, high, int(points_wide(ax) / _MARK_ROOM))
        ax.set_xticks(marks, labels=[f"{mark:g}" for mark in marks])
        ax.set_xticks([], minor=True)


def _fitting(rows: Sequence[RaceRow]) -> tuple[float, float]:
    values = [value for row in rows for value in (row.prob, row.score)]
    room = 1.1 * (max(values) / min(values)) ** 0.06
    return min(values) / room, max(values) * room
