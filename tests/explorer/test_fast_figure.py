"""Kept figures: the same pixels as a figure drawn at once, and exact colours."""

from __future__ import annotations

import gc
import io
from weakref import WeakSet

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from sampling_lab import SamplingParams, plots
from sampling_lab.explorer.pictures.fast_figure import (
    COLORS,
    FastFigures,
    Place,
    palette_png,
)
from sampling_lab.explorer.pictures.tab import Sentence
from sampling_lab.plots.distribution import DistributionArtists
from sampling_lab.plots.stages import StageArtists
from sampling_lab.plots.steps import StepArtists
from tests.helpers import pixels

LOGITS = torch.tensor([2.0, 1.0, 0.2, -1.0, 0.7, 1.9, -0.3, 0.1])
PLACE = Place(150, 34, 300, 180)


def bars(**params):
    return plots.distribution_table(SamplingParams(**params).chain().ledger(LOGITS))


def bar_figure(figures, height=250):
    """Return the figure of a distribution of eight bars."""
    make = lambda axes: DistributionArtists(axes[0], 8)  # noqa: E731
    return figures.find("bars", height, [PLACE], make)


def drawn_at_once(figure):
    """Return the pixels of a figure as matplotlib draws it, without a background."""
    for ax in figure.axes:
        for artist in ax.get_children():
            artist.set_animated(False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return pixels(palette_png(np.asarray(canvas.buffer_rgba())))


def test_a_kept_figure_has_the_pixels_of_one_drawn_at_once():
    figure = bar_figure(FastFigures(600))
    for params in ({"top_k": 3}, {"temperature": 0.1}, {"top_p": 0.5}, {"top_k": 3}):
        figure.artists.show(bars(**params))
        kept = pixels(figure.png())
        assert np.array_equal(kept, drawn_at_once(figure.figure))


def test_ticks_follow_the_data_back_and_forth():
    figure = bar_figure(FastFigures(600))
    cold, warm = bars(temperature=0.1), bars(temperature=5.0)
    pngs = []
    for shown in (cold, warm, cold, warm):
        figure.artists.show(shown)
        pngs.append(figure.png())
    assert pngs[0] == pngs[2] != pngs[1] == pngs[3]


def test_a_layout_has_one_figure_and_another_layout_another():
    figures = FastFigures(600)
    first = bar_figure(figures)
    assert bar_figure(figures) is first
    assert bar_figure(figures, height=300) is not first
    size = Image.open(io.BytesIO(first.png())).size
    assert size == (900, 375)
    assert FastFigures(600).find("other", 250, [PLACE], lambda axes: axes) is not first


def test_figures_of_layouts_long_unused_are_let_go():
    figures, made = FastFigures(600), WeakSet()
    first = bar_figure(figures)
    for height in range(300, 330):
        made.add(bar_figure(figures, height).figure)
    gc.collect()
    assert 1 < len(made) < 12
    assert first.figure.axes == []
    assert bar_figure(figures) is not first


@pytest.mark.parametrize(
    "make", [lambda axes: StageArtists(axes, 4), StepArtists], ids=["stages", "steps"]
)
def test_several_axes_stand_at_their_places(make):
    places = [Place(100, 150 * at + 40, 300, 80) for at in range(3)]
    figure = FastFigures(600).find("several", 500, places, make)
    boxes = [ax.get_position().bounds for ax in figure.figure.axes]
    for box, place in zip(boxes, places, strict=True):
        assert np.multiply(box, (600, 500, 600, 500)) == pytest.approx(place)


def test_the_colours_of_the_pictures_are_exact():
    block = np.full((2, len(COLORS), 4), 255, np.uint8)
    block[..., :3] = [
        [int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in COLORS
    ]
    assert np.array_equal(pixels(palette_png(block)), block[..., :3])


def test_greys_stay_grey():
    grey = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 4, -1)
    shown = pixels(palette_png(grey)).astype(int)
    assert (shown == shown[..., :1]).all()
    assert np.abs(shown[..., 0] - grey[..., 0]).max() <= 12


def test_sentences_are_broken_to_the_width():
    text = "one sentence of several words, and a further one"
    figures, place = FastFigures(400), Place(50, 20, 300, 160)
    for width, lines in ((120, 3), (200, 2), (320, 1)):
        figure = figures.find("words", 200, [place], Sentence)
        figure.artists.show(text, width)
        ink = pixels(figure.png()).min(-1) < 128
        assert width / 2 < np.ptp(np.flatnonzero(ink.any(0))) / 1.5 <= width
        assert (np.diff(ink.any(1).astype(int)) == 1).sum() == lines


def test_a_sentence_has_no_frame():
    figure = FastFigures(200).find("words", 100, [Place(50, 20, 100, 60)], Sentence)
    assert set(np.unique(pixels(figure.png()))) == {255}
    figure.artists.show("a few words", 90)
    assert pixels(figure.png()).min() < 60
