"""One draw by the inverse CDF: the 0-1 axis cut into the tokens' slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from ..counterfactuals import Slice, wheel_slices
from ..sampling.arguments import checked
from ..sampling.draws import DrawResult
from .drawing.band import Band
from .drawing.labels import Tokens, token_label, token_text
from .drawing.style import CHOSEN, FINAL, GRID, LIGHT, new_axes
from .drawing.text import LEAST_ROOM, ink_on, points_high, points_wide
from .drawing.text_labels import TextLabel, TextLabels, fitted, text_width

SHADES = (FINAL, LIGHT)
"""Neighbouring slices differ in greyscale too."""


@checked
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


def wheel_table(
    slices: Sequence[Slice], segment: tuple[float, float], tokens: Tokens = None
) -> list[dict[str, Any]]:
    """Return a row for each of `wheel_slices`, the most likely token first.

    `segment` is the ends of the slice on which the number fell.
    """
    return [
        {
            "token_id": part.token_id,
            "token": token_text(tokens, part.token_id),
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
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        self._names = TextLabels(ax)
        self._band = Band(ax, -0.62)

    def show(
        self, slices: Sequence[Slice], drawn: DrawResult | None, tokens: Tokens
    ) -> None:
        """Draw slices from `wheel_slices`, and mark what the wheel drew."""
        parts = [
            (part, GRID if part.token_id is None else SHADES[at % 2])
            for at, part in enumerate(slices)
        ]
        shown = parts
        self._band.point(None)
        if drawn is not None and drawn.segment and drawn.uniform is not None:
            hit = Slice(drawn.token_id, *drawn.segment)
            shown = [pair for pair in parts if not _covers(hit, pair[0])]
            for pairs in (parts, shown):
                pairs.append((hit, CHOSEN))
            has_name = len([*self._inside(hit, CHOSEN, tokens)]) == 2
            name = "" if has_name else f" → {token_label(tokens, hit.token_id)}"
            self._band.point(drawn.uniform, f"{drawn.uniform:.3f}{name}", -0.5)
        self._band.show([part[1:] for part, _ in parts], [color for _, color in parts])
        self._names.write(
            note for part, color in shown for note in self._inside(part, color, tokens)
        )

    def _inside(self, part: Slice, color: str, tokens: Tokens) -> Iterator[TextLabel]:
        """Yield a slice's name and share, or the name upwards, or what fits."""
        share, label = part.high - part.low, token_label(tokens, part.token_id)
        middle, ink = (part.low + part.high) / 2, ink_on(color)
        room = share * points_wide(self._ax) - 8
        name = TextLabel(middle, 0.18, label, "center", ink, bold=True)
        if max(text_width(label, bold=True), text_width("0.000")) <= room:
            yield name
            yield TextLabel(middle, -0.2, f"{share:.3f}", "center", ink)
        elif room >= LEAST_ROOM:
            upwards = fitted(label, 0.9 * points_high(self._ax) / 1.57, bold=True)
            yield name._replace(y=0.0, text=upwards, turned=True)


def _covers(hit: Slice, part: Slice) -> bool:
    """Return whether the middle of a slice is under the one that was hit."""
    return hit.low <= (part.low + part.high) / 2 <= hit.high
