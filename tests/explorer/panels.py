"""Explorers to test, what a person does in one, and what must be seen then."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import ipywidgets as widgets
import pytest
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


def made(model=None, **options):
    """Return a function that makes such an explorer, for `given`."""
    return lambda: make_explorer(model() if model else None, **options)


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


# What a person does

Action = Callable[[Any], object]


def press(name: str) -> Action:
    """Click the button with this text."""
    return lambda panel: next(
        each
        for each in tree(panel)
        if isinstance(each, widgets.Button) and each.description == name
    ).click()


def enter(path: str, value: Any) -> Action:
    """Type into or choose in the widget at a path, such as "forks.query"."""
    return lambda panel: setattr(_at(panel, path), "value", value)


def fill(name: str, text: str) -> Action:
    """Type into the box of a control."""
    return lambda panel: setattr(box(panel, name), "value", text)


def slide(name: str, position: float) -> Action:
    """Move a slider."""
    return lambda panel: setattr(dial(panel, name).slider, "value", position)


def select(step: int) -> Action:
    """Select a token of the text."""
    return lambda panel: setattr(panel.strip, "selected", step)


def settings(**changes: Any) -> Action:
    """Set parameters from Python."""
    return lambda panel: setattr(panel, "params", panel.params.replace(**changes))


def call(method: str, *arguments: Any) -> Action:
    """Call a method."""
    return lambda panel: getattr(panel, method)(*arguments)


# What must be seen then


@dataclass(frozen=True)
class Matching:
    """Equal to every value that passes a test."""

    words: str
    test: Callable[[Any], bool] = field(repr=False)

    def __eq__(self, value: object) -> bool:  # noqa: D105
        return self.test(value)


def has(*parts: str) -> Matching:
    return Matching(f"has {parts}", lambda text: all(p in text for p in parts))


def lacks(*parts: str) -> Matching:
    return Matching(f"lacks {parts}", lambda text: not any(p in text for p in parts))


def starts(first: Any) -> Matching:
    return Matching(f"starts with {first!r}", lambda all: all[: len(first)] == first)


def count(number: int) -> Matching:
    return Matching(f"{number} of them", lambda values: len(values) == number)


def smaller(length: int) -> Matching:
    return Matching(f"less than {length} of them", lambda values: len(values) < length)


@dataclass(frozen=True)
class Case:
    """What a person does in a panel, and what must be seen.

    Attributes:
        name: a sentence.
        do: actions, and mappings like `then` for what must be seen between two.
        then: names of `Explorer.state`, of `seen`, or paths of attributes, with the
            values that they must have at the end.
        given: makes the panel.
    """

    name: str
    do: Sequence[Action | Mapping[str, Any]] = ()
    then: Mapping[str, Any] = field(default_factory=dict)
    given: Callable[[], Any] = make_explorer

    def check(self) -> None:
        panel = self.given()
        for each in (*self.do, self.then):
            if callable(each):
                each(panel)
            else:
                assert {path: seen(panel, path) for path in each} == each


def cases(*every: Case) -> pytest.MarkDecorator:
    """Return the mark that runs a test with each case."""
    return pytest.mark.parametrize("case", every, ids=lambda case: case.name)


SEEN: dict[str, Callable[[Any], object]] = {
    "alert": alert,
    "branches": lambda panel: len(panel.branches),
    "chosen": lambda panel: panel.view().chosen,
    "chips": lambda panel: [chip["text"] for chip in panel.strip.tokens],
    "greyed": greyed,
    "line": repr,
    "methods": lambda panel: [s.drawn.method for s in panel.generation.steps[1:]],
    "offered": lambda panel: [id for _, id in panel.forks.alternatives.options],
    "second": lambda panel: panel.generation.token_ids[1],
    "status": lambda panel: text_of(panel.status),
    "steps": lambda panel: len(panel.generation.steps),
    "summary": lambda panel: text_of(panel.controls.summary),
    "tally": lambda panel: text_of(panel.tally),
}


def seen(panel: Any, path: str) -> Any:
    """Return what is seen under a name, see `Case.then`."""
    if path in SEEN:
        return SEEN[path](panel)
    if isinstance(panel, Explorer) and path in panel.state:
        return panel.state[path]
    return _at(panel, path)


def _at(panel: Any, path: str) -> Any:
    """Return what an attribute path leads to; "dials.x" are those of the controls."""
    if path.startswith("dials."):
        _, name, path = path.split(".", 2)
        panel = dial(panel, name)
    return reduce(getattr, path.split("."), panel)
