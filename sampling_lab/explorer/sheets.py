"""Figures that the explorer draws again and again, and the pixels they share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure

from ..plots._columns import Note, Notes, text_width
from ..plots._style import CHOSEN, FAINT, FINAL, GRID, HATCHING, INK, PAPER
from ..plots.temperature_map import FILLS
from ..plots.wheel import SHADES
from .png import PaletteEncoder
from .quick_axes import QuickAxes

POINTS_PER_INCH = 72.0
"""A point of a figure is a CSS pixel of the page."""

_LINE = 20.0
"""From one line of a sentence to the next."""

_COLORS = (PAPER, FINAL, CHOSEN, INK, FAINT, GRID, HATCHING, *SHADES, *FILLS)


class Place(NamedTuple):
    """Where axes stand on a sheet: their left lower corner and size, in CSS pixels."""

    left: float
    low: float
    width: float
    height: float


class Surface:
    """The pixels that all sheets are drawn on, one at a time.

    Only one tab is seen, so only one picture's pixels are kept.

    Args:
        width: of every sheet, in CSS pixels.
        scale: device pixels per CSS pixel.
    """

    def __init__(self, width: int, scale: float) -> None:
        self.width, self.dpi = width, POINTS_PER_INCH * scale
        self._encoder = PaletteEncoder(_COLORS)
        self._pixels: RendererAgg | None = None

    def pixels(self, width: int, height: int) -> RendererAgg:
        """Return the pixels, so many wide and high, as they were left."""
        known = self._pixels
        if known is None or (known.width, known.height) != (width, height):
            known = self._pixels = RendererAgg(width, height, self.dpi)
        return known

    def encode(self, pixels: RendererAgg) -> bytes:
        """Return pixels as PNG."""
        return self._encoder.encode(np.asarray(pixels.buffer_rgba()), self.dpi)


class Sheet:
    """A figure whose artists stay while it is asked for in the same shape.

    Args:
        surface: what it is drawn on.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._shape: Hashable = None
        self._figure = Figure()
        self._artists: Any = None

    def artists(
        self,
        height: float,
        places: Sequence[Place],
        make: Callable[[list[Axes]], Any],
    ) -> Any:
        """Return the artists, made anew only where the shape differs.

        Args:
            height: of the sheet, in CSS pixels.
            places: one for each axes.
            make: what draws on the axes; depends on nothing but the shape.
        """
        shape = (height, tuple(places))
        if shape != self._shape:
            width, dpi = self._surface.width, self._surface.dpi
            size = (width / POINTS_PER_INCH, height / POINTS_PER_INCH)
            self._figure = Figure(size, dpi=dpi, facecolor=PAPER)
            sides = np.array([width, height] * 2)
            axes = [
                QuickAxes(self._figure, np.array(place) / sides) for place in places
            ]
            for ax in axes:
                self._figure.add_axes(ax)
            self._artists, self._shape = make(axes), shape
        return self._artists

    def pixels(self) -> RendererAgg:
        """Return the pixels of the sheet, as they were left."""
        width, height = (round(side) for side in self._figure.bbox.size)
        return self._surface.pixels(width, height)

    def draw(self, pixels: RendererAgg) -> None:
        """Draw all but what is animated, over nothing."""
        pixels.clear()
        self._figure.draw(pixels)

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
        self._notes = Notes(ax, ax.transAxes)

    def show(self, text: str, width: float) -> None:
        """Write it centred, in lines of at most `width` points."""
        lines = wrapped(text, width)
        self._notes.write(
            Note(0.5, 0.5, line, "center", move=(0.0, _LINE * (len(lines) / 2 - at)))
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
