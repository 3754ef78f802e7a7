"""Choose among the texts: go back to one, compare two, remove, save and load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ...generation.branches import Branch, Tree
from ..panel import parts
from ..pictures.compare_html import two_texts_html


class BranchList(parts.Column):
    """A choice of the branches, and of one to compare with the one shown.

    Args:
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
        go_to: Callable[[int], None],
        remove: Callable[[], None],
        compare: parts.Handler,
        load: Callable[[bytes, str], None],
    ) -> None:
        self._go_to, self._compare, self._load = go_to, compare, load
        self.branch = parts.dropdown(
            "Every text since the last reset", flex="2 1 200px"
        )
        self.other = parts.dropdown(
            "Another text, to find where they part", flex="2 1 200px"
        )
        self.remove_button = parts.button(remove, "Remove", "trash")
        self.upload = widgets.FileUpload(
            accept=".json",
            description="Load",
            tooltip="Load the texts of a file that Save wrote (.json)",
        )
        self.comparison = parts.html_line("comparison")
        self.upload.add_class("sampling-lab-upload")
        shown = [parts.label("branch"), self.branch, self.remove_button]
        others = [parts.label("beside", "auto"), self.other, self.upload]
        row = parts.side_by_side("buttons", *shown, *others)
        super().__init__([row, self.comparison])
        self.branch.observe(self._branch_chosen, "value")
        self.other.observe(compare, "value")
        self.upload.observe(self._uploaded, "value")

    def show(self, tree: Tree, branch: Branch | None, is_playing: bool) -> None:
        """Show how two branches differ, and offer all unless tokens are being drawn."""
        names = {b.id: " → ".join(tree.breadcrumb(b.id)) for b in tree}
        shown = branch.id if branch else None
        branches = [(name, branch_id) for branch_id, name in names.items()]
        others = [("choose …", 0), *(each for each in branches if each[1] != shown)]
        is_there = self.other.value in [branch_id for _, branch_id in others]
        other = self.other.value if is_there else 0
        parts.offer(self.branch, self._branch_chosen, branches, shown)
        parts.offer(self.other, self._compare, others, other)
        self.comparison.value = (
            _compared(tree, names, shown, other) if shown and other else ""
        )
        self.branch.disabled = is_playing or branch is None
        self.remove_button.disabled = self.branch.disabled
        self.other.disabled = is_playing or len(others) < 2
        self.upload.disabled = is_playing

    def _branch_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] is not None:
            self._go_to(change["new"])

    def _uploaded(self, change: dict[str, Any]) -> None:
        if change["new"]:
            file = change["new"][0]
            self._load(bytes(file["content"]), file["name"])
            self.upload.value = ()


def _compared(tree: Tree, names: dict[int, str], shown: int, other: int) -> str:
    """Return two branches, one below the other, with the first difference marked."""
    found = tree.compare(other, shown)
    reference, beside = (
        (names[branch_id], tree[branch_id].generation) for branch_id in (other, shown)
    )
    return two_texts_html(reference, beside, found.index if found else None)
