"""Many bars or markers as one artist, which can be shown at other places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

Box = tuple[float, float, float, float]
"""Left, right, low and high, in the data coordinates of the axes."""


class Rectangles:
    """Rectangles with one style, each with its colour or with none.

    Args:
        ax: the axes to draw on.
        options: for the `PolyCollection`.
    """

    def __init__(self, ax: Axes, **options: Any) -> None:
        self._shapes = PolyCollection([], **options)
        ax.add_collection(self._shapes, autolim=False)

    def show(self, boxes: Iterable[Box]) -> None:
        """Draw these instead of the ones before."""
        # An array takes a third of a list's time.
        self._shapes.set_verts(corners(boxes))  # type: ignore[arg-type]

    def color(self, colors: Sequence[str]) -> None:
        """Fill each rectangle with its colour."""
        self._shapes.set_facecolor(colors)


class HatchedRectangles:
    """Rectangles with one style as one path: for thousands of them, or for a hatch.

    Args:
        ax: the axes to draw on.
        options: for the `PathPatch`.
    """

    def __init__(self, ax: Axes, **options: Any) -> None:
        style = {"facecolor": "none", "linewidth": 0.0}
        self._shape = PathPatch(Path(np.empty((0, 2))), **{**style, **options})
        ax.add_artist(self._shape)

    def show(self, boxes: Iterable[Box]) -> None:
        """Draw these instead of the ones before."""
        sides = corners(boxes)  # (boxes, 4, 2)
        closed = np.concatenate([sides, sides[:, :1]], axis=1)
        codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * len(sides)
        self._shape.set_path(Path(closed.reshape(-1, 2), codes or None))

    def hatch(self, hatch: str) -> None:
        """Set the hatch of all rectangles."""
        self._shape.set_hatch(hatch)


class Markers:
    """One marker at each of many places.

    Args:
        ax: the axes to draw on.
        marker: its name, or its corners around (0, 0).
        size: its largest extent in points.
        options: for the `Line2D`.
    """

    def __init__(
        self,
        ax: Axes,
        marker: str | Sequence[tuple[float, float]],
        size: float,
        **options: Any,
    ) -> None:
        style = {"marker": marker, "markersize": size, "linestyle": "none", **options}
        self._line = ax.add_line(Line2D([], [], **style))

    def show(self, x: Sequence[float], y: Sequence[float]) -> None:
        """Draw these instead of the ones before."""
        self._line.set_data(x, y)
        self._line.set_visible(len(x) > 0)  # a layout makes room even for an empty line


def row_box(row: int, length: float, half: float) -> Box:
    """Return the box of a horizontal bar, `half` as high above the row as below."""
    return (0.0, length, row - half, row + half)


def corners(boxes: Iterable[Box]) -> np.ndarray:
    """Return the corners of boxes, shape (boxes, 4, 2).

    >>> corners([(0, 2, 0, 1)]).tolist()
    [[[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]]
    """
    sides = np.array([*boxes], float).reshape(-1, 4)  # left, right, low, high
    return sides[:, [[0, 2], [1, 2], [1, 3], [0, 3]]]
