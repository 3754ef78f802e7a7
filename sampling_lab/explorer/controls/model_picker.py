"""Which model: a choice of the checkpoints at hand, or any path or hub name."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..panel.event_loop import EventLoop
from ..panel.lab_widget import html_line
from .slider_with_box import label


class ModelPicker(widgets.VBox):
    """The model's card, and a choice of another.

    Args:
        home: the loop on which `load` is called.
        load: takes a path or a hub name.
        paths: the checkpoints at hand.

    Attributes:
        card: the line about the model; while one is loaded, what and how far.
        checkpoint: the choice of those at hand.
        path: the box for any other.
    """

    def __init__(
        self, home: EventLoop, load: Callable[[str], None], paths: Sequence[Path]
    ) -> None:
        self._home, self._load = home, load
        self.card = html_line("card")
        self.checkpoint = widgets.Dropdown(
            options=[("choose …", ""), *((_name(path), str(path)) for path in paths)],
            tooltip="A checkpoint at hand",
            layout=widgets.Layout(flex="1 1 200px", width="auto", min_width="0"),
        )
        self.path = widgets.Text(
            placeholder="or type a path, or organisation/model, and press Enter",
            continuous_update=False,
            tooltip="A checkpoint's path, or the name of a model on the hub",
            layout=widgets.Layout(flex="2 1 300px", width="auto", min_width="0"),
        )
        row = widgets.HBox([label("model"), self.checkpoint, self.path])
        super().__init__([self.card, row])
        self.checkpoint.observe(self._chosen, "value")
        self.path.observe(self._chosen, "value")

    def show(self, summary: str, checkpoint: str) -> None:
        """Show a loaded model's card, and which of those at hand it is."""
        self.card.value = html.escape(summary)
        known = {_same(value): value for _, value in self.checkpoint.options if value}
        # No person has chosen it.
        self.checkpoint.unobserve(self._chosen, "value")
        self.checkpoint.value = known.get(_same(checkpoint), "")
        self.checkpoint.observe(self._chosen, "value")
        self.disable(False)

    def show_loading(self, source: str) -> None:
        """Show that a model is being loaded; the bar moves by itself."""
        self.card.value = (
            f"Loading {html.escape(source)}{_size(Path(source))} … "
            '<progress aria-label="loading"></progress>'
        )
        self.disable(True)

    def disable(self, disabled: bool) -> None:
        """Let no other model be chosen, or let it again."""
        self.checkpoint.disabled = self.path.disabled = disabled

    def _chosen(self, change: dict[str, Any]) -> None:
        if source := change["new"].strip():
            self._home.post(lambda: self._load(source))


def _name(path: Path) -> str:
    """Return a checkpoint's name in its folder, such as "xslm/model.json"."""
    return path.name if path.is_dir() else f"{path.parent.name}/{path.name}"


def _same(checkpoint: str) -> Path:
    return Path(checkpoint).expanduser().resolve()


def _size(path: Path) -> str:
    """Return how much there is to read, in words; "" for what is not here."""
    files = [file for file in (path, *path.glob("*")) if file.is_file()]
    total = sum(file.stat().st_size for file in files)
    return f" ({total / 1e6:,.0f} MB)" if total >= 1e6 else ""
