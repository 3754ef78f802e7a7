"""Text drawn as outlines: much faster than matplotlib's own when it changes often."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

from ._labels import FONT

_UNITS = 100.0
"""Outlines are kept at this size in points and scaled when drawn."""

_HALF_CAPITAL = 0.36
"""Half the height of a capital letter, as a part of the font size."""

_ANCHORS = {"left": 0.0, "center": 0.5, "right": 1.0}


class OutlineText(Text):
    """One line of text, vertically centred on its position by its capitals.

    It is an ordinary `Text` in all but how it is drawn: from outlines that are laid
    out once for each text (for numbers, once for each digit) and then only moved.
    """

    def __init__(self, x: float, y: float, text: str = "", **options: Any) -> None:
        font = FontProperties(family=FONT, weight=options.pop("weight", "normal"))
        super().__init__(
            x, y, text, fontproperties=font, va="center", parse_math=False, **options
        )

    def draw(self, renderer: RendererBase) -> None:
        """Draw the outlines, filled with the text's colour."""
        text = self.get_text()
        if not self.get_visible() or not text:
            return
        path, width = _outline(text, self.get_weight())
        size = renderer.points_to_pixels(self.get_fontsize())
        x, y = self.get_transform().transform(self.get_unitless_position())
        place = (
            Affine2D()
            .translate(-width * _ANCHORS[self.get_ha()], -_HALF_CAPITAL * _UNITS)
            .scale(size / _UNITS)
            .translate(x, y)
        )
        context = renderer.new_gc()
        context.set_linewidth(0)
        renderer.draw_path(context, path, place, to_rgba(self.get_color()))
        context.restore()
        self.stale = False


def _outline(text: str, weight: str) -> tuple[Path, float]:
    """Return the outline of a text and its width, in hundredths of its size."""
    if text.isascii():
        return _ascii_outline(text, weight)
    return _laid_out(text, weight)  # scripts that join or turn letters


def _ascii_outline(text: str, weight: str) -> tuple[Path, float]:
    parts, x = [], 0.0
    for character in text:
        path, width = _laid_out(character, weight)
        parts.append((path.vertices + np.array([x, 0.0]), path.codes))
        x += width
    vertices = np.concatenate([part[0] for part in parts])
    return Path(vertices, np.concatenate([part[1] for part in parts])), x


@lru_cache(maxsize=1024)
def _laid_out(text: str, weight: str) -> tuple[Path, float]:
    font = FontProperties(family=FONT, weight=weight, size=_UNITS)
    vertices, codes = text_to_path.get_text_path(font, text)
    width = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return Path(np.reshape(vertices, (-1, 2)), codes), width
