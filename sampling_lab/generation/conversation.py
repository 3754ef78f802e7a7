"""Talk with a model: what was said, what of it fits the context, and the command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import PromptError

if TYPE_CHECKING:
    from ..models.base import Model
    from ..sampling.params import SamplingParams
    from .loop import Run
    from .results import Generation

_ROOM = 4  # a quarter of the context is kept free for a reply


@dataclass(frozen=True)
class Turn:
    """What a person said, and the reply as it was generated."""

    text: str
    reply: Generation


class Conversation:
    """The turns so far, and how the next reply is drawn.

    Args:
        model: what `load` gave; one with a chat template, unless `raw`.
        system: the system message, which stays when old turns are dropped.
        raw: continue each text as it is, without a template and without memory.
        remembers: whether earlier turns are part of the prompt.
        params: the sampling parameters; None is `SamplingParams(seed=None)`.
        max_new_tokens: the most of a reply; None is the model's own default.

    Attributes:
        turns: all of them, dropped ones too.
        dropped: how many of the oldest did not fit the latest prompt.

    Raises:
        PromptError: the model cannot be talked with like this; says what can.
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
    ) -> None:
        from ..sampling.params import SamplingParams

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
        own = model.card.default_max_new_tokens
        self.max_new_tokens = own if max_new_tokens is None else max_new_tokens
        self.turns: list[Turn] = []
        self.dropped = 0

    def start(self, text: str) -> Run:
        """Start the reply to `text`; `keep` makes a turn of it.

        Whole oldest turns are left out of the prompt until a quarter of the context,
        or `max_new_tokens` where that is less, is free. What the model's context rule
        does not allow, the reply is shortened by.

        Raises:
            PromptError: the text alone does not fit, or cannot be encoded.
        """
        from .loop import stream

        ids = self._prompt_ids(text)
        limit = self._limit(len(ids))
        return stream(self.model, ids, self.params, max_new_tokens=limit)

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
        """Return the chat messages of all turns but the first `skip`, then `text`."""
        messages = []
        if self.system:
            messages.append({"role": "system", "content": self.system})
        for turn in self.turns[skip:]:
            messages.append({"role": "user", "content": turn.text})
            messages.append({"role": "assistant", "content": turn.reply.text})
        if text is not None:
            messages.append({"role": "user", "content": text})
        return messages

    def to_dict(self) -> dict[str, Any]:
        """Return everything that was said, with what is needed to draw it again."""
        return {
            "model": self.model.card.to_dict(),
            "raw": self.raw,
            "messages": self.messages(),
            "replies": [turn.reply.to_dict() for turn in self.turns],
        }

    def save(self, path: Path) -> None:
        """Write `to_dict` as a JSON file, whole or not at all."""
        from . import saved_json

        saved_json.write(path, self.to_dict(), indent=1)

    def _prompt_ids(self, text: str) -> list[int]:
        """Return the ids of as many of the latest turns as fit, and of `text`."""
        if self.raw:
            return self.model.prompt_ids(text)
        context = self.model.card.context_length
        first = 0 if self.remembers else len(self.turns)
        for skip in range(first, len(self.turns) + 1):
            ids = self.model.prompt_ids(self.messages(text, skip))
            if context is None or len(ids) + self._room(context) <= context:
                break
        self.dropped = skip - first
        return ids

    def _room(self, context: int) -> int:
        return min(self.max_new_tokens, max(1, context // _ROOM))

    def _limit(self, length: int) -> int:
        """Return `max_new_tokens`, shortened where the model would refuse it."""
        try:
            self.model.budget(length, self.max_new_tokens)
        except PromptError:
            return max(1, (self.model.card.context_length or 0) - length)
        return self.max_new_tokens
