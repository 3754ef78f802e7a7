"""The distribution's picture as PNG: its height, its palette and its chunks."""

from __future__ import annotations

import zlib

import numpy as np
import torch

from sampling_lab import SamplingParams
from sampling_lab.explorer.pictures.canvas import DistributionCanvas
from sampling_lab.explorer.pictures.png import PaletteEncoder
from sampling_lab.explorer.pictures.step_view import StepView
from sampling_lab.plots.drawing.style import CHOSEN, FINAL, INK
from tests.helpers import pixels


def test_the_canvas_takes_the_height_that_the_bars_need():
    canvas = DistributionCanvas(scale=1.0)
    heights = []
    for vocabulary in (2, 5, 100):
        ledger = SamplingParams().chain().ledger(torch.zeros(vocabulary))
        heights.append(
            pixels(canvas.draw(StepView(ledger, None, SamplingParams()))).shape[0]
        )
    assert heights == sorted(set(heights))


def test_the_palette_keeps_the_given_colours_and_the_greys():
    colors = [FINAL, CHOSEN, INK, "#ffffff", "#000000"]
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colors])
    image = np.full((4, len(colors), 4), 255, np.uint8)
    image[..., :3] = rgb
    png = PaletteEncoder(colors).encode(image)
    assert np.array_equal(pixels(png), image[..., :3])
    grey = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 4, -1)
    shown = pixels(PaletteEncoder([]).encode(grey)).astype(int)
    assert (shown == shown[..., :1]).all()
    assert np.abs(shown[..., 0] - grey[..., 0]).max() <= 32


def test_the_png_is_whole():
    png = PaletteEncoder([]).encode(np.zeros((3, 5, 4), np.uint8))
    assert png.startswith(b"\x89PNG")
    at, names = 8, []
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        names.append(png[at + 4 : at + 8])
        body = png[at + 4 : at + 8 + length]
        assert zlib.crc32(body) == int.from_bytes(png[at + 8 + length :][:4])
        at += 12 + length
    assert names == [b"IHDR", b"pHYs", b"PLTE", b"IDAT", b"IEND"]
