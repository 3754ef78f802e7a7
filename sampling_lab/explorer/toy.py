"""The toy: the same panel over typed words and logits, without a model."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.dialects import DEFAULT_DIALECT
from ..sampling.draws import Draw
from ..sampling.notes import notes
from ..sampling.params import SamplingParams
from ..text import visible
from .panel.lab_widget import LabWidget
from .panel.parts import button, html_line, part, side_by_side, text_box
from .pictures.picture_panel import PicturePanel
from .pictures.step_view import StepView, next_token_view
from .pictures.tab import Picture
from .pictures.tabs import TABS

WORDS = {"warm": 2.0, "hot": 1.0, "blue": 0.2, "run": -1.0}
"""The first words, unless others are given."""

_MANY = 1000
_SHOWN = 40


class Toy(LabWidget):
    """A panel over a few words with their logits; no model.

    Args:
        words: a logit for each word.
        params: the first parameters.

    Attributes:
        panel: the controls and the picture; those of its parts that scripts use are
            attributes here too: controls, tab, picture, title and caption.
        params: the current parameters; setting them moves the controls.
        shown: the picture on the screen, with its caption and the rows behind it.
        refresh: request a redraw from it.
        words: the text box, such as ``warm 2, hot 1``.
        drawn: the words drawn so far, all from one seed.
        tally: the counts next to the probabilities, as HTML.

    Example:
        >>> toy = Toy({"warm": 2.0, "hot": 1.0, "blue": 0.2, "run": -1.0})
        >>> toy.params = toy.params.replace(temperature=0.5)
        >>> [f"{p:.3f}" for p in toy.view().ledger.final_probs.tolist()]
        ['0.858', '0.116', '0.023', '0.002']
    """

    params: SamplingParams = part("panel.params", settable=True)
    shown: Picture | None = part("panel.shown")

    def __init__(
        self,
        words: Mapping[str, float] = WORDS,
        *,
        params: SamplingParams | None = None,
    ) -> None:
        typed = ", ".join(f"{word} {logit:g}" for word, logit in words.items())
        self.words = text_box("Words and their logits", typed)
        self.tally = html_line("text")
        self.drawn: list[str] = []
        self._draw: Draw | None = None
        super().__init__()
        params = params or SamplingParams()
        params = params.replace(dialect=params.dialect or DEFAULT_DIALECT)
        # Without the last tab: there is no text whose steps could be shown.
        panel = PicturePanel(self, params, len(words), tabs=TABS[:-1])
        self.panel, self.refresh = panel, panel.refresh
        self.controls, self.tab, self.picture = panel.controls, panel.tab, panel.image
        self.title, self.caption = panel.title, panel.caption
        post = self.loop.posted
        self.once_button = button(post(self.draw_once), "Draw 1", "play")
        many = f"Draw {_MANY:,}"
        self.many_button = button(post(self.draw_many), many, "forward")
        self.reset_button = button(post(self.reset), "Reset", "undo")
        drawing = self.once_button, self.many_button
        buttons = side_by_side("buttons", *drawing, self.reset_button)
        self.lay_out(panel.layout([self.words], [buttons]), self.tally)
        self.controls.observe(lambda change: self.reset(), "params")
        self.words.observe(lambda change: self.reset(), "value")
        panel.draw_now()

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
        """Draw one more word with this seed."""
        self.run_showing_errors(lambda: self._draw_words(1))

    def draw_many(self) -> None:
        """Draw a thousand more words with this seed."""
        self.run_showing_errors(lambda: self._draw_words(_MANY))

    def reset(self) -> None:
        """Forget the drawn words and start the seed again."""
        self.drawn, self._draw = [], None
        self.clear_error("action")
        self.refresh.request()

    def redraw(self) -> None:
        """Draw the picture and show the tally, at once."""
        self.panel.show(self.view())
        self._show_tally()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.panel.add_static_image(super()._repr_mimebundle_(**options))

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
                "<i>Draw words and compare them with the probabilities.</i>"
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

    def _status(self) -> str:
        about = notes(self.params, len(self.logits()[0]))
        return " · ".join([f"{len(self.drawn):,} drawn", *about])

    def _subject(self) -> str:
        return str(self.words.value)
