"""Mirostat at work: how surprising each token was, and the limit that follows it."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..errors import ParameterError
from ..generation.results import Generation
from ..sampling.arguments import checked
from .drawing.style import CHOSEN, FINAL, INK, name_axes, new_axes, quiet_frame


@checked
def mirostat_table(generation: Generation) -> list[dict[str, Any]]:
    """Return a row for each step: the token, its surprise in bits, and the limit mu.

    The surprise is -log2 of the final probability; mu is the limit at this step, which
    the steps before have moved.

    Raises:
        ParameterError: the text was made without Mirostat.
    """
    params = generation.params
    if not params.mirostat or params.is_greedy:
        raise ParameterError(
            "generation must be made with mirostat, got "
            f"{params.describe()}; set mirostat=2 and generate again"
        )
    mu, rows = 2 * params.mirostat_tau, []
    for step in generation.all_steps:
        surprise = step.final_surprisal
        rows.append(
            {
                "step": step.index + 1,
                "token": step.token_text,
                "surprise": surprise,
                "mu": mu,
                "kept": step.kept_count,
            }
        )
        mu -= params.mirostat_eta * (surprise - params.mirostat_tau)
    return rows


@checked
def plot_mirostat(generation: Generation, *, ax: Axes | None = None) -> Axes:
    """Draw the surprise of each token as a bar, mu as a line over it, and the target.

    Args:
        generation: made with Mirostat.
        ax: where to draw; None makes a new figure.

    Raises:
        ParameterError: the text was made without Mirostat.
    """
    rows, target = mirostat_table(generation), generation.params.mirostat_tau
    ax = new_axes(9.0, 3.6) if ax is None else ax
    places = [row["step"] for row in rows]
    surprises = [row["surprise"] for row in rows]
    ax.bar(places, surprises, color=FINAL, width=0.8, label="surprise of the token")
    limits = [row["mu"] for row in rows]
    ax.step(places, limits, where="mid", color=CHOSEN, linewidth=2.5, label="limit µ")
    ax.axhline(target, color=INK, linestyle="--", label=f"target {target:g} bits")
    quiet_frame(ax, grid="y")
    name_axes(ax, "step", "bits")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    mean = sum(surprises) / max(1, len(rows))
    ax.set_title(f"mean surprise {mean:.2f} bits", loc="left")
    ax.margins(x=0.01, y=0.12)
    ax.legend(loc="lower left", bbox_to_anchor=(0.35, 1.0), ncols=3, frameon=False)
    return ax
