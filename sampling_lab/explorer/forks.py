"""Another token at a step, and the branches that come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ..branches import Branch, Tree
from ..models.base import Model
from ..results import Step
from .board import button
from .controls import label
from .pacing import Home

_ALTERNATIVES = 30


class Forks(widgets.HBox):
    """A choice of tokens at the selected step, and of the branches there are.

    Args:
        home: the loop on which actions are done.
        fork: takes `choice` at the selected step.
        go_to: shows the branch with this id.
        remove: removes the branch that is shown.

    Attributes:
        alternatives: the tokens of the selected step, the likeliest first.
        branch: the branches, by what was chosen where.
    """

    def __init__(
        self,
        home: Home,
        fork: Callable[[], None],
        go_to: Callable[[int], None],
        remove: Callable[[], None],
    ) -> None:
        self._home, self._go_to, self._step = home, go_to, None
        self.alternatives = _dropdown(
            "Another token for the selected step", "2 1 260px"
        )
        self.fork_button = button(home, fork, "Fork", "code-fork")
        self.branch = _dropdown("Every text since the last reset", "2 1 200px")
        self.remove_button = button(home, remove, "Remove", "trash")
        super().__init__(
            [
                label("instead"),
                self.alternatives,
                self.fork_button,
                label("branch"),
                self.branch,
                self.remove_button,
            ]
        )
        self.add_class("sampling-lab-buttons")
        self._playing, self._has_branch = False, False
        self.branch.observe(self._branch_chosen, "value")
        self._disable()

    @property
    def choice(self) -> int | None:
        """The token id to take instead; None where no step is selected."""
        return self.alternatives.value

    def disable(self, playing: bool) -> None:
        """Let nothing be chosen while tokens come in."""
        self._playing = playing
        self._disable()

    def show(
        self, model: Model, tree: Tree, branch: Branch | None, step: Step | None
    ) -> None:
        """Offer the tokens of a step, and the branches of a tree."""
        if step is not self._step:
            self.alternatives.options = _alternatives(model, step) if step else ()
            self.alternatives.index = 0 if self.alternatives.options else None
            self._step = step
        self._show_branches(tree, branch)
        self._has_branch = branch is not None
        self._disable()

    def _show_branches(self, tree: Tree, branch: Branch | None) -> None:
        names = tuple((" → ".join(tree.breadcrumb(b.id)), b.id) for b in tree)
        # New options select the first one on their way; no person has chosen that.
        self.branch.unobserve(self._branch_chosen, "value")
        if names != self.branch.options:
            self.branch.options = names
        self.branch.value = branch.id if branch else None
        self.branch.observe(self._branch_chosen, "value")

    def _disable(self) -> None:
        self.alternatives.disabled = self._playing or self.choice is None
        self.fork_button.disabled = self.alternatives.disabled
        self.branch.disabled = self._playing or not self._has_branch
        self.remove_button.disabled = self.branch.disabled

    def _branch_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] is not None:
            self._home.post(lambda: self._go_to(change["new"]))


def _alternatives(model: Model, step: Step) -> list[tuple[str, int]]:
    """Return the likeliest other tokens of a step, with what became of each."""
    rows = step.ledger().table(_ALTERNATIVES + 1)
    others = [row for row in rows if row["token_id"] != step.token_id]
    return [(_row(model, row), row["token_id"]) for row in others[:_ALTERNATIVES]]


def _row(model: Model, row: dict[str, Any]) -> str:
    what = f"removed by {row['removed_by']}"
    if row["removed_by"] is None:
        what = f"final {row['final']:.3f}"
    return f"{model.token_text(row['token_id'])} · raw {row['raw']:.3f} · {what}"


def _dropdown(tooltip: str, flex: str) -> widgets.Dropdown:
    return widgets.Dropdown(
        options=(), tooltip=tooltip, layout=widgets.Layout(flex=flex, width="auto")
    )
