"""What all pictures share: colours, hatches, sizes, and a figure of one's own.

The colours are those of Okabe and Ito, which colour-blind readers tell apart; where
two of them could meet in greyscale, a hatch, an outline or a word tells them apart.
"""

from __future__ import annotations

from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK = "#222222"
"""Text and outlines."""

FAINT = "#6e6e6e"
"""Secondary text: units, counts, removed tokens."""

HATCHING = "#949494"
GRID = "#dddddd"
PAPER = "#ffffff"

FINAL = "#0072b2"
"""The final probability."""

LIGHT = "#bcd9ea"
"""A light `FINAL`, for every other slice and for what is only expected."""

CHOSEN = "#e69f00"
"""The chosen token; lighter than `FINAL` in greyscale."""

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#222222")
"""Lines, in the order to use them; `DASHES` goes with it for greyscale."""

DASHES = (
    "solid",
    (0, (6, 2)),
    (0, (2, 1.5)),
    "dashdot",
    (0, (1, 1)),
    (0, (8, 2, 2, 2)),
)


def series(at: int) -> dict[str, Any]:
    """Return the colour and the dashes of a line by its index."""
    dashes = DASHES[at % len(DASHES)]
    return {"color": SERIES[at % len(SERIES)], "linestyle": dashes}


FONT_SIZE = 12.0
"""Points; no text is smaller at the figure's original size."""

_HATCHES = {"temperature": "..", "top-k": "///", "top-p": "\\\\\\", "min-p": "xxx"}
_OTHER_HATCHES = ("---", "|||", "+++", "oo", "**")


def stage_hatch(name: str) -> str:
    """Return the hatch that marks what a stage removed; always the same for a name."""
    if name in _HATCHES:
        return _HATCHES[name]
    return _OTHER_HATCHES[sum(name.encode()) % len(_OTHER_HATCHES)]


def new_axes(width: float, height: float) -> Axes:
    """Return axes on a new figure of so many inches; see `new_panels`."""
    return new_panels(width, height)[0]


def new_panels(
    width: float, height: float, rows: int = 1, columns: int = 1
) -> list[Axes]:
    """Return axes on a new figure, which is in no global list of figures.

    Args:
        width: in inches.
        height: in inches.
        rows: of axes.
        columns: of axes.
    """
    figure = Figure((width, height), layout="constrained", facecolor=PAPER)
    return list(figure.subplots(rows, columns, squeeze=False).flat)


def quiet_frame(ax: Axes, *, grid: Literal["x", "y", "both"] | None = "x") -> None:
    """Remove the parts of the frame that carry no information; None draws no grid."""
    ax.set_facecolor(PAPER)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    if grid:
        ax.grid(axis=grid, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=FONT_SIZE, colors=INK)


def name_axes(ax: Axes, x: str, y: str = "") -> None:
    """Write the names of the axes, all in one size and colour."""
    ax.set_xlabel(x, fontsize=FONT_SIZE, color=INK)
    if y:
        ax.set_ylabel(y, fontsize=FONT_SIZE, color=INK)
