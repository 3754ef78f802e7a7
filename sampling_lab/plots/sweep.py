"""Final probability against temperature, one line for each of the likeliest tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from ..sampling.arguments import checked
from ..sampling.chain import Chain
from ..sampling.params import SamplingParams
from .drawing.labels import Tokens, token_label
from .drawing.style import FAINT, name_axes, new_axes, quiet_frame, series
from .drawing.text_labels import TextColumn

TEMPERATURES = tuple(step / 20 for step in range(1, 61))
"""0.05 to 3 in steps of 0.05."""

_LABEL_GAP = 0.065
"""Names of lines keep this far from each other, as a part of the axis."""


@dataclass(frozen=True)
class SweepLine:
    """One token's final probability at every temperature of a sweep."""

    label: str
    token_id: int
    temperatures: tuple[float, ...]
    probabilities: tuple[float, ...]


@checked
def sweep_table(
    logits: Tensor,
    temperatures: Sequence[float] = TEMPERATURES,
    *,
    params: SamplingParams | None = None,
    tokens: Tokens = None,
    n: int = 6,
) -> list[SweepLine]:
    """Return the lines behind `plot_temperature_sweep`, the most likely token first.

    Args:
        logits: the model's logits, shape (V,).
        temperatures: each >= 0; 0 is greedy.
        params: everything but the temperature: top-k, top-p, …; None is neutral.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        n: how many tokens get a line.
    """
    params = params or SamplingParams()
    top = Chain().ledger(logits).top(n)
    rows = torch.stack(
        [
            params.replace(temperature=temperature).chain().probs(logits)[top]
            for temperature in temperatures
        ]
    )  # (temperatures, n)
    return [
        SweepLine(
            token_label(tokens, token_id), token_id, tuple(temperatures), tuple(column)
        )
        for token_id, column in zip(top, rows.T.tolist(), strict=True)
    ]


@checked
def plot_temperature_sweep(
    logits: Tensor,
    temperatures: Sequence[float] = TEMPERATURES,
    *,
    params: SamplingParams | None = None,
    tokens: Tokens = None,
    n: int = 6,
    current: float | None = None,
    ax: Axes | None = None,
    **line_options: Any,
) -> Axes:
    """Draw final probability against temperature, each line named at its end.

    The arguments are those of `sweep_table`, and `current`, a temperature to mark;
    `ax`, the axes to draw on (None makes a new figure); `line_options`, for the lines.
    """
    lines = sweep_table(logits, temperatures, params=params, tokens=tokens, n=n)
    ax = ax or new_axes(8.0, 4.6)
    quiet_frame(ax, grid="both")
    for at, line in enumerate(lines):
        look = {"linewidth": 2.6, **series(at), **line_options}
        ax.plot(line.temperatures, line.probabilities, **look)
    ax.set_xlim(min(temperatures), max(temperatures))
    ax.set_ylim(0.0, 1.02)
    name_axes(ax, "temperature", "final probability")
    _name_lines(ax, lines)
    if current is not None:
        ax.axvline(current, color=FAINT, linewidth=1.5, linestyle=(0, (2, 2)))
    return ax


def _name_lines(ax: Axes, lines: Sequence[SweepLine]) -> None:
    """Write each line's name at its right end, in its colour, none over another."""
    heights = _spread([line.probabilities[-1] for line in lines])
    names = [f"{line.label}  {line.probabilities[-1]:.3f}" for line in lines]
    column = TextColumn(ax, 1.0, 8.0, heights, align="left")
    column.set_texts(names, [series(at)["color"] for at in range(len(lines))])


def _spread(heights: Sequence[float]) -> list[float]:
    """Move heights up until they keep the gap, in their order.

    >>> [round(height, 3) for height in _spread([0.5, 0.01, 0.02])]
    [0.5, 0.01, 0.075]
    """
    moved, lowest = list(heights), 0.0
    for at in sorted(range(len(heights)), key=lambda at: (heights[at], -at)):
        moved[at] = max(heights[at], lowest)
        lowest = moved[at] + _LABEL_GAP
    return moved
