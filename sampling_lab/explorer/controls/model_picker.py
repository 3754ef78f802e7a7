"""Choose the model: a checkpoint that was found, or any path or hub name."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..panel.parts import Column, dropdown, html_line, labelled, offer, text_box


class ModelPicker(Column):
    """The model's card, and a choice of other models.

    Args:
        load: takes a path or a hub name.
        paths: the checkpoints to choose from.

    Attributes:
        card: the line about the model, or about the one that is being loaded.
        checkpoint: the choice of checkpoints.
        path: the box for any other path or hub name.
    """

    def __init__(self, load: Callable[[str], None], paths: Sequence[Path]) -> None:
        self._load = load
        self.card = html_line("card")
        self.checkpoint = dropdown(
            "A checkpoint that was found here",
            [("choose …", ""), *((_name(path), str(path)) for path in paths)],
            flex="1 1 200px",
        )
        self.path = text_box(
            "A checkpoint's path, or the name of a model on the hub",
            placeholder="or type a path, or organisation/model, and press Enter",
            flex="2 1 300px",
        )
        super().__init__([self.card, labelled("model", self.checkpoint, self.path)])
        self.checkpoint.observe(self._chosen, "value")
        self.path.observe(self._chosen, "value")

    def show(self, summary: str, checkpoint: str) -> None:
        """Show a loaded model's card, and select its checkpoint if it is offered."""
        self.card.value = html.escape(summary)
        options = self.checkpoint.options
        known = {_resolved(value): value for _, value in options if value}
        selected = known.get(_resolved(checkpoint), "")
        offer(self.checkpoint, self._chosen, options, selected)
        self.disable(False)

    def show_loading(self, source: str) -> None:
        """Show that a model is being loaded; the bar moves by itself."""
        self.card.value = (
            f"Loading {html.escape(source)}{_size(Path(source))} … "
            '<progress aria-label="loading"></progress>'
        )
        self.disable(True)

    def disable(self, disabled: bool) -> None:
        """Forbid or allow the choice of another model."""
        self.checkpoint.disabled = self.path.disabled = disabled

    def _chosen(self, change: dict[str, Any]) -> None:
        if source := change["new"].strip():
            self._load(source)


def _name(path: Path) -> str:
    """Return a checkpoint's name in its folder, such as "xslm/model.json"."""
    return path.name if path.is_dir() else f"{path.parent.name}/{path.name}"


def _resolved(checkpoint: str) -> Path:
    return Path(checkpoint).expanduser().resolve()


def _size(path: Path) -> str:
    """Return the size of the files to read, in words; "" for what is not here."""
    files = [file for file in (path, *path.glob("*")) if file.is_file()]
    total = sum(file.stat().st_size for file in files)
    return f" ({total / 1e6:,.0f} MB)" if total >= 1e6 else ""
