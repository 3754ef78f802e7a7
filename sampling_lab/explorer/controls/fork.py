"""Choose another token at a step: one of the likeliest, or any that is searched."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

from ...generation.results import Step
from ...models.base import Model
from ...models.token_search import search_tokens
from ...sampling.ledger import Ledger
from ..panel import parts

_ALTERNATIVES = 30


class AlternativeTokens(parts.Column):
    """A choice of tokens at the selected step.

    Args:
        fork: takes `choice` at the selected step.
        explain: shows in `why` at which settings the seed would draw `choice`.
        search: calls `show` again, after something was typed into `query`.

    Attributes:
        alternatives: the tokens of the selected step, the likeliest first, or those
            that were searched for.
        query: the box to search the vocabulary.
        why: what `explain` found, as HTML.
    """

    def __init__(
        self,
        fork: Callable[[], None],
        explain: Callable[[], None],
        search: parts.Handler,
    ) -> None:
        self._shown: tuple[Any, ...] = ()
        self.alternatives = parts.dropdown(
            "Another token for the selected step", flex="2 1 260px"
        )
        self.query = parts.text_box(
            "Text of any token, or # and an id; Enter searches",
            placeholder="search the vocabulary, or #id",
            flex="1 1 180px",
        )
        self.fork_button = parts.button(fork, "Fork", "code-fork")
        self.explain_button = parts.button(explain, "Explain", "question")
        self.why = parts.html_line("why")
        chosen = [parts.label("instead"), self.alternatives, self.query]
        row = parts.side_by_side(
            "buttons", *chosen, self.fork_button, self.explain_button
        )
        super().__init__([row, self.why])
        self.query.observe(search, "value")
        self.alternatives.observe(self._chosen, "value")

    @property
    def choice(self) -> int | None:
        """The token id to take instead; None where no step is selected."""
        token_id: int | None = self.alternatives.value
        return token_id

    def show(self, model: Model, step: Step | None, is_playing: bool) -> None:
        """Offer the tokens of a step, if there is one and no token is being drawn."""
        shown = (model, step, self.query.value)
        if shown != self._shown:
            options = _offers(model, step, self.query.value) if step else []
            self.alternatives.options = options
            self.alternatives.index = 0 if options else None
            self._shown, self.why.value = shown, ""
        self.query.disabled = is_playing or step is None
        for each in (self.alternatives, self.fork_button, self.explain_button):
            each.disabled = is_playing or self.choice is None

    def show_why(self, sentences: Iterable[str]) -> None:
        """Show sentences about `choice`."""
        self.why.value = "<br>".join(map(html.escape, sentences))

    def _chosen(self, change: dict[str, Any]) -> None:
        self.why.value = ""


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
