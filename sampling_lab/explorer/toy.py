"""The toy: the same panel over words and logits that a person types in."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.dialects import DEFAULT_DIALECT
from ..sampling.draws import Draw
from ..sampling.notes import notes
from ..sampling.params import SamplingParams
from ..text import visible
from .panel.lab_widget import button, html_line, named_box
from .pictures.picture_panel import PicturePanel
from .pictures.step_view import StepView, next_token_view
from .pictures.tabs import TABS

WORDS = {"warm": 2.0, "hot": 1.0, "blue": 0.2, "run": -1.0}
"""The words to begin with, where none are given."""

_MANY = 1000
_SHOWN = 40


class Toy(PicturePanel):
    """A panel over a few words with their logits; no model.

    Args:
        words: a logit for each word.
        params: the parameters to begin with.

    Attributes:
        words: the text box, such as ``warm 2, hot 1``.
        drawn: the words drawn so far, all from one seed.
        tally: the draws beside the probabilities, as HTML.

    Example:
        >>> toy = Toy({"warm": 2.0, "hot": 1.0, "blue": 0.2, "run": -1.0})
        >>> toy.params = toy.params.replace(temperature=0.5)
        >>> [f"{p:.3f}" for p in toy.view().ledger.final_probs.tolist()]
        ['0.858', '0.116', '0.023', '0.002']
    """

    def __init__(
        self,
        words: Mapping[str, float] = WORDS,
        *,
        params: SamplingParams | None = None,
    ) -> None:
        self.words = widgets.Text(
            ", ".join(f"{word} {logit:g}" for word, logit in words.items()),
            tooltip="Words and their logits",
            layout=widgets.Layout(width="auto"),
        )
        self.tally = html_line("text")
        self.drawn: list[str] = []
        self._draw: Draw | None = None
        params = params or SamplingParams()
        super().__init__(
            params.replace(dialect=params.dialect or DEFAULT_DIALECT),
            len(words),
            tabs=TABS[:-1],  # there is no text whose steps could be shown
        )
        self.once_button = button(self.home, self.draw_once, "Draw 1", "play")
        self.many_button = button(
            self.home, self.draw_many, f"Draw {_MANY:,}", "forward"
        )
        self.reset_button = button(self.home, self.reset, "Reset", "undo")
        buttons = [self.once_button, self.many_button, self.reset_button]
        self.arrange(
            inputs=[self.words],
            actions=[named_box(widgets.HBox, "buttons", buttons)],
            below=[self.tally],
        )
        self.words.observe(self._params_changed, "value")
        self.draw_first()

    def logits(self) -> tuple[list[str], Tensor]:
        """Return the typed words and their logits, shape (words,).

        Raises:
            ParameterError: a word without a number.
        """
        words, values = [], []
        for entry in self.words.value.split(","):
            if not entry.strip():
                continue
            word, _, number = entry.strip().rpartition(" ")
            try:
                value = float(number)
            except ValueError:
                value = math.nan
            if not word or math.isnan(value):
                raise ParameterError(
                    "words must be typed as a word, a space and a number, with commas "
                    f"between (warm 2, hot 1), got {entry.strip()!r}"
                )
            words.append(word.strip())
            values.append(value)
        if not words:
            raise ParameterError(
                "words must not be empty; type some, like warm 2, hot 1"
            )
        return words, torch.tensor(values)

    def view(self) -> StepView:
        """Return the distribution over the words, with the one that the seed draws."""
        words, logits = self.logits()
        ledger = self.params.chain().ledger(logits)
        return next_token_view(
            ledger, tuple(words).__getitem__, self.params, "first draw"
        )

    def draw_once(self) -> None:
        """Draw one word more with this seed."""
        self.run_showing_errors(lambda: self._draw_words(1), "draw")

    def draw_many(self) -> None:
        """Draw a thousand words more with this seed."""
        self.run_showing_errors(lambda: self._draw_words(_MANY), "draw")

    def reset(self) -> None:
        """Forget what was drawn; the seed begins again."""
        self.drawn, self._draw = [], None
        self.clear_error("draw")
        self.refresh.request()

    def redraw(self) -> None:
        """Draw the picture and show the tally, at once."""
        super().redraw()
        self._show_tally()

    def _draw_words(self, count: int) -> None:
        words, logits = self.logits()
        final = self.params.chain()(logits)
        if self._draw is None:
            self._draw = self.params.resolve(DEFAULT_DIALECT).draw()
        self.drawn += [words[self._draw(final).token_id] for _ in range(count)]
        self._show_tally()

    def _show_tally(self) -> None:
        if not self.drawn:
            self.tally.value = (
                "<i>Draw words and hold them beside the probabilities.</i>"
            )
            return
        words, logits = self.logits()
        probs = self.params.chain().probs(logits).tolist()
        counts, total = Counter(self.drawn), len(self.drawn)
        rows = "".join(
            f"<tr><td>{html.escape(visible(word))}</td><td>{counts[word]:,}</td>"
            f"<td>{counts[word] / total:.3f}</td><td>{prob:.3f}</td></tr>"
            for word, prob in zip(words, probs, strict=True)
        )
        newest = " ".join(map(visible, self.drawn[-_SHOWN:]))
        more = "… " if total > _SHOWN else ""
        self.tally.value = (
            f"<div>{more}{html.escape(newest)}</div><table>"
            "<tr><th>word</th><th>drawn</th><th>share</th><th>final probability</th>"
            f"</tr>{rows}</table>"
        )

    def _params_changed(self, change: dict[str, Any]) -> None:
        self.reset()

    def _status(self) -> str:
        about = notes(self.params, len(self.logits()[0]))
        return " · ".join([f"{len(self.drawn):,} drawn", *about])

    def _subject(self) -> str:
        return self.words.value
