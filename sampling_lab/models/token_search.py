"""Search the vocabulary for tokens by their text."""

from __future__ import annotations

import torch
from torch import Tensor

from ..text import visible
from .base import Model


def search_tokens(
    model: Model, query: str, logits: Tensor | None = None, n: int = 30
) -> list[int]:
    """Return the tokens that contain some text, the most likely first.

    Tokens that are exactly the text, with or without a space before it, come before
    all others. Upper and lower case are equal.

    Args:
        model: the model whose vocabulary is searched.
        query: the text; white space in it may be typed or written as its sign (``␣``).
            ``#`` and a number is the token of that id.
        logits: shape (V,); None ranks by id.
        n: the most tokens to return.

    Example:
        >>> from sampling_lab import load
        >>> model = load("checkpoints/xslm/model.json")
        >>> [model.token_text(token_id) for token_id in search_tokens(model, "E")]
        ['e', 'he', 'the', 'the␣', 'blue']
    """
    sought = visible(query).casefold() if query else ""
    if sought[:1] == "#" and sought[1:].isdecimal():
        token_id = int(sought[1:])
        return [token_id] if token_id < model.card.vocab_size else []
    texts = [text.casefold() for text in model.vocabulary]
    found = [at for at, text in enumerate(texts) if sought in text]
    scores = (torch.zeros(len(texts)) if logits is None else logits.float()).tolist()
    is_other = {
        at: texts[at].removeprefix("␣") != sought.removeprefix("␣") for at in found
    }
    return sorted(found, key=lambda at: (is_other[at], -scores[at], at))[:n]
