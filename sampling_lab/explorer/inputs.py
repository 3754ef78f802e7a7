"""The boxes that say what a run is to continue, and for how long."""

from __future__ import annotations

import ipywidgets as widgets

from ..errors import PromptError
from ..models.base import Model, Prompt

_PROMPT = "The sky is"
_PROMPTS = {"xslm": "Q: is the sky blue?\nA: "}
"""Where a format's vocabulary asks for a prompt of its own."""


def example_prompt(model: Model) -> str:
    """Return a prompt to begin with."""
    return _PROMPTS.get(model.card.format, _PROMPT)


def typed_prompt(model: Model, text: str) -> Prompt:
    """Return the text; for a model without a tokenizer, the ids typed in.

    Raises:
        PromptError: there is no tokenizer, and it is not token ids.
    """
    if model.tokenizer is not None:
        return text
    try:
        return [int(number) for number in text.replace(",", " ").split()]
    except ValueError:
        raise PromptError(
            f"{model.card.name} has no tokenizer; type token ids, like 1 2 3"
        ) from None


def prompt_box(text: str, rows: int = 3) -> widgets.Textarea:
    """Return the box for the text to continue."""
    return widgets.Textarea(
        text,
        rows=rows,
        tooltip="The prompt: the text to continue",
        layout=widgets.Layout(width="auto"),
    )


def count_box(value: int) -> widgets.BoundedIntText:
    """Return the box for how many tokens there may be."""
    return widgets.BoundedIntText(
        value,
        min=1,
        max=1_000_000,
        tooltip="How many tokens a run may have (max_new_tokens)",
        layout=widgets.Layout(flex="1 1 auto", width="auto"),
    )
