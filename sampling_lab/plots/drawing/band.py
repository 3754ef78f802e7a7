"""A band of coloured slices along an axis, with a pointer over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes

from .shapes import Markers, Rectangles
from .style import INK, PAPER, quiet_frame
from .text_labels import TextLabel, TextLabels


class Band:
    """Slices from y = -0.5 to 0.5, and a pointer from above with a text beside it.

    Args:
        ax: the axes to draw on, with the limits of x.
        low: the lower limit of y.
    """

    def __init__(self, ax: Axes, low: float) -> None:
        quiet_frame(ax, grid=None)
        ax.set_ylim(low, 0.95)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        self._to_share = ax.transData - ax.transAxes
        self._slices = Rectangles(ax, edgecolors=PAPER, linewidths=1.5, zorder=2)
        rim = {"color": PAPER, "linewidth": 4.5}  # legible on a dark slice too
        needle = {"color": INK, "linewidth": 2.5, "markevery": [0]}
        self._pointer = [
            Markers(ax, "", 11, linestyle="solid", zorder=4, **rim),
            Markers(ax, "v", 11, linestyle="solid", zorder=4, **needle),
        ]
        self._text = TextLabels(ax)

    def show(self, ends: Iterable[tuple[float, float]], colors: Sequence[str]) -> None:
        """Draw slices of these colours, the later ones over the earlier ones."""
        self._slices.show((low, high, -0.5, 0.5) for low, high in ends)
        self._slices.color(colors)

    def point(self, x: float | None, text: str = "", down_to: float = 0.2) -> None:
        """Point at x, from above down to a height; None removes the pointer."""
        line = ([], []) if x is None else ([x, x], [0.68, down_to])
        for part in self._pointer:
            part.show(*line)
        if x is None:
            self._text.write([])
            return
        is_left = self._to_share.transform((x, 0.0))[0] < 0.5
        side, move = ("left", 12.0) if is_left else ("right", -12.0)
        self._text.write([TextLabel(x, 0.77, text, side, bold=True, move=(move, 0.0))])
