"""Choose among the texts: go back to one, compare two, remove, save and load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ...generation.branches import Branch, Tree
from ..panel.event_loop import EventLoop
from ..panel.parts import Column, button, dropdown, html_line, named_box, offer
from ..pictures.compare_html import beside_html
from .slider_with_box import label


class BranchList(Column):
    """A choice of the branches, and of one to compare with the one shown.

    Args:
        loop: the event loop on which actions run.
        go_to: shows the branch with this id.
        remove: removes the branch that is shown.
        compare: calls `show` again, after another was chosen in `other`.
        load: takes the bytes of a file with branches, and its name.

    Attributes:
        branch: the branches, named by the tokens that were chosen at each fork.
        other: the branch to compare with; 0 is none.
        comparison: both texts, as HTML.
        upload: the button for a file.
    """

    def __init__(
        self,
        loop: EventLoop,
        go_to: Callable[[int], None],
        remove: Callable[[], None],
        compare: Callable[[], None],
        load: Callable[[bytes, str], None],
    ) -> None:
        self._loop, self._go_to = loop, go_to
        self._compare, self._load = compare, load
        self.branch = dropdown("Every text since the last reset", flex="2 1 200px")
        self.other = dropdown("Another text, to find where they part", flex="2 1 200px")
        self.remove_button = button(loop, remove, "Remove", "trash")
        self.upload = widgets.FileUpload(
            accept=".json",
            description="Load",
            tooltip="Load the texts of a file that Save wrote (.json)",
        )
        self.upload.add_class("sampling-lab-upload")
        self.comparison = html_line("comparison")
        beside = label("beside")
        beside.layout.width = "auto"
        shown = [label("branch"), self.branch, self.remove_button]
        others = [beside, self.other, self.upload]
        row = named_box(widgets.HBox, "buttons", [*shown, *others])
        super().__init__([row, self.comparison])
        self._playing, self._has_branch = False, False
        self.branch.observe(self._branch_chosen, "value")
        self.other.observe(self._other_chosen, "value")
        self.upload.observe(self._uploaded, "value")
        self._disable()

    def disable(self, playing: bool) -> None:
        """Forbid every choice while tokens are being drawn."""
        self._playing = playing
        self._disable()

    def show(self, tree: Tree, branch: Branch | None) -> None:
        """Offer the branches of a tree, and show how two of them differ."""
        names = {b.id: " → ".join(tree.breadcrumb(b.id)) for b in tree}
        shown = branch.id if branch else None
        branches = [(name, branch_id) for branch_id, name in names.items()]
        others = [("choose …", 0), *(each for each in branches if each[1] != shown)]
        is_there = self.other.value in [branch_id for _, branch_id in others]
        other = self.other.value if is_there else 0
        offer(self.branch, self._branch_chosen, branches, shown)
        offer(self.other, self._other_chosen, others, other)
        self.comparison.value = (
            _compared(tree, names, shown, other) if shown and other else ""
        )
        self._has_branch = branch is not None
        self._disable()

    def _disable(self) -> None:
        self.branch.disabled = self._playing or not self._has_branch
        self.remove_button.disabled = self.branch.disabled
        self.other.disabled = self._playing or len(self.other.options) < 2
        self.upload.disabled = self._playing

    def _branch_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] is not None:
            self._loop.post(lambda: self._go_to(change["new"]))

    def _other_chosen(self, change: dict[str, Any]) -> None:
        self._loop.post(self._compare)

    def _uploaded(self, change: dict[str, Any]) -> None:
        if change["new"]:
            file = change["new"][0]
            self._loop.post(lambda: self._load(bytes(file["content"]), file["name"]))
            self.upload.value = ()


def _compared(tree: Tree, names: dict[int, str], shown: int, other: int) -> str:
    """Return two branches one below the other, the first difference marked."""
    found = tree.compare(other, shown)
    reference, beside = (
        (names[branch_id], tree[branch_id].generation) for branch_id in (other, shown)
    )
    return beside_html(reference, beside, found.index if found else None)
