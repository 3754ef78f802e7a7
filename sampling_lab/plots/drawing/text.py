"""Text inside a picture: literal, in one font, dark on light and light on dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from .labels import FONT
from .style import FONT_SIZE, INK, PAPER

LEAST_ROOM = 8.0
"""Points that a text reading upwards needs across, with a little paper beside it."""


def write(ax: Axes, x: float, y: float, text: str, **options: Any) -> Text:
    """Write text at a place, as it is: no mathematics in it is obeyed."""
    style = {"fontsize": FONT_SIZE, "family": FONT, "color": INK, "va": "center"}
    return ax.text(x, y, text, parse_math=False, **{**style, **options})


def name_ticks(ax: Axes, axis: str, labels: Sequence[str]) -> None:
    """Label positions 0, 1, 2, … of an axis ("x" or "y"), each text as it is."""
    place = ax.set_xticks if axis == "x" else ax.set_yticks
    place(range(len(labels)), labels=labels)
    chosen = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    for text in chosen:
        text.set(parse_math=False, family=FONT, fontsize=FONT_SIZE, color=INK)
    ax.tick_params(axis=axis, length=0)


def ink_on(color: str) -> str:
    """Return the text colour that is legible on a background.

    >>> ink_on("#ffffff") == INK, ink_on("#0072b2") == PAPER
    (True, True)
    """
    red, green, blue = to_rgb(color)
    return PAPER if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else INK


def points_wide(ax: Axes) -> float:
    """Return the width of axes in points, as they stand now."""
    return 72 * ax.get_position().width * ax.figure.get_figwidth()


def points_high(ax: Axes) -> float:
    """Return the height of axes in points, as they stand now."""
    return 72 * ax.get_position().height * ax.figure.get_figheight()
