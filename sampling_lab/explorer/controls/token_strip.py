"""The token strip: every token as a chip, shaded by a measure, one of them selected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain as joined
from itertools import repeat
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ...generation.results import Step
from ...models.base import Model

MEASURES = ("surprisal", "raw", "final", "rank", "entropy", "kept")
"""What can shade the chips; `token_strip.js` has their names, units and scales."""

PROMPTS = ("hidden", "shown", "scored")
"""How the prompt's tokens can be shown."""

Chip = dict[str, Any]
"""One token as plain JSON data; see `chip`."""


def chip(model: Model, token_id: int, step: Step | None = None) -> Chip:
    """Return a token as the strip shows it; without a step it has no numbers.

    Returns:
        `id`, `text` (visible), `bytes` (hexadecimal), `breaks` (whether a line ends
        with it); with a step also the six measures (a surprisal of None is infinite).
    """
    data = model.tokenizer.token_bytes(token_id) if model.tokenizer else b""
    shown = {
        "id": token_id,
        "text": model.token_text(token_id),
        "bytes": data.hex(" "),
        "breaks": b"\n" in data,
    }
    if step is None:
        return shown
    return {
        **shown,
        "surprisal": step.surprisal if math.isfinite(step.surprisal) else None,
        "raw": step.raw_prob,
        "final": step.final_prob,
        "rank": step.rank,
        "entropy": step.entropy,
        "kept": step.kept_count,
    }


def chips(
    model: Model,
    steps: Iterable[Step],
    prompt_ids: Sequence[int] = (),
    scores: Sequence[Step | None] = (),
) -> list[Chip]:
    """Return the prompt's tokens, then those of the steps.

    Only these have `step`, the index, and say whether they were `given` by a person
    and whether they are a `stop` token.

    Args:
        model: whose tokens they are.
        steps: of a generation.
        prompt_ids: the tokens before them.
        scores: for each token of the prompt a step with its numbers, or None.
    """
    scored = zip(prompt_ids, joined(scores, repeat(None)), strict=False)
    before = [chip(model, token_id, score) for token_id, score in scored]
    return before + [_step_chip(model, step) for step in steps]


def _step_chip(model: Model, step: Step) -> Chip:
    place = {"step": step.index, "given": step.is_given, "stop": step.is_stop}
    return {**chip(model, step.token_id, step), **place}


class TokenStrip(anywidget.AnyWidget):
    r"""A listbox of tokens; a click, or the arrows and Enter, selects a step.

    Its page sets all text as text, never as markup.

    Attributes:
        tokens: what is shown, as `chips` gives it. While tokens stream in, `show`
            sends only the new ones, and observers are called only for other texts.
        edition: counts the texts, so that the page notices a new one.
        selected: the index of the selected step; -1 for none.
        measure: what shades the chips, one of `MEASURES`.
        prompt: whether its tokens are "hidden", "shown" or "scored"; the caller of
            `show` passes them accordingly.
        forks: the steps where the text was forked; they get a mark.

    Example:
        >>> from sampling_lab import generate, load
        >>> model = load("checkpoints/xslm/model.json")
        >>> strip = TokenStrip()
        >>> strip.show(model, generate(model, "Q: hi\nA: ").steps)
        >>> strip.tokens[0]["step"], strip.selected
        (0, -1)
    """

    # As text: anywidget keeps every widget whose page is a file, to watch that file.
    _esm = Path(__file__).with_name("token_strip.js").read_text(encoding="utf-8")
    _css = Path(__file__).with_name("token_strip.css").read_text(encoding="utf-8")

    tokens = traitlets.List(traitlets.Dict()).tag(sync=True)
    edition = traitlets.Int().tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    measure = traitlets.Enum(MEASURES, MEASURES[0]).tag(sync=True)
    prompt = traitlets.Enum(PROMPTS, PROMPTS[1]).tag(sync=True)
    forks = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._shown: tuple[Any, ...] = ()
        self._steps: list[Step] = []
        self.on_msg(self._asked)

    def show(
        self,
        model: Model,
        steps: Sequence[Step],
        prompt_ids: Sequence[int] = (),
        scores: Sequence[Step | None] = (),
    ) -> None:
        """Show these tokens; if they continue those shown, send only the new ones.

        A selected step stays selected as long as it exists.

        Args:
            model: whose tokens they are.
            steps: of a generation, a stop step too.
            prompt_ids: the tokens before them, shown dimmed.
            scores: as in `chips`.
        """
        prompt = (model, tuple(prompt_ids), tuple(scores))
        count = len(self._steps)
        goes_on = prompt == self._shown and self._steps == list(steps[:count])
        if goes_on:
            self._append([_step_chip(model, step) for step in steps[count:]])
        else:
            # `edition` makes the page read `tokens` again even if they equal the last
            # ones sent as a whole, after which others were appended.
            with self.hold_sync():
                self.tokens = chips(model, steps, prompt_ids, scores)
                self.edition += 1
        self._shown, self._steps = prompt, list(steps)
        if self.selected >= len(steps):
            self.selected = -1

    def _append(self, new: list[Chip]) -> None:
        if new:
            self.send({"kind": "append", "at": len(self.tokens), "tokens": new})
            self.tokens.extend(new)  # in place, for a page that opens later

    def _asked(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        """Send all tokens again to a page that missed some."""
        if content.get("kind") == "resend":
            self.send_state("tokens")
