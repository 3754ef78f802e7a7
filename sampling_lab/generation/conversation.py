"""A conversation with a model: the turns, and those that fit the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PromptError
from ..models.base import Model
from ..sampling.params import SamplingParams
from . import saved_json
from .loop import Run, stream
from .results import Generation


@dataclass(frozen=True)
class Turn:
    """A person's text and the reply that was generated."""

    text: str
    reply: Generation


class Conversation:
    """The turns so far, and the settings of the next reply.

    Args:
        model: what `load` gave; it needs a chat template, unless `raw`.
        system: the system message, which stays when old turns are dropped.
        raw: continue each text as it is, without a template or earlier turns.
        remembers: whether earlier turns are part of the prompt.
        params: the sampling parameters; None is `SamplingParams(seed=None)`.
        max_new_tokens: the most tokens of a reply; None is the model's default.
        stop: a reply ends before any of these texts.
        stop_token_ids: ids that end a reply; None is the model's own.

    Attributes:
        ends: `stop` and `stop_token_ids`, as `stream` takes them.
        turns: all turns, also those no longer in the prompt.
        dropped: how many of the oldest turns did not fit the latest prompt.

    Raises:
        PromptError: a model without a chat template or a tokenizer.
    """

    def __init__(
        self,
        model: Model,
        *,
        system: str | None = None,
        raw: bool = False,
        remembers: bool = True,
        params: SamplingParams | None = None,
        max_new_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        stop_token_ids: Sequence[int] | None = None,
    ) -> None:
        if not raw and not model.card.chat:
            raise PromptError(
                f"{model.card.name} has no chat template; use --raw to continue text"
            )
        if model.tokenizer is None:
            raise PromptError(f"{model.card.name} has no tokenizer to talk with")
        self.model = model
        self.system = system
        self.raw = raw
        self.remembers = remembers and not raw
        self.params = params or SamplingParams(seed=None)
        default = model.card.default_max_new_tokens
        self.max_new_tokens = default if max_new_tokens is None else max_new_tokens
        self.ends: dict[str, Any] = {"stop": stop, "stop_token_ids": stop_token_ids}
        self.turns: list[Turn] = []
        self.dropped = 0

    def start(self, text: str) -> Run:
        """Start the reply to `text`; `keep` adds it to the turns.

        The oldest turns are left out of the prompt until a quarter of the context, or
        `max_new_tokens` if that is less, is free. A reply that is still too long for
        the model's context rule is shortened.

        Raises:
            PromptError: the text alone does not fit, or cannot be encoded.
        """
        ids, limit = self._prompt_ids(text), self.max_new_tokens
        try:
            self.model.budget(len(ids), limit)
        except PromptError:
            limit = max(1, (self.model.card.context_length or 0) - len(ids))
        return stream(self.model, ids, self.params, max_new_tokens=limit, **self.ends)

    def keep(self, text: str, reply: Generation) -> bool:
        """Add a turn, unless the reply was cut off before its first token."""
        has_reply = bool(reply.token_ids) or reply.finish_reason == "stop"
        if has_reply:
            self.turns.append(Turn(text, reply))
        return has_reply

    def is_cut(self, reply: Generation) -> bool:
        """Return whether a reply ended because the context was full."""
        is_short = reply.max_new_tokens < self.max_new_tokens
        return reply.finish_reason == "context" or (
            reply.finish_reason == "length" and is_short
        )

    def messages(self, text: str | None = None, skip: int = 0) -> list[dict[str, str]]:
        """Return the system message, all turns but the first `skip`, and `text`."""
        messages = []
        if self.system:
            messages.append({"role": "system", "content": self.system})
        for turn in self.turns[skip:]:
            messages.append({"role": "user", "content": turn.text})
            messages.append({"role": "assistant", "content": self._said(turn)})
        if text is not None:
            messages.append({"role": "user", "content": text})
        return messages

    def _said(self, turn: Turn) -> str:
        """Return a reply without the space that only joins it to its prompt."""
        text, words = turn.reply.text, self.model.tokenizer
        if self.raw or words is None:
            return text
        spaces = text[: len(text) - len(text.lstrip(" "))]
        has_own = words.decode(turn.reply.token_ids).startswith(spaces)
        return text if has_own else text[1:]

    def to_dict(self) -> dict[str, Any]:
        """Return all messages, with everything needed to generate the replies again."""
        return {
            "model": self.model.card.to_dict(),
            "raw": self.raw,
            "messages": self.messages(),
            "replies": [turn.reply.to_dict() for turn in self.turns],
        }

    def save(self, path: Path) -> None:
        """Write `to_dict` as a JSON file, whole or not at all."""
        saved_json.write(path, self.to_dict(), indent=1)

    def _prompt_ids(self, text: str) -> list[int]:
        """Return the ids of `text` after as many of the latest turns as fit."""
        if self.raw:
            return self.model.prompt_ids(text)
        context = self.model.card.context_length
        room = min(self.max_new_tokens, max(1, (context or 0) // 4))
        first = 0 if self.remembers else len(self.turns)
        for skip in range(first, len(self.turns) + 1):
            ids = self.model.prompt_ids(self.messages(text, skip))
            if context is None or len(ids) + room <= context:
                break
        self.dropped = skip - first
        return ids
