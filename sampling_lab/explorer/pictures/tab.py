"""Base class of the explorer's tabs: figures, a title, a sentence for no picture."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from matplotlib.axes import Axes

from ...plots.drawing.labels import token_label
from ...plots.drawing.text_labels import TextLabel, TextLabels, fitted
from .fast_figure import FastFigures, Place
from .step_view import StepView

LABEL_ROOM = 112.0
"""Room for token texts left of bars, in CSS pixels as all measures of the tabs."""

_LINE, _LETTER = 20.0, 6.5
"""From one line of a sentence to the next, and room for a letter, in points."""


class Picture(NamedTuple):
    """What a tab shows: its picture, the lines around it and the rows behind it."""

    png: bytes
    caption: str
    table: list[dict[str, Any]]
    title: str = ""


class Tab(ABC):
    """One tab of the explorer.

    Args:
        figures: where its figures are kept.
    """

    name: ClassVar[str]

    def __init__(self, figures: FastFigures) -> None:
        self._figures, self._width = figures, figures.width

    def title(self, view: StepView) -> str:
        """Return the line over the picture: what is shown."""
        return view.title

    @abstractmethod
    def draw(self, view: StepView) -> Picture:
        """Return the picture, its caption and its table."""

    def sentence(self, text: str) -> Picture:
        """Return a sentence in place of a picture that cannot be drawn."""
        place = Place(0, 0, self._width, 160)
        figure = self._figures.find("sentence", 160, [place], Sentence)
        figure.artists.show(text, self._width - 160)
        return Picture(figure.png(), text, [])


class Sentence:
    """A few words, broken into lines, in the middle of axes without a frame."""

    def __init__(self, axes: Sequence[Axes]) -> None:
        (ax,) = axes
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        self._labels = TextLabels(ax, ax.transAxes)

    def show(self, text: str, width: float) -> None:
        """Write it centred, in lines of at most `width` points."""
        lines = textwrap.wrap(text, int(width / _LETTER))
        self._labels.write(
            TextLabel(
                0.5, 0.5, line, "center", move=(0.0, _LINE * (len(lines) / 2 - at))
            )
            for at, line in enumerate(lines)
        )


def bar_label(view: StepView, token_id: int) -> str:
    """Return a token's text as it fits left of its bar, with room for a mark."""
    return fitted(token_label(view.tokens, token_id), LABEL_ROOM - 26)
