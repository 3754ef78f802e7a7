"""The luck of one draw, as a wheel or a race, and of many beside their theory."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from torch import Tensor

from ..draws import Drawn
from ..luck import Luck, RaceRow, Slice, TheoryCheck, race_rows, wheel_slices
from ._labels import Tokens, token_label
from ._style import (
    CHOSEN,
    FAINT,
    FINAL,
    FONT_SIZE,
    GRID,
    INK,
    PAPER,
    new_axes,
    quiet_frame,
)
from ._text import ink_on, letters_that_fit, name_ticks, write
from .bars import REST

_LIGHT = "#bcd9ea"

_SHADES = (FINAL, _LIGHT)
"""Neighbouring slices differ in greyscale too."""

_SCORES = tuple(m * 10.0**e for e in range(-9, 9) for m in (1, 2, 5))


def plot_wheel(
    logits: Tensor,
    drawn: Drawn | None = None,
    *,
    tokens: Tokens = None,
    n: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the 0-1 axis cut into the tokens' slices, and where the number fell.

    Args:
        logits: final logits, shape (V,).
        drawn: what a wheel drew from them, to mark.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        n: how many tokens get a slice of their own; the last is everything else.
        ax: the axes to draw on; None makes a new figure.
    """
    ax = ax or new_axes(9.0, 2.0)
    for at, part in enumerate(wheel_slices(logits, n)):
        _draw_slice(ax, part, _slice_color(part, at), tokens)
    if drawn is not None and drawn.uniform is not None:
        _draw_hit(ax, drawn, tokens)
    _unit_axis(ax)
    return ax


def _slice_color(part: Slice, at: int) -> str:
    return GRID if part.token_id is None else _SHADES[at % 2]


def _draw_slice(ax: Axes, part: Slice, color: str, tokens: Tokens) -> bool:
    """Draw a slice, with its token and probability; False if they do not fit."""
    share, middle = part.high - part.low, (part.low + part.high) / 2
    style = {"color": color, "edgecolor": PAPER, "linewidth": 1.2}
    ax.barh(0, share, 1.0, part.low, **style)
    label, letters = _name(part.token_id, tokens), letters_that_fit(ax, share)
    if letters < max(len(label), 5):
        return False
    ink = ink_on(color)
    write(ax, middle, 0.16, label, ha="center", color=ink, weight="bold")
    write(ax, middle, -0.2, f"{share:.3f}", ha="center", color=ink)
    return True


def _name(token_id: int | None, tokens: Tokens) -> str:
    return REST if token_id is None else token_label(tokens, token_id)


def _draw_hit(ax: Axes, drawn: Drawn, tokens: Tokens) -> None:
    """Accent the slice that was hit and mark the number over it."""
    uniform, part = drawn.uniform, Slice(drawn.token_id, *drawn.segment)
    for text in ax.texts:
        if part.low <= text.get_position()[0] <= part.high:
            text.set_visible(False)
    fits = _draw_slice(ax, part, CHOSEN, tokens)
    ax.plot([uniform, uniform], [-0.5, 0.62], color=INK, linewidth=2, zorder=4)
    ax.plot(uniform, 0.66, marker="v", markersize=11, color=INK, zorder=4)
    name = "" if fits else f" → {_name(part.token_id, tokens)}"
    text = f"   {uniform:.3f}{name}   "
    side = "left" if uniform < 0.5 else "right"
    write(ax, uniform, 0.76, text, ha=side, weight="bold")


def _unit_axis(ax: Axes) -> None:
    quiet_frame(ax)
    ax.grid(False)
    ax.set_xlim(0, 1)
    ax.set_ylim(-0.62, 0.95)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])


def plot_race(
    logits: Tensor,
    luck: Luck,
    *,
    tokens: Tokens = None,
    n: int = 8,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a race: each token starts at p, its luck 1/q carries it to p/q.

    On a logarithmic axis the length of a bar is the token's luck alone, the same at
    every temperature; the furthest right wins.

    Args:
        logits: final logits, shape (V,).
        luck: a race's, from `luck_of`.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        n: how many of the best.
        limits: the ends of the axis, both > 0, so that pictures can be compared;
            None fits all that is drawn.
        ax: the axes to draw on; None makes a new figure.
    """
    rows = race_rows(logits, luck, n)
    ax = ax or new_axes(8.0, 1.6 + 0.4 * len(rows))
    quiet_frame(ax)
    for at, row in enumerate(rows):
        color = CHOSEN if at == 0 else FINAL
        low, high = sorted((row.prob, row.score))
        ax.barh(at, high - low, 0.5, low, color=color, edgecolor=INK, linewidth=1.0)
        ax.plot(
            row.prob, at, "o", color=PAPER, markeredgecolor=INK, markersize=8, zorder=4
        )
        ax.plot(
            row.score, at, "D", color=color, markeredgecolor=INK, markersize=9, zorder=5
        )
    ax.set_xscale("log")
    _score_axis(ax, *(limits or _race_limits(rows)))
    _write_scores(ax, rows)
    names = [token_label(tokens, row.token_id) for row in rows]
    name_ticks(ax, "y", [f"▶ {names[0]}", *names[1:]])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(
        "○ probability p      ◆ score p/q: the highest wins",
        fontsize=FONT_SIZE,
        color=INK,
    )
    return ax


def _race_limits(rows: Sequence[RaceRow]) -> tuple[float, float]:
    values = [value for row in rows for value in (row.prob, row.score)]
    room = 1.1 * (max(values) / min(values)) ** 0.06
    return min(values) / room, max(values) * room


def _score_axis(ax: Axes, low: float, high: float) -> None:
    ax.set_xlim(low, high)
    marks = [mark for mark in _SCORES if low <= mark <= high]
    marks = marks if len(marks) <= 8 else marks[::3]
    ax.set_xticks(marks, labels=[f"{mark:g}" for mark in marks])
    ax.set_xticks([], minor=True)


def _write_scores(ax: Axes, rows: Sequence[RaceRow]) -> None:
    """Write p, q and p/q of each token beside its bar."""
    place = {"transform": ax.get_yaxis_transform()}
    write(ax, 1.02, -0.8, "p / q = score", color=FAINT, **place)
    for at, row in enumerate(rows):
        text = f"{row.prob:.3f} / {row.exponential:.3f} = {row.score:.3f}"
        weight = "bold" if at == 0 else "normal"
        write(ax, 1.02, at, text, weight=weight, **place)


def plot_theory(
    check: TheoryCheck, *, tokens: Tokens = None, ax: Axes | None = None
) -> Axes:
    """Draw what many seeds drew over the final probabilities and their 95 % band.

    Args:
        check: from `compare_with_theory`.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        ax: the axes to draw on; None makes a new figure.
    """
    ax = ax or new_axes(8.0, 1.9 + 0.4 * len(check.rows))
    quiet_frame(ax)
    for at, row in enumerate(check.rows):
        ax.barh(at, row.prob, 0.72, color=_LIGHT, edgecolor=FINAL, linewidth=1.5)
        ax.plot(
            [row.low, row.high],
            [at, at],
            color=FAINT,
            linewidth=9,
            solid_capstyle="butt",
            zorder=3,
        )
        marker, color = ("o", INK) if row.is_inside else ("X", "#d55e00")
        ax.plot(
            row.frequency,
            at,
            marker,
            color=color,
            markeredgecolor=PAPER,
            markersize=10,
            zorder=4,
        )
        text = f"{row.frequency:.3f}   {row.prob:.3f}"
        write(ax, 1.02, at, text, transform=ax.get_yaxis_transform())
    write(
        ax,
        1.02,
        -0.75,
        "drawn   theory",
        transform=ax.get_yaxis_transform(),
        color=FAINT,
    )
    name_ticks(ax, "y", [_name(row.token_id, tokens) for row in check.rows])
    ax.set_ylim(len(check.rows) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel(
        f"● drawn by {check.draws:,} seeds   ▬ 95 % of samples fall here\n"
        f"chi-square {check.statistic:.1f} with {check.degrees} degrees of freedom, "
        f"p-value {check.p_value:.2f}",
        fontsize=FONT_SIZE,
        color=INK,
    )
    return ax
