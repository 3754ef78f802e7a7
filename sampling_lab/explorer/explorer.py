"""The explorer: a model's next token under sliders, and its text as it comes."""

from __future__ import annotations

import html
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..display import tokens_html
from ..errors import PromptError
from ..generation import stream
from ..models import load
from ..models.base import Model, Prompt
from ..params import SamplingParams
from ..results import Generation
from .canvas import View
from .controls import label
from .panel import BETWEEN_PICTURES, Panel, button, group, line
from .player import Player

_PROMPT = "The sky is"
_PROMPTS = {"xslm": "Q: is the sky blue?\nA: "}
"""The prompt to begin with, where a format's vocabulary asks for its own."""

BETWEEN_STREAMED = 0.1
"""Seconds between pictures of a stream; more would hold the tokens up."""


class Explorer(Panel):
    r"""A panel over one model: move a slider, see the distribution; generate, stop.

    The picture shows the next token after the prompt, and which one the seed draws;
    while text streams in it follows the newest step, until a setting changes.

    Args:
        model: a model, or what `load` takes.
        prompt: the text to begin with; None is an example that fits the model.
        params: the parameters to begin with.
        max_new_tokens: None is the model's own default.

    Attributes:
        model: the loaded model.
        prompt: the text box.
        max_new_tokens: the number box.
        text: the prompt and the tokens, as HTML.
        player: the run under way or the last one.

    Example:
        >>> explorer = Explorer("checkpoints/xslm/model.json", prompt="Q: hi\nA: ")
        >>> explorer.params = explorer.params.replace(temperature=0)
        >>> explorer.generate()
        >>> explorer.generation.text
        'hello.'
    """

    player: Player | None = None

    def __init__(
        self,
        model: Model | str | Path,
        *,
        prompt: str | None = None,
        params: SamplingParams | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        self.model = model if isinstance(model, Model) else load(model)
        card = self.model.card
        if prompt is None:
            prompt = _PROMPTS.get(card.format, _PROMPT)
        self.prompt = _prompt_box(prompt)
        self.max_new_tokens = _count_box(max_new_tokens or card.default_max_new_tokens)
        self.text = line("text")
        self._made_for: tuple[Any, ...] = ()
        self._prompt_text = ""
        self._shows_step = False
        params = params or SamplingParams()
        super().__init__(
            params.replace(dialect=params.dialect or card.dialect), card.vocab_size
        )
        guard = partial(self.guard, what="run")
        self.player = Player(self.model, self.home, guard, self._played)
        self._arrange()
        self.prompt.observe(self._input_changed, "value")
        self.max_new_tokens.observe(self._input_changed, "value")
        self._played()
        self.draw_first()

    @property
    def generation(self) -> Generation | None:
        """The last run's result so far; None before the first run."""
        return self.player.run.generation if self.player.run else None

    def generate(self) -> None:
        """Run from the prompt to the end; one run at a time.

        In a notebook this returns at once and the tokens come in afterwards.
        """
        if not self.player.is_playing and self.guard(self._start, "run"):
            self.player.play()

    def step(self) -> None:
        """Draw one token: the next one, or the first after a setting changed."""
        if self.player.is_playing:
            return
        fits = self.player.is_open and self._made_for == self._settings()
        if fits or self.guard(self._start, "run"):
            self.guard(self.player.advance, "run")

    def stop(self) -> None:
        """End the run after the token it is at; what there is stays."""
        self.player.stop()

    def reset(self) -> None:
        """End the run, forget its text and show the token after the prompt."""
        self.player.clear()
        self._input_changed()

    def close(self) -> None:
        """End the run and remove the widgets."""
        if self.player is not None:  # else it is a half-made panel's end
            self.player.stop()
        super().close()

    def view(self) -> View:
        """Return the newest step while it is shown, else the first token to come."""
        step, name = self.player.step, self.model.token_text
        if self._shows_step and step is not None:
            title = f"step {step.index + 1} · drew {step.token_text}"
            return View(step.ledger(), name, step.token_id, title)
        ids = self.model.prompt_ids(self._prompt())
        chain = self.params.chain(ids, len(ids))
        ledger = chain.ledger(self.model.logits(ids))
        return self.preview(ledger, name, "next token after the prompt")

    def redraw(self) -> None:
        """Draw the picture and show the text, at once."""
        self._show_text()
        super().redraw()

    def _start(self) -> None:
        self._made_for = self._settings()
        prompt, params, limit = self._made_for
        self._prompt_text = self.prompt.value
        self.player.start(stream(self.model, prompt, params, max_new_tokens=limit))
        self._shows_step = True

    def _played(self) -> None:
        """Follow the player: a token came, or playing began or ended."""
        playing = self.player.is_playing
        self.generate_button.disabled = self.step_button.disabled = playing
        self.stop_button.disabled = not playing
        self.refresh.interval = BETWEEN_STREAMED if playing else BETWEEN_PICTURES
        self.refresh.request()

    def _input_changed(self, change: dict[str, Any] | None = None) -> None:
        """Show what comes now; a run that was started for something else ends."""
        self.player.stop("stopped: a setting changed")
        self._shows_step = False
        self.forget_trouble("run")
        self.refresh.request()

    def _params_changed(self, change: dict[str, Any]) -> None:
        self._input_changed(change)

    def _settings(self) -> tuple[Prompt, SamplingParams, int]:
        return self._prompt(), self.params, self.max_new_tokens.value

    def _prompt(self) -> Prompt:
        """Return the text; for a model without a tokenizer, the ids typed in."""
        text = self.prompt.value
        if self.model.tokenizer is not None:
            return text
        try:
            return [int(number) for number in text.replace(",", " ").split()]
        except ValueError:
            raise PromptError(
                f"{self.model.card.name} has no tokenizer; type token ids, like 1 2 3"
            ) from None

    # What is on the screen

    def _arrange(self) -> None:
        """Put the widgets together; each button is one method of this panel."""
        self.generate_button = button(self.home, self.generate, "Generate", "play")
        self.step_button = button(self.home, self.step, "Step", "step-forward")
        self.stop_button = button(self.home, self.stop, "Stop", "stop")
        self.reset_button = button(self.home, self.reset, "Reset", "undo")
        self.generate_button.button_style = "primary"
        buttons = [
            self.generate_button,
            self.step_button,
            self.stop_button,
            self.reset_button,
        ]
        self.arrange(
            head=[line("card", html.escape(self.model.card.summary()))],
            inputs=[self.prompt],
            limits=[widgets.HBox([label("new tokens"), self.max_new_tokens])],
            below=[group(widgets.HBox, "buttons", buttons), self.text],
        )

    def _show_text(self) -> None:
        result = self.generation
        if result is None:
            self.text.value = "<i>Generate runs to the end, Step draws one token.</i>"
            return
        last = [result.stop_step] if result.stop_step else []
        self.text.value = tokens_html([*result.steps, *last], self._prompt_text)

    def _status(self) -> str:
        return self.player.status() or "ready"

    def _subject(self) -> str:
        return self.model.card.name


def _prompt_box(text: str) -> widgets.Textarea:
    return widgets.Textarea(
        text,
        rows=3,
        tooltip="The prompt: the text to continue",
        layout=widgets.Layout(width="auto"),
    )


def _count_box(value: int) -> widgets.BoundedIntText:
    return widgets.BoundedIntText(
        value,
        min=1,
        max=1_000_000,
        tooltip="How many tokens a run may have (max_new_tokens)",
        layout=widgets.Layout(flex="1 1 auto", width="auto"),
    )
