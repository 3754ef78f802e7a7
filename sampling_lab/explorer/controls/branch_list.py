"""The texts there are: go back to one, hold it beside another, remove it, keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ...generation.branches import Branch, Tree
from ..panel.event_loop import EventLoop
from ..panel.lab_widget import button, html_line
from ..pictures.compare_html import beside_html
from .slider_with_box import label


class BranchList(widgets.VBox):
    """A choice of the branches, and of one to compare with the one shown.

    Args:
        home: the loop on which actions are done.
        go_to: shows the branch with this id.
        remove: removes the branch that is shown.
        compare: asks for `show` again, after another was chosen in `other`.
        load: takes the bytes of a file with branches.

    Attributes:
        branch: the branches, by what was chosen where.
        other: the one to compare with; 0 is none.
        comparison: both texts, as HTML.
        upload: the button for a file.
    """

    def __init__(
        self,
        home: EventLoop,
        go_to: Callable[[int], None],
        remove: Callable[[], None],
        compare: Callable[[], None],
        load: Callable[[bytes, str], None],
    ) -> None:
        self._home, self._go_to = home, go_to
        self._compare, self._load = compare, load
        self.branch = _dropdown("Every text since the last reset")
        self.other = _dropdown("Another text, to find where they part")
        self.remove_button = button(home, remove, "Remove", "trash")
        self.upload = widgets.FileUpload(
            accept=".json",
            description="Load",
            tooltip="Load the texts of a file that Save wrote (.json)",
        )
        self.upload.add_class("sampling-lab-upload")
        self.comparison = html_line("comparison")
        row = widgets.HBox(
            [
                label("branch"),
                self.branch,
                self.remove_button,
                label("beside"),
                self.other,
                self.upload,
            ]
        )
        row.children[3].layout.width = "auto"
        row.add_class("sampling-lab-buttons")
        super().__init__([row, self.comparison])
        self._playing, self._has_branch = False, False
        self.branch.observe(self._branch_chosen, "value")
        self.other.observe(self._other_chosen, "value")
        self.upload.observe(self._uploaded, "value")
        self._disable()

    def disable(self, playing: bool) -> None:
        """Let nothing be chosen while tokens come in."""
        self._playing = playing
        self._disable()

    def show(self, tree: Tree, branch: Branch | None) -> None:
        """Offer the branches of a tree, and show how two of them differ."""
        names = {b.id: " → ".join(tree.breadcrumb(b.id)) for b in tree}
        shown = branch.id if branch else None
        self._offer(self.branch, self._branch_chosen, names, shown)
        others = {0: "choose …", **{i: n for i, n in names.items() if i != shown}}
        other = self.other.value if self.other.value in others else 0
        self._offer(self.other, self._other_chosen, others, other)
        compared = _compared(tree, names, shown, other) if other else ""
        self.comparison.value = compared
        self._has_branch = branch is not None
        self._disable()

    def _offer(
        self,
        box: widgets.Dropdown,
        handler: Callable[[dict[str, Any]], None],
        names: dict[int | None, str],
        value: int | None,
    ) -> None:
        """Set options and value, which no person has chosen."""
        options = tuple((name, branch_id) for branch_id, name in names.items())
        box.unobserve(handler, "value")
        if options != box.options:
            box.options = options
        box.value = value
        box.observe(handler, "value")

    def _disable(self) -> None:
        self.branch.disabled = self._playing or not self._has_branch
        self.remove_button.disabled = self.branch.disabled
        self.other.disabled = self._playing or len(self.other.options) < 2
        self.upload.disabled = self._playing

    def _branch_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] is not None:
            self._home.post(lambda: self._go_to(change["new"]))

    def _other_chosen(self, change: dict[str, Any]) -> None:
        self._home.post(self._compare)

    def _uploaded(self, change: dict[str, Any]) -> None:
        if change["new"]:
            file = change["new"][0]
            self._home.post(lambda: self._load(bytes(file["content"]), file["name"]))
            self.upload.value = ()


def _compared(tree: Tree, names: dict[int, str], shown: int, other: int) -> str:
    """Return two branches one below the other, the first difference marked."""
    found = tree.compare(other, shown)
    reference, beside = (
        (names[branch_id], tree[branch_id].generation) for branch_id in (other, shown)
    )
    return beside_html(reference, beside, found.index if found else None)


def _dropdown(tooltip: str) -> widgets.Dropdown:
    return widgets.Dropdown(
        options=(),
        tooltip=tooltip,
        layout=widgets.Layout(flex="2 1 200px", width="auto", min_width="0"),
    )
