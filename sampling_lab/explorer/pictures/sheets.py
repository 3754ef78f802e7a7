"""Figures that the explorer draws again and again, and the pixels they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure

from ...plots.drawing.style import CHOSEN, FAINT, FINAL, GRID, HATCHING, INK, PAPER
from ...plots.drawing.text_labels import TextLabel, TextLabels, text_width
from ...plots.temperature_map import FILLS
from ...plots.wheel import SHADES
from .png import PaletteEncoder
from .quick_axes import QuickAxes

POINTS_PER_INCH = 72.0
"""A point of a figure is a CSS pixel of the page."""

_LINE = 20.0
"""From one line of a sentence to the next."""

_ROWS = 512
"""Rows of pixels are taken so many at a time."""

_SHAPES = 6
"""Of one sheet, so many figures are kept."""

_COLORS = (PAPER, FINAL, CHOSEN, INK, FAINT, GRID, HATCHING, *SHADES, *FILLS)


class Place(NamedTuple):
    """Where axes stand on a sheet: their left lower corner and size, in CSS pixels."""

    left: float
    low: float
    width: float
    height: float


class Pixels(NamedTuple):
    """What draws on pixels, and the pixels as an array (height, width, RGBA)."""

    renderer: RendererAgg
    seen: np.ndarray


class Surface:
    """The pixels that all sheets are drawn on, one at a time.

    Only one tab is seen, so only one picture's pixels are kept, in memory of few
    sizes: to take and give back megabytes at a time leaves holes in a process.

    Args:
        width: of every sheet, in CSS pixels.
        scale: device pixels per CSS pixel.
    """

    def __init__(self, width: int, scale: float) -> None:
        self.width, self.dpi = width, POINTS_PER_INCH * scale
        self._encoder = PaletteEncoder(_COLORS)
        self._renderers: dict[int, RendererAgg] = {}

    def pixels(self, width: int, height: int) -> Pixels:
        """Return so many pixels, as they were left."""
        # A figure stands on the bottom line, whatever there is over it. The room
        # depends on its height alone, or rounding would tell what came before.
        room = _ROWS * math.ceil(height / _ROWS)
        if room not in self._renderers:
            self._renderers[room] = RendererAgg(width, room, self.dpi)
        known = self._renderers[room]
        return Pixels(known, np.asarray(known.buffer_rgba())[-height:])

    def encode(self, pixels: Pixels) -> bytes:
        """Return pixels as PNG."""
        return self._encoder.encode(pixels.seen, self.dpi)


class Sheet:
    """A figure whose artists are kept for when it is asked for in the same shape.

    A figure that is thrown away stays in memory until Python looks for rings of
    references, so a few shapes are kept: a slider goes to and fro between them.

    Args:
        surface: what it is drawn on.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._made: dict[Hashable, tuple[Figure, Any]] = {}
        self._figure = Figure()

    def artists(
        self,
        height: float,
        places: Sequence[Place],
        make: Callable[[list[Axes]], Any],
    ) -> Any:
        """Return the artists, made anew only for a shape that is not known.

        Args:
            height: of the sheet, in CSS pixels.
            places: one for each axes.
            make: what draws on the axes; depends on nothing but the shape.
        """
        shape = (height, tuple(places))
        known = self._made.pop(shape, None)
        if known is None and len(self._made) == _SHAPES:
            self._made.pop(next(iter(self._made)))[0].clear()  # the longest unused
        self._made[shape] = known or self._make(height, places, make)
        self._figure, artists = self._made[shape]
        return artists

    def _make(
        self,
        height: float,
        places: Sequence[Place],
        make: Callable[[list[Axes]], Any],
    ) -> tuple[Figure, Any]:
        width, dpi = self._surface.width, self._surface.dpi
        size = (width / POINTS_PER_INCH, height / POINTS_PER_INCH)
        figure = Figure(size, dpi=dpi, facecolor=PAPER)
        sides = np.array([width, height] * 2)
        axes = [QuickAxes(figure, np.array(place) / sides) for place in places]
        for ax in axes:
            figure.add_axes(ax)
        return figure, make(axes)

    def pixels(self) -> Pixels:
        """Return the pixels of the sheet, as they were left."""
        width, height = (round(side) for side in self._figure.bbox.size)
        return self._surface.pixels(width, height)

    def draw(self, pixels: Pixels) -> None:
        """Draw all but what is animated; the paper hides what there was."""
        self._figure.draw(pixels.renderer)

    def png(self) -> bytes:
        """Return the sheet as it is now as PNG."""
        pixels = self.pixels()
        self.draw(pixels)
        return self._surface.encode(pixels)


class Sentences:
    """A few words, broken into lines, over all of a sheet."""

    def __init__(self, axes: Sequence[Axes]) -> None:
        (ax,) = axes
        ax.axis("off")
        self._notes = TextLabels(ax, ax.transAxes)

    def show(self, text: str, width: float) -> None:
        """Write it centred, in lines of at most `width` points."""
        lines = wrapped(text, width)
        self._notes.write(
            TextLabel(
                0.5, 0.5, line, "center", move=(0.0, _LINE * (len(lines) / 2 - at))
            )
            for at, line in enumerate(lines)
        )


def wrapped(text: str, width: float) -> list[str]:
    """Break text at its spaces into lines of at most `width` points.

    >>> wrapped("one two three", 60)
    ['one two', 'three']
    """
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
