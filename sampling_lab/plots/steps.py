"""A text step by step: how surprising each token was, and how much choice there was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..display import surprisal
from ..errors import ParameterError
from ..results import Step
from ._labels import drawable
from ._style import CHOSEN, FINAL, FONT_SIZE, INK, PAPER, quiet_frame


@dataclass(frozen=True)
class StepRow:
    """One step of a text, as `plot_steps` draws it.

    Attributes:
        step: its number, from 1.
        token: its text, visible.
        token_id: its id.
        surprisal: -log2 of its raw probability, in bits; inf where that is 0.
        entropy: of the final distribution, in bits.
        kept_count: tokens the draw could choose from.
        rank: by raw logit, 1 for the highest.
        is_given: whether a person chose it.
    """

    step: int
    token: str
    token_id: int
    surprisal: float
    entropy: float
    kept_count: int
    rank: int
    is_given: bool


def steps_table(steps: Sequence[Step]) -> list[StepRow]:
    """Return the rows behind `plot_steps`, in the order of the text.

    Args:
        steps: of a `Generation`, or some of them.
    """
    return [
        StepRow(
            step=step.index + 1,
            token=drawable(step.token_text),
            token_id=step.token_id,
            surprisal=surprisal(step),
            entropy=step.entropy,
            kept_count=step.kept_count,
            rank=step.rank,
            is_given=step.is_given,
        )
        for step in steps
    ]


def plot_steps(
    steps: Sequence[Step],
    *,
    selected: int | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw surprisal, entropy and kept count of each step, one below the other."""
    rows = steps_table(steps)
    if axes is None:
        figure = Figure((9, 5), layout="constrained", facecolor=PAPER)
        axes = list(figure.subplots(3, 1, sharex=True))
    if len(axes) != 3:
        raise ParameterError(f"axes must be 3, got {len(axes)}")
    finite = [row.surprisal for row in rows if row.surprisal < math.inf]
    top = max(finite, default=1.0) * 1.1
    columns = [
        ("surprisal", [min(row.surprisal, top) for row in rows]),
        ("entropy", [row.entropy for row in rows]),
        ("kept", [row.kept_count for row in rows]),
    ]
    x = [row.step for row in rows]
    for ax, (name, values) in zip(axes, columns, strict=True):
        quiet_frame(ax, grid="y")
        ax.bar(x, values, color=[CHOSEN if row.is_given else FINAL for row in rows])
        ax.set_ylabel(name, fontsize=FONT_SIZE, color=INK)
        if selected is not None and 0 <= selected < len(rows):
            ax.axvline(rows[selected].step, color=INK)
    axes[2].set_yscale("log")
    return list(axes)
