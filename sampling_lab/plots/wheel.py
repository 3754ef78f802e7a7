"""One draw by the inverse CDF: the 0-1 axis cut into the tokens' slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from ..counterfactuals import Slice, wheel_slices
from ..sampling.draws import DrawResult
from .distribution_rows import REST
from .drawing.labels import Tokens, token_label, token_text
from .drawing.shapes import Markers, Rectangles
from .drawing.style import CHOSEN, FINAL, GRID, INK, LIGHT, PAPER, new_axes, quiet_frame
from .drawing.text import LEAST_ROOM, ink_on, points_high, points_wide
from .drawing.text_labels import TextLabel, TextLabels, fitted, text_width

SHADES = (FINAL, LIGHT)
"""Neighbouring slices differ in greyscale too."""


def plot_wheel(
    logits: Tensor,
    drawn: DrawResult | None = None,
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
        n: how many tokens get their own slice; the last is everything else.
        ax: the axes to draw on; None makes a new figure.
    """
    ax = ax or new_axes(9.0, 2.0)
    WheelArtists(ax).show(wheel_slices(logits, n), drawn, tokens)
    return ax


def slice_label(part: Slice, tokens: Tokens) -> str:
    """Return the name of a slice: its token's, or that of everything else."""
    return REST if part.token_id is None else token_label(tokens, part.token_id)


def wheel_table(
    slices: Sequence[Slice], segment: tuple[float, float], tokens: Tokens = None
) -> list[dict[str, Any]]:
    """Return a row for each slice, the most likely token first.

    Args:
        slices: from `wheel_slices`.
        segment: the ends of the slice on which the number fell.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
    """
    return [
        {
            "token_id": part.token_id,
            "token": (
                REST if part.token_id is None else token_text(tokens, part.token_id)
            ),
            "from": part.low,
            "to": part.high,
            "is_hit": part.low <= segment[0] and segment[1] <= part.high,
        }
        for part in slices
    ]


class WheelArtists:
    """The artists of one picture, which can show other numbers.

    Args:
        ax: the axes to draw on.
    """

    def __init__(self, ax: Axes) -> None:
        self._ax = ax
        self._prepare_axes()
        edges = {"edgecolors": PAPER, "linewidths": 1.2}
        self._slices = Rectangles(ax, zorder=2, **edges)
        self._hit = Rectangles(ax, facecolors=CHOSEN, zorder=3, **edges)
        self._needle = Rectangles(
            ax, facecolors=INK, edgecolors=INK, linewidths=2, zorder=4
        )
        self._tip = Markers(ax, "v", 11, color=INK, zorder=4)
        self._names = TextLabels(ax)

    def show(
        self, slices: Sequence[Slice], drawn: DrawResult | None, tokens: Tokens
    ) -> None:
        """Draw these numbers.

        Args:
            slices: from `wheel_slices`.
            drawn: what the wheel drew, to mark; None marks nothing.
            tokens: as in `plot_wheel`.
        """
        colors = [
            GRID if part.token_id is None else SHADES[at % 2]
            for at, part in enumerate(slices)
        ]
        self._slices.show((part.low, part.high, -0.5, 0.5) for part in slices)
        self._slices.color(colors)
        hit, uniform = None, 0.0
        if drawn is not None and drawn.segment and drawn.uniform is not None:
            hit, uniform = Slice(drawn.token_id, *drawn.segment), drawn.uniform
        notes = [
            note
            for part, color in zip(slices, colors, strict=True)
            if hit is None or not hit.low <= (part.low + part.high) / 2 <= hit.high
            for note in self._inside(part, color, tokens)
        ]
        self._show_hit(hit, uniform, notes, tokens)

    def _show_hit(
        self, hit: Slice | None, uniform: float, notes: list[TextLabel], tokens: Tokens
    ) -> None:
        """Accent the slice that was hit and mark the number over it."""
        if hit is not None:
            inside = list(self._inside(hit, CHOSEN, tokens))
            name = "" if len(inside) == 2 else f" → {slice_label(hit, tokens)}"
            align, way = ("left", 1) if uniform < 0.5 else ("right", -1)
            text, place = f"{uniform:.3f}{name}", (uniform, 0.76)
            notes += [
                *inside,
                TextLabel(*place, text, align, bold=True, move=(12.0 * way, 0.0)),
            ]
        self._hit.show([] if hit is None else [(hit.low, hit.high, -0.5, 0.5)])
        places = [] if hit is None else [uniform]
        self._needle.show((x, x, -0.5, 0.62) for x in places)
        self._tip.show(places, [0.68] * len(places))
        self._names.write(notes)

    def _inside(self, part: Slice, color: str, tokens: Tokens) -> Iterator[TextLabel]:
        """Yield a slice's name and share, or the name upwards, or what fits."""
        share, label = part.high - part.low, slice_label(part, tokens)
        middle, ink = (part.low + part.high) / 2, ink_on(color)
        room = share * points_wide(self._ax) - 8
        name = TextLabel(middle, 0.18, label, "center", ink, bold=True)
        if max(text_width(label, bold=True), text_width("0.000")) <= room:
            yield name
            yield TextLabel(middle, -0.2, f"{share:.3f}", "center", ink)
        elif room >= LEAST_ROOM:
            upwards = fitted(label, 0.9 * points_high(self._ax) / 1.57, bold=True)
            yield name._replace(y=0.0, text=upwards, turned=True)

    def _prepare_axes(self) -> None:
        ax = self._ax
        quiet_frame(ax, grid=None)
        ax.set_xlim(0, 1)
        ax.set_ylim(-0.62, 0.95)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
