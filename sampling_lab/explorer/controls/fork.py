"""Another token at a step: one of the likeliest, or any that is searched for."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets as widgets

from ...generation.results import Step
from ...models.base import Model
from ...models.token_search import search_tokens
from ...sampling.ledger import Ledger
from ..panel.event_loop import EventLoop
from ..panel.lab_widget import button, html_line
from .slider_with_box import label

_ALTERNATIVES = 30


class AlternativeTokens(widgets.VBox):
    """A choice of tokens at the selected step.

    Args:
        home: the loop on which actions are done.
        fork: takes `choice` at the selected step.
        explain: tells in `why` what it would take for the seed to draw `choice`.
        search: asks for `show` again, after something was typed into `query`.

    Attributes:
        alternatives: the tokens of the selected step, the likeliest first, or those
            that were searched for.
        query: the box to search the vocabulary with.
        why: what `explain` told, as HTML.
    """

    def __init__(
        self,
        home: EventLoop,
        fork: Callable[[], None],
        explain: Callable[[], None],
        search: Callable[[], None],
    ) -> None:
        self._home, self._search = home, search
        self._shown: tuple[Any, ...] = ()
        self.alternatives = widgets.Dropdown(
            options=(),
            tooltip="Another token for the selected step",
            layout=widgets.Layout(flex="2 1 260px", width="auto"),
        )
        self.query = widgets.Text(
            placeholder="search the vocabulary, or #id",
            tooltip="Text of any token, or # and an id; Enter searches",
            continuous_update=False,
            layout=widgets.Layout(flex="1 1 180px", width="auto"),
        )
        self.fork_button = button(home, fork, "Fork", "code-fork")
        self.explain_button = button(home, explain, "Explain", "question")
        self.why = html_line("why")
        row = widgets.HBox(
            [
                label("instead"),
                self.alternatives,
                self.query,
                self.fork_button,
                self.explain_button,
            ]
        )
        row.add_class("sampling-lab-buttons")
        super().__init__([row, self.why])
        self._playing = False
        self.query.observe(self._typed, "value")
        self.alternatives.observe(self._chosen, "value")
        self._disable()

    @property
    def choice(self) -> int | None:
        """The token id to take instead; None where no step is selected."""
        return self.alternatives.value

    def disable(self, playing: bool) -> None:
        """Let nothing be chosen while tokens come in."""
        self._playing = playing
        self._disable()

    def show(self, model: Model, step: Step | None) -> None:
        """Offer the tokens of a step."""
        shown = (model, step, self.query.value)
        if shown != self._shown:
            options = _offers(model, step, self.query.value) if step else []
            self.alternatives.options = options
            self.alternatives.index = 0 if options else None
            self._shown = shown
            self.why.value = ""
        self._disable()

    def _disable(self) -> None:
        has_step = bool(self._shown) and self._shown[1] is not None
        self.query.disabled = self._playing or not has_step
        self.alternatives.disabled = self._playing or self.choice is None
        self.fork_button.disabled = self.alternatives.disabled
        self.explain_button.disabled = self.alternatives.disabled

    def tell(self, sentences: Iterable[str]) -> None:
        """Show what there is to say of `choice`."""
        self.why.value = "<br>".join(map(html.escape, sentences))

    def _chosen(self, change: dict[str, Any]) -> None:
        self.why.value = ""

    def _typed(self, change: dict[str, Any]) -> None:
        self._home.post(self._search)


def _offers(model: Model, step: Step, query: str) -> list[tuple[str, int]]:
    """Return the likeliest other tokens of a step, with what became of each."""
    ledger, count = step.ledger(), _ALTERNATIVES + 1
    found: Iterable[int] = (
        search_tokens(model, query, ledger.raw_logits, count)
        if query
        else ledger.top(count)
    )
    others = [token_id for token_id in found if token_id != step.token_id]
    return [(_row(model, ledger, each), each) for each in others[:_ALTERNATIVES]]


def _row(model: Model, ledger: Ledger, token_id: int) -> str:
    record = ledger.removed_by(token_id)
    what = f"removed by {record.stage.name}" if record else ""
    what = what or f"final {ledger.final_probs[token_id]:.3f}"
    raw = f"raw {ledger.raw_probs[token_id]:.3f}"
    return f"{model.token_text(token_id)} · {raw} · {what}"
