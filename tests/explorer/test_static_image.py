"""The static image of a panel: what it shows, literally, without a kernel."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import pytest
from matplotlib.figure import Figure

from sampling_lab.explorer import Explorer, Toy
from sampling_lab.explorer.pictures.static_image import static_image
from sampling_lab.explorer.pictures.tab import Picture
from tests.explorer.panels import generated, make_explorer, make_model
from tests.helpers import pixels


def bundle(panel):
    """Return the static image that a notebook keeps, and its width."""
    data, metadata = panel._repr_mimebundle_()
    return base64.b64decode(data["image/png"]), metadata["image/png"]["width"]


def written(monkeypatch, panel):
    """Return every text that is written into a panel's static image."""
    texts, original = [], Figure.text

    def noted(self, x, y, text, **options):
        texts.append(text)
        return original(self, x, y, text, **options)

    monkeypatch.setattr(Figure, "text", noted)
    bundle(panel)
    return [text for text in texts if text]


def test_a_static_image_holds_the_picture_whole():
    explorer = generated()
    png, width = bundle(explorer)
    shown, whole = pixels(explorer.picture.value), pixels(png)
    assert width == explorer.picture.width or str(width) == explorer.picture.width
    assert whole.shape[1] == shown.shape[1] and whole.shape[0] > shown.shape[0]
    above = next(
        at
        for at in range(whole.shape[0] - shown.shape[0])
        if np.array_equal(whole[at : at + shown.shape[0]], shown)
    )
    assert above > 0


def test_a_static_image_says_what_the_panel_says(monkeypatch):
    explorer = make_explorer(max_new_tokens=3)
    explorer.generate()
    texts = written(monkeypatch, explorer)
    assert explorer.view().title in texts
    assert explorer.shown.caption in texts
    assert "seed 0" in texts and "ab" in texts
    names = [text for text in texts if text in ("settings", "prompt", "text")]
    assert names == ["settings", "prompt", "text"]


def test_markup_and_control_characters_are_written_as_they_are(monkeypatch):
    explorer = Explorer(make_model(), prompt="<b>x</script>", max_new_tokens=1)
    assert "<b>x</script>" in written(monkeypatch, explorer)
    png = pixels(bundle(Toy())[0])
    assert png.min() < 60  # something is drawn


@pytest.mark.parametrize("text", ["$x_$", "\\frac$", "中 text", "a\x1b[31mb", "\t"])
def test_no_text_is_obeyed_or_warned_of(text):
    plain = bundle(generated())[0]
    assert (
        len(static_image(Picture(plain, text, [], text), 640, {"text": text}))
        > len(plain) / 4
    )


def test_a_long_text_is_cut_and_says_so():
    picture = Picture(bundle(Toy())[0], "", [])
    long = static_image(picture, 640, {"text": "word " * 5000})
    longer = static_image(picture, 640, {"text": "word " * 50_000})
    assert pixels(long).shape == pixels(longer).shape


def test_a_run_can_be_waited_for():
    async def scenario():
        explorer = make_explorer(max_new_tokens=30)
        explorer.generate()
        assert explorer.player.is_playing
        result = await explorer.finished()
        assert len(result.token_ids) == 30 and result == explorer.generation

    asyncio.run(scenario())
