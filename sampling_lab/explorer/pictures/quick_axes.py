"""Axes that are drawn in a millisecond."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_rgba
from matplotlib.path import Path
from matplotlib.transforms import IdentityTransform

from ...plots.drawing.style import FAINT, GRID, INK
from ...plots.drawing.text_labels import TextLabel, TextLabels

_TICK = 4.0
"""Length of a mark under the axis, in points."""

_BELOW, _BESIDE, _NAME = 13.0, 6.0, 33.0
"""Points from the axes to the numbers under and beside them, and to the x label."""


class QuickAxes(Axes):
    """Axes with marks only where they are set, drawn as a few lines and texts.

    Matplotlib has an artist for every mark, line of the grid and number, which cost
    most of the time that a small picture takes. Here they are drawn together.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._marks: dict[str, tuple[Sequence[float], Sequence[str]]] = {}
        self._gridded: set[str] = set()
        super().__init__(*args, **options)
        self._words = TextLabels(self, IdentityTransform(), animated=True)

    def set_xticks(
        self, ticks: Sequence[float], labels: Sequence[str] | None = None, **how: Any
    ) -> None:
        """Mark these places under the axes; there are no minor marks."""
        self._set_marks("x", ticks, labels, **how)

    def set_yticks(
        self, ticks: Sequence[float], labels: Sequence[str] | None = None, **how: Any
    ) -> None:
        """Write numbers at these places, left of the axes."""
        self._set_marks("y", ticks, labels, **how)

    def grid(
        self,
        visible: bool | None = None,
        which: str = "major",
        axis: str = "both",
        **style: Any,
    ) -> None:
        """Draw lines across the axes at the marks, or none if `visible` is False."""
        named = {"x", "y"} if axis == "both" else {axis}
        if visible is False:
            self._gridded -= named
        else:
            self._gridded |= named

    def draw(self, renderer: RendererBase) -> None:
        """Draw grid, artists and frame, each over the one before."""
        if self.axison:
            self._draw_lines(renderer, self._grid_lines(), GRID)
        for artist in sorted(self._drawn(), key=Artist.get_zorder):
            artist.draw(renderer)
        if self.axison:
            self._draw_lines(renderer, self._frame_lines(renderer), FAINT)
            self._words.write(self._numbers(renderer))
            self._words.draw(renderer)
        self.stale = False

    def _set_marks(
        self,
        axis: str,
        ticks: Sequence[float],
        labels: Sequence[str] | None,
        *,
        minor: bool = False,
    ) -> None:
        if not minor:
            names = [f"{tick:g}" for tick in ticks] if labels is None else labels
            self._marks[axis] = (ticks, names)

    def _drawn(self) -> Iterable[Artist]:
        kinds = (self.collections, self.patches, self.lines, self.artists)
        found = [drawn for kind in kinds for drawn in kind if not drawn.get_animated()]
        legend = self.get_legend()
        return found if legend is None else [*found, legend]

    def _places(self, axis: str) -> tuple[np.ndarray, Sequence[str]]:
        """Return the pixels of the marks of an axis, along it, and their labels."""
        ticks, labels = self._marks.get(axis) or self._found_marks(axis)
        points = np.zeros((len(ticks), 2))  # (marks, 2)
        column = "xy".index(axis)
        points[:, column] = ticks
        other = self.get_ylim if axis == "x" else self.get_xlim
        points[:, 1 - column] = other()[0]
        return self.transData.transform(points)[:, column], labels

    def _found_marks(self, axis: str) -> tuple[Sequence[float], Sequence[str]]:
        """Return the marks that matplotlib would choose, where none were set."""
        scale = self.xaxis if axis == "x" else self.yaxis
        low, high = sorted(self.get_xlim() if axis == "x" else self.get_ylim())
        ticks = [tick for tick in scale.get_majorticklocs() if low <= tick <= high]
        return ticks, scale.get_major_formatter().format_ticks(ticks)

    def _grid_lines(self) -> list[tuple[float, float, float, float]]:
        box, lines = self.bbox, []
        if "x" in self._gridded:
            lines += [(x, box.y0, x, box.y1) for x in self._places("x")[0]]
        if "y" in self._gridded:
            lines += [(box.x0, y, box.x1, y) for y in self._places("y")[0]]
        return lines

    def _frame_lines(
        self, renderer: RendererBase
    ) -> list[tuple[float, float, float, float]]:
        box, lines = self.bbox, []
        if self.spines["left"].get_visible():
            lines.append((box.x0, box.y0, box.x0, box.y1))
        if self.spines["bottom"].get_visible():
            end = box.y0 - renderer.points_to_pixels(_TICK)
            lines.append((box.x0, box.y0, box.x1, box.y0))
            lines += [(x, box.y0, x, end) for x in self._places("x")[0]]
        return lines

    def _draw_lines(
        self,
        renderer: RendererBase,
        lines: list[tuple[float, float, float, float]],
        color: str,
    ) -> None:
        """Draw lines one device pixel wide, each on whole pixels."""
        if not lines:
            return
        context = renderer.new_gc()
        context.set_foreground(to_rgba(color), isRGBA=True)
        context.set_linewidth(1.0 / renderer.points_to_pixels(1.0))
        context.set_snap(True)
        codes = [Path.MOVETO, Path.LINETO] * len(lines)
        path = Path(np.reshape(lines, (-1, 2)), codes)
        renderer.draw_path(context, path, IdentityTransform())
        context.restore()

    def _numbers(self, renderer: RendererBase) -> Iterable[TextLabel]:
        """Yield the numbers at the marks and the name under them, in pixels."""
        box, down = self.bbox, -_BELOW
        for x, label in zip(*self._places("x"), strict=True):
            yield TextLabel(x, box.y0, label, "center", move=(0.0, down))
        for y, label in zip(*self._places("y"), strict=True):
            yield TextLabel(box.x0, y, label, "right", move=(-_BESIDE, 0.0))
        if name := self.get_xlabel():
            middle = (box.x0 + box.x1) / 2
            yield TextLabel(middle, box.y0, name, "center", INK, move=(0.0, -_NAME))
