"""Figures that follow a slider: kept between redraws, saved as small PNGs.

Most of the time that a small matplotlib figure takes goes into its axes: ticks, their
labels, grid, legend. A figure of the explorer keeps its pixels with nothing but the
axes (matplotlib's *blitting*) and draws only the data over them again.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from PIL import Image

from ...plots.drawing.style import CHOSEN, FAINT, FINAL, GRID, HATCHING, INK, PAPER
from ...plots.drawing.text_labels import TextLabels
from ...plots.temperature_map import FILLS
from ...plots.wheel import SHADES

POINTS_PER_INCH = 72.0
"""A point of a figure is a CSS pixel of the page."""

_FIGURES, _BACKGROUNDS = 8, 4
"""So many figures are kept, and of each figure so many backgrounds.

Both take some 3 MB; a slider goes back and forth between a few."""

COLORS = (PAPER, FINAL, CHOSEN, INK, FAINT, GRID, HATCHING, *SHADES, *FILLS)

A = TypeVar("A")


class Place(NamedTuple):
    """Where axes are in a figure: their lower left corner and size, in CSS pixels."""

    left: float
    low: float
    width: float
    height: float


class FastFigure(Generic[A]):
    """A figure of one layout that can be drawn again with other data.

    Args:
        size: width and height in CSS pixels.
        places: one for each axes.
        make: makes the artists, given the axes; depends on nothing but the layout.
        scale: device pixels per CSS pixel.

    Attributes:
        artists: what `make` returned; show other data in them before `png`.
        figure: the matplotlib figure.
    """

    def __init__(
        self,
        size: tuple[float, float],
        places: Sequence[Place],
        make: Callable[[list[Axes]], A],
        scale: float,
    ) -> None:
        width, height = size
        dpi = POINTS_PER_INCH * scale
        inches = (width / POINTS_PER_INCH, height / POINTS_PER_INCH)
        self.figure = Figure(inches, dpi=dpi, facecolor=PAPER)
        sides = np.array([width, height, width, height])
        axes = [self.figure.add_axes(tuple(place / sides)) for place in places]
        self.artists = make(axes)
        # matplotlib has no types for its renderer.
        pixels = (round(width * scale), round(height * scale))
        self._renderer: Any = RendererAgg(*pixels, dpi)  # type: ignore[no-untyped-call]
        self._backgrounds: dict[Hashable, Any] = {}

    def png(self, fixed: Sequence[TextLabels] = ()) -> bytes:
        """Return the current figure as PNG.

        Args:
            fixed: texts that rarely change, whose pixels are kept as well.
        """
        data = list(self._data())
        limits = tuple(map(_limits, self.figure.axes))
        texts = tuple(tuple(each.labels) for each in fixed)
        self._draw_once(limits + texts, lambda: self._draw_fixed(limits, data, fixed))
        self._draw(artist for artist in data if artist not in fixed)
        return palette_png(np.asarray(self._renderer.buffer_rgba()))

    def _data(self) -> Iterator[Artist]:
        """Yield the artists to draw over the axes, in their order."""
        for ax in self.figure.axes:
            for artist in sorted(ax.get_children(), key=Artist.get_zorder):
                if artist is not ax.patch and not isinstance(artist, Axis | Legend):
                    yield artist

    def _draw_fixed(
        self, limits: Hashable, data: Sequence[Artist], fixed: Sequence[TextLabels]
    ) -> None:
        for artist in data:
            artist.set_animated(True)  # so the figure leaves it out
        self._draw_once(limits, self._draw_axes)
        self._draw(fixed)

    def _draw_axes(self) -> None:
        """Draw paper, ticks, grid and legend."""
        self._renderer.clear()
        self.figure.draw(self._renderer)

    def _draw(self, artists: Iterable[Artist]) -> None:
        for artist in artists:
            artist.draw(self._renderer)

    def _draw_once(self, key: Hashable, draw: Callable[[], None]) -> None:
        """Draw what `key` stands for, or restore the pixels of the last time."""
        known = self._backgrounds.pop(key, None)
        if known is None:
            draw()
            known = self._renderer.copy_from_bbox(self.figure.bbox)
        else:
            self._renderer.restore_region(known)
        self._backgrounds[key] = known
        if len(self._backgrounds) > _BACKGROUNDS:
            self._backgrounds.pop(next(iter(self._backgrounds)))  # the longest unused


def _limits(ax: Axes) -> Hashable:
    """Return what ticks and grid depend on: nothing, on an axis without ticks."""
    pairs = ((ax.get_xticks(), ax.get_xlim()), (ax.get_yticks(), ax.get_ylim()))
    return tuple((*ticks, *limits) if len(ticks) else () for ticks, limits in pairs)


class FastFigures:
    """The figures of a panel, each made when its layout is first asked for.

    Args:
        width: of all figures, in CSS pixels.
        scale: device pixels per CSS pixel; more is sharper, and slower by its square.
    """

    def __init__(self, width: float, scale: float = 1.5) -> None:
        self.width, self._scale = width, scale
        self._known: dict[Hashable, FastFigure[Any]] = {}

    def find(
        self,
        name: str,
        height: float,
        places: Sequence[Place],
        make: Callable[[list[Axes]], A],
    ) -> FastFigure[A]:
        """Return the figure of a layout.

        Args:
            name: of the picture; with height and places it names what `make` makes.
            height: in CSS pixels.
            places: one for each axes.
            make: makes the artists, given the axes.
        """
        layout = (name, height, tuple(places))
        figure = self._known.pop(layout, None)
        if figure is None:
            figure = FastFigure((self.width, height), places, make, self._scale)
        self._known[layout] = figure
        if len(self._known) > _FIGURES:
            # A figure and its artists refer to each other: let go of them at once.
            self._known.pop(next(iter(self._known))).figure.clear()
        return figure


def palette_png(pixels: np.ndarray) -> bytes:
    """Return pixels, uint8 of shape (height, width, RGBA), as PNG with 256 colours.

    The colours of the pictures are exact, and only the blends at edges are rounded.
    It takes a tenth of the time of a true-colour PNG.
    """
    image = Image.fromarray(pixels).convert("RGB")
    image = image.quantize(palette=_PALETTE, dither=Image.Dither.NONE)
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1, compress_type=zlib.Z_RLE)
    return file.getvalue()


def _palette() -> Image.Image:
    """Return the exact colours, greys, and a coarse grid of all others."""
    exact = [tuple(round(255 * part) for part in to_rgb(color)) for color in COLORS]
    greys = [(level, level, level) for level in range(0, 256, 15)]
    grid = product(range(0, 256, 51), repeat=3)
    image = Image.new("P", (1, 1))
    colors = list(dict.fromkeys([*exact, *greys, *grid]))[:256]
    image.putpalette([part for color in colors for part in color])
    return image


_PALETTE = _palette()
