"""Texts in and next to a plot, drawn as outlines.

Matplotlib needs a millisecond for the layout of each changed text. `TextLabels` keep
the outlines of texts and of letters and draw all of them at once, so that a picture
can follow a slider.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Bbox, Transform

from .labels import FONT, shorten
from .style import FONT_SIZE, INK

_UNITS = 100.0
"""The size in points at which outlines are kept."""

_HALF_CAPITAL = 0.36
"""Half the height of a capital letter, as a fraction of the font size."""

_QUARTER_TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
"""Turns rows (x, y) to the left: upwards is then to the left."""

_ALIGNED = {"left": 0.0, "center": 0.5, "right": 1.0}


class TextLabel(NamedTuple):
    """A text at a place: the middle of the height of its capitals is at y.

    Attributes:
        x: in the units of the transform of its `TextLabels`.
        y: likewise.
        text: drawn literally; dollar signs begin no formula.
        align: which end of the text is at x: "left", "right", or its "center".
        color: of the letters.
        bold: whether the letters are bold.
        move: points to the right and upwards of (x, y).
        turned: whether it reads upwards; `align` is then along the y axis.
    """

    x: float
    y: float
    text: str
    align: str = "left"
    color: str = INK
    bold: bool = False
    move: tuple[float, float] = (0.0, 0.0)
    turned: bool = False


class TextLabels(Artist):
    """Texts in or next to axes, those of one colour drawn together.

    Args:
        ax: the axes; the labels add themselves to it.
        transform: of the labels' x and y; None is that of the axes' data.

    Attributes:
        labels: the texts that are shown.
    """

    def __init__(self, ax: Axes, transform: Transform | None = None) -> None:
        super().__init__()
        self.labels: list[TextLabel] = []
        self.set_clip_on(False)
        self.set_zorder(6)
        self.set_transform(transform or ax.transData)
        self._inches = ax.figure.dpi_scale_trans
        ax.add_artist(self)

    @property
    def texts(self) -> list[str]:
        """The texts that are shown, in order."""
        return [label.text for label in self.labels]

    def write(self, labels: Iterable[TextLabel]) -> None:
        """Show these texts instead of the ones before."""
        self.labels = list(labels)
        self.stale = True

    def draw(self, renderer: RendererBase) -> None:
        """Draw the texts, those of one colour together."""
        if not self.get_visible():
            return
        context = renderer.new_gc()
        context.set_linewidth(0)
        for color, path in self._paths().items():
            renderer.draw_path(context, path, Affine2D(), to_rgba(color))
        context.restore()
        self.stale = False

    def get_window_extent(self, renderer: RendererBase | None = None) -> Bbox:
        """Return the box around all texts in pixels, for layouts that make room."""
        paths = self._paths().values()
        return (
            Bbox.union([path.get_extents() for path in paths]) if paths else Bbox.null()
        )

    def _paths(self) -> dict[str, Path]:
        """Return the outlines of the texts by colour, in pixels."""
        labels = [label for label in self.labels if label.text]
        if not labels:
            return {}
        places = self.get_transform().transform([label[:2] for label in labels])
        point = float(self._inches.transform((1 / 72, 0.0))[0])  # in pixels
        parts: dict[str, tuple[list[np.ndarray], list[np.ndarray]]] = {}
        for label, place in zip(labels, places, strict=True):
            outline = _outline(label.text, label.bold)
            points = outline.vertices - (_ALIGNED[label.align] * outline.width, 0.0)
            if label.turned:
                points = points @ _QUARTER_TURN
            place = place + np.multiply(label.move, point)
            points = points * (FONT_SIZE * point / _UNITS) + place
            vertices, codes = parts.setdefault(label.color, ([], []))
            vertices.append(points)
            codes.append(outline.codes)
        return {
            color: Path(np.concatenate(vertices), np.concatenate(codes))
            for color, (vertices, codes) in parts.items()
        }


class TextColumn(TextLabels):
    """A column of texts, each centred on its row by the height of its capitals.

    Args:
        ax: the axes; the column adds itself to it.
        edge: the side of the axes to measure from, 0.0 (left) or 1.0 (right).
        points: how far right of that edge the texts end, or begin, in points.
        rows: the y of each text, in the axes' data coordinates.
        texts: the first texts.
        align: "right" or "left".
        color: of all texts for which none is given.
    """

    def __init__(
        self,
        ax: Axes,
        edge: float,
        points: float,
        rows: Sequence[float],
        texts: Sequence[str] = (),
        *,
        align: str = "right",
        color: str = INK,
    ) -> None:
        super().__init__(ax, ax.get_yaxis_transform())
        self.rows, self._color = list(rows), color
        self._label = TextLabel(edge, 0.0, "", align, move=(points, 0.0))
        self.set_texts(texts)

    def set_texts(self, texts: Sequence[str], colors: Sequence[str] = ()) -> None:
        """Set the texts from the first row on; rows without a text stay empty."""
        colors = colors or [self._color] * len(texts)
        self.write(
            self._label._replace(y=row, text=text, color=color)
            for row, text, color in zip(self.rows, texts, colors, strict=False)
        )


def text_width(text: str, *, bold: bool = False) -> float:
    """Return how wide a text is, in points."""
    return _outline(text, bold).width * FONT_SIZE / _UNITS if text else 0.0


def fitted(text: str, room: float, *, bold: bool = False) -> str:
    """Shorten a text to so many points; "" where three letters do not fit.

    >>> fitted("internationalisation", 70), fitted("internationalisation", 20)
    ('inter…tion', '')
    """
    letters = len(text)
    while text_width(short := shorten(text, letters), bold=bold) > room:
        letters -= 1
        if letters < 3:
            return ""
    return short


def number(value: float) -> str:
    """Return a number >= 0 in the width of a column: three decimals, or digits.

    >>> number(0.25), number(0.0001), number(28.819), number(1234.5)
    ('0.250', '<0.001', '28.819', '1.23e+03')
    """
    if 0.0 < value < 0.0005:
        return "<0.001"
    return f"{value:.3f}" if value < 1000 else f"{value:.3g}"


class _Outline(NamedTuple):
    """Vertices (points, 2), codes (points,) and width, in hundredths of the size."""

    vertices: np.ndarray
    codes: np.ndarray
    width: float


@lru_cache(maxsize=1024)
def _outline(text: str, bold: bool) -> _Outline:
    """Return the outline of a text; for ASCII text, those of its letters in a row.

    In some scripts letters join, so only ASCII is laid out letter by letter.
    """
    if len(text) > 1 and text.isascii():
        letters = [_outline(letter, bold) for letter in text]
        ends = np.cumsum([letter.width for letter in letters])
        starts = np.repeat([0.0, *ends[:-1]], [len(letter.codes) for letter in letters])
        vertices = np.concatenate([letter.vertices for letter in letters])
        vertices[:, 0] += starts
        codes = np.concatenate([letter.codes for letter in letters])
        return _Outline(vertices, codes, float(ends[-1]))
    weight = "bold" if bold else "normal"
    font = FontProperties(family=FONT, weight=weight, size=_UNITS)
    vertices, codes = text_to_path.get_text_path(font, text)
    width = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    centred = np.reshape(vertices, (-1, 2)) - (0.0, _HALF_CAPITAL * _UNITS)
    return _Outline(centred, np.array(codes, Path.code_type), width)
