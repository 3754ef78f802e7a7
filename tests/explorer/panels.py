"""Explorers to test, and what can be seen in one."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import ipywidgets as widgets
import torch

from sampling_lab.explorer import Explorer
from sampling_lab.models.base import Model, ModelCard
from tests.fakes import TableModel

PIECES = [b"a", b"b", b" c", b"\n", b"<b>x", b"</script>", b"&lt;", b"<|im_end|>"]


class FailingModel(TableModel):
    """A model that breaks at the third token."""

    def _forward(self, ids):
        if len(ids) > 4:
            raise RuntimeError("out of <memory>")
        return super()._forward(ids)


class WideModel(Model):
    """The same logits after any prefix, over a vocabulary of real size."""

    def __init__(self, vocab_size=49_152):
        card = ModelCard(
            name="wide",
            format="fake",
            parameters=0,
            vocab_size=vocab_size,
            context_length=None,
            dtype="float32",
            device="cpu",
            dialect="transformers",
        )
        super().__init__(card, None)
        generator = torch.Generator().manual_seed(0)
        self.values = torch.randn(vocab_size, generator=generator) * 2

    def _forward(self, ids):
        return self.values


def make_model(kind=TableModel, pieces=PIECES, **card):
    torch.manual_seed(0)
    return kind(torch.randn(len(pieces), len(pieces)), pieces, **card)


def make_explorer(model=None, **options):
    options = {"prompt": "ab", "max_new_tokens": 12, **options}
    return Explorer(model or make_model(), **options)


def generated():
    explorer = make_explorer(max_new_tokens=6)
    explorer.generate()
    return explorer


def dial(panel, name):
    return panel.controls.dials[name]


def box(panel, name):
    return panel.controls.seed if name == "seed" else dial(panel, name).box


def text_of(line):
    """Return what a line of HTML says."""
    return html.unescape(re.sub(r"<[^>]*>", "", line.value))


def alert(panel):
    """Return what the status line says in red, or ""."""
    return text_of(panel.status) if 'role="alert"' in panel.status.value else ""


def greyed(panel):
    """Return the names of the controls that are marked as without effect."""
    rows = {**panel.controls.dials, "seed": panel.controls.seed_row}
    return {n for n, row in rows.items() if "sampling-lab-idle" in row._dom_classes}


def tree(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    """Yield a widget and all that are laid out in it."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from tree(child)
