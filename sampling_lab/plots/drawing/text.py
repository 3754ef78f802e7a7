"""Text in a plot: literal, in one font, dark on light and light on dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from .labels import FONT
from .style import FONT_SIZE, INK, PAPER

LEAST_ROOM = 8.0
"""Points that a text reading upwards needs across, with a small margin."""


def write(ax: Axes, x: float, y: float, text: str, **options: Any) -> Text:
    """Write text literally: dollar signs begin no formula."""
    style = {"fontsize": FONT_SIZE, "family": FONT, "color": INK, "va": "center"}
    return ax.text(x, y, text, parse_math=False, **{**style, **options})


def name_ticks(ax: Axes, axis: Literal["x", "y"], labels: Sequence[str]) -> None:
    """Label positions 0, 1, 2, … of an axis, each text literally."""
    place = ax.set_xticks if axis == "x" else ax.set_yticks
    place(range(len(labels)), labels=labels)
    chosen = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    for text in chosen:
        text.set(parse_math=False, family=FONT, fontsize=FONT_SIZE, color=INK)
    ax.tick_params(axis=axis, length=0)


def ink_on(color: str) -> str:
    """Return the text colour that is legible on a background colour.

    >>> ink_on("#ffffff") == INK, ink_on("#0072b2") == PAPER
    (True, True)
    """
    red, green, blue = to_rgb(color)
    return PAPER if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else INK


def points_wide(ax: Axes) -> float:
    """Return the current width of axes in points."""
    return 72 * _inches(ax).width


def points_high(ax: Axes) -> float:
    """Return the current height of axes in points."""
    return 72 * _inches(ax).height


def _inches(ax: Axes) -> Bbox:
    return ax.bbox.transformed(ax.figure.dpi_scale_trans.inverted())
