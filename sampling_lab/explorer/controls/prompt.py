"""The boxes for the text to continue, and for the number of new tokens."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from ...errors import PromptError
from ...models.base import Model, Prompt
from ...sampling.settings_text import read_token_ids
from ..panel.parts import Column, Handler, labelled, named, text_area, text_box

_PROMPT = "The sky is"
_PROMPTS = {"xslm": "Q: is the sky blue?\nA: "}
"""Other examples, for formats whose vocabulary is too small for that one."""


class PromptBox(Column):
    """The prompt: raw text, or a question in a chat with a system message.

    Args:
        model: the model to prompt; chat needs its chat template.
        prompt: the text; None is an example that fits the model.

    Attributes:
        text: the box for the text, or for the user's message in a chat.
        mode: "raw" or "chat".
        system: the box for the system message; empty sends none.
    """

    def __init__(self, model: Model, prompt: str | None = None) -> None:
        text = example_prompt(model) if prompt is None else prompt
        self.text = text_area("The prompt: the text to continue", text)
        self.mode = widgets.ToggleButtons(
            options=["raw", "chat"],
            tooltips=["Continue the text as it is", "Answer it, by the chat template"],
            style=widgets.ToggleButtonsStyle(button_width="auto"),
        )
        self.system = text_box(
            "The system message, which says how the model should answer; may be empty",
            placeholder="system line",
            flex="1 1 auto",
        )
        row = labelled("prompt", named("mode", self.mode), self.system)
        super().__init__([row, self.text])
        self._model = model
        self.fit(model)
        self.mode.observe(self._show_system, "value")

    def fit(self, model: Model) -> None:
        """Fit another model, and replace the example if nobody edited it."""
        if self.text.value == example_prompt(self._model):
            self.text.value = example_prompt(model)
        self._model = model
        self.mode.disabled = not model.card.chat
        if not model.card.chat:
            self.mode.value = "raw"
        self._show_system()

    def prompt(self) -> Prompt:
        """Return text, messages, or, for a model without a tokenizer, token ids.

        Raises:
            PromptError: the model has no tokenizer, and the text is not token ids.
        """
        if self.mode.value == "raw":
            return typed_prompt(self._model, self.text.value)
        messages = [{"role": "user", "content": self.text.value}]
        if self.system.value:
            messages.insert(0, {"role": "system", "content": self.system.value})
        return messages

    def on_change(self, handler: Handler) -> None:
        """Call a handler when anything is typed or chosen."""
        for box in (self.text, self.mode, self.system):
            box.observe(handler, "value")

    def _show_system(self, change: dict[str, Any] | None = None) -> None:
        is_chat = self.mode.value == "chat"
        self.system.layout.visibility = "visible" if is_chat else "hidden"


def example_prompt(model: Model) -> str:
    """Return an example prompt that fits the model."""
    return _PROMPTS.get(model.card.format, _PROMPT)


def typed_prompt(model: Model, text: str) -> Prompt:
    """Return the text; for a model without a tokenizer, the ids typed in.

    Raises:
        PromptError: the model has no tokenizer, and the text is not token ids.
    """
    if model.tokenizer is not None:
        return text
    ids = read_token_ids(text)
    if ids is None:
        raise PromptError(
            f"{model.card.name} has no tokenizer; type token ids, like 1, 2, 3"
        )
    return ids


def count_box(value: int) -> widgets.BoundedIntText:
    """Return the box for the number of new tokens."""
    return widgets.BoundedIntText(
        value,
        min=1,
        max=1_000_000,
        tooltip="How many tokens a run may have (max_new_tokens)",
        layout=widgets.Layout(flex="1 1 auto", width="auto"),
    )
