"""The interface of a model: token ids in, next-token logits out, prefixes reused."""

from __future__ import annotations

import hashlib
import reprlib
import sys
from abc import ABC, abstractmethod
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, islice, repeat
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, TypeGuard, cast

import torch
from torch import Tensor

from ..errors import PromptError
from ..sampling.one_thread import one_thread
from ..sampling.parameters import PARAMETERS
from ..text import IncrementalDecoder, common_prefix

Message = Mapping[str, str]
"""One chat turn: ``{"role": "system" | "user" | "assistant", "content": text}``."""

Prompt = str | Sequence[int] | Sequence[Message]
"""Text to continue, token ids, or chat messages."""

Prompts = list[str] | Sequence[Sequence[int]] | Sequence[Sequence[Message]]
"""Several prompts, each a text, a list of ids, or a chat."""


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def vocab_size(self) -> int:
        """One more than the highest token id."""
        ...

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        """Return the ids of text.

        The names of special tokens in it are plain characters, or with
        `parse_special` those tokens.
        """
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids; special tokens and unknown ids add nothing."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token; ``b""`` for an id the tokenizer lacks."""
        ...

    def token_text(self, token_id: int) -> str:
        """Return one token made visible; never empty, ``⟨id⟩`` for an unknown id."""
        ...


@dataclass(frozen=True, eq=False)
class ModelCard:
    """The facts about a loaded checkpoint.

    `defaults` are the author's own generation settings: shown and offered, but never
    applied without being asked for, except `starting_params`, with which the command
    line and the explorer begin, and `chat_params` of the format's own chat, with which
    chats begin. `default_prompt` is what the command line continues
    when it is given none. `context_length` is in tokens, or None where the format has
    no limit. `dialect` names the sampling rules that came with the format.
    """

    name: str
    format: str
    parameters: int
    vocab_size: int
    context_length: int | None
    dtype: str
    device: str
    dialect: str
    stop_token_ids: tuple[int, ...] = ()
    bos_token_id: int | None = None
    chat: bool = False
    default_max_new_tokens: int = 64
    defaults: Mapping[str, Any] = field(default_factory=dict)
    starting_params: Mapping[str, Any] = field(default_factory=dict)
    chat_params: Mapping[str, Any] = field(default_factory=dict)
    default_prompt: str | None = None
    files: tuple[Path, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def author_params(self) -> dict[str, Any]:
        """The author's settings as fields of `SamplingParams`; empty without any."""
        if self.defaults.get("do_sample") is False:
            return {"temperature": 0.0}
        return {name: v for name, v in self.defaults.items() if name in PARAMETERS}

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 over the checkpoint's files, in order; None if it has no file."""
        if not self.files:
            return None
        digest = hashlib.sha256()
        for path in self.files:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()

    def summary(self) -> str:
        """Return one line: name, format, sizes, dtype, dialect."""
        context = f"{self.context_length:,}" if self.context_length else "unlimited"
        return (
            f"{self.name} · {self.format} · {_readable(self.parameters)} parameters · "
            f"vocabulary {self.vocab_size:,} · context {context} · {self.dtype} · "
            f"dialect {self.dialect}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the card as strict JSON data, with the digest."""
        hidden = (
            "starting_params",
            "chat_params",
            "default_prompt",
            "default_max_new_tokens",
            "digest",
        )
        plain = {k: v for k, v in vars(self).items() if k not in hidden}
        return {
            **plain,
            "stop_token_ids": list(self.stop_token_ids),
            "defaults": dict(self.defaults),
            "files": [str(path) for path in self.files],
            "details": dict(self.details),
            "sha256": self.digest,
        }


def _readable(count: int) -> str:
    if count < 1_000_000:
        return f"{count:,}"
    if count < 1_000_000_000:
        return f"{count / 1e6:.1f}M"
    return f"{count / 1e9:.2f}B"


def are_several(prompt: object) -> TypeGuard[Prompts]:
    """Tell a list of texts, lists of ids or chats from one prompt."""
    return _is_list(prompt) and any(isinstance(one, Sequence) for one in prompt)


def _is_list(prompt: object) -> TypeGuard[Sequence[object]]:
    """Tell whether a prompt is a list of any kind, NumPy's too, and no text."""
    return not isinstance(prompt, str | bytes | bytearray | Mapping) and hasattr(
        prompt, "__getitem__"
    )


class Prefix:
    """Checked token ids that grow at the end, with a key of constant size.

    The key is a running hash (BLAKE2b, 128 bits) of the ids, so appending a token and
    looking up what a model remembers costs the same for any length.

    Attributes:
        ids: the ids; only `append` changes them.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)
        self._hash = hashlib.blake2b(array("i", self.ids), digest_size=16)

    @property
    def key(self) -> bytes:
        """The hash of the ids so far."""
        return self._hash.digest()

    def append(self, token_id: int) -> None:
        """Add an id of the vocabulary, which is not checked again."""
        self.ids.append(token_id)
        self._hash.update(array("i", [token_id]))


class Model(ABC):
    """A function from a whole prefix of token ids to the next token's logits.

    A caller always passes the whole prefix. Computed logits are remembered by prefix,
    within `memory_bytes` (keys included), so asking again with other sampling
    parameters runs no forward pass. Models are in eval mode, need no gradients and
    leave global random state alone.

    A format implements `_forward`; one with a key/value cache subclasses
    `CachedModel` instead.

    Attributes:
        card: the facts about the checkpoint.
        tokenizer: text to ids and back, or None where only ids can be used.
        parse_special: whether `prompt_ids` reads names of special tokens in text, but
            never in chat messages, as those tokens.
        forward_passes: how many times the network has run.
    """

    def __init__(
        self,
        card: ModelCard,
        tokenizer: Tokenizer | None,
        *,
        memory_bytes: int = 256 << 20,
    ) -> None:
        self.card = card
        self.tokenizer = tokenizer
        self.parse_special = False
        self.forward_passes = 0
        self._memory_bytes = memory_bytes
        self._remembered: OrderedDict[bytes, Tensor] = OrderedDict()

    def logits(self, input_ids: Sequence[int] | Prefix) -> Tensor:
        """Return the next token's logits after `input_ids`.

        Args:
            input_ids: the whole prefix, at least one id, each in [0, V); or what
                `prefix` returned, which is not checked again.

        Returns:
            Float tensor, shape (V,), in the checkpoint's own dtype; a copy.

        Raises:
            PromptError: no ids, or an id outside the vocabulary.
        """
        prefix = self.prefix(input_ids)
        key = prefix.key
        if key in self._remembered:
            self._remembered.move_to_end(key)
        else:
            with torch.inference_mode():
                computed = self._forward(tuple(prefix.ids))
            self.forward_passes += 1
            self._remember(key, computed)
        with one_thread():
            return self._remembered[key].clone()

    def logits_batch(self, rows: Sequence[Sequence[int] | Prefix]) -> Tensor:
        """Return logits, shape (B, V), for B prefixes; each row as if alone.

        A format that can runs the new rows together in one pass; they are
        remembered, so `logits` of any of them afterwards runs none.
        """
        prefixes = [self.prefix(row) for row in rows]
        found = {prefix.key: self._remembered.get(prefix.key) for prefix in prefixes}
        missing = {p.key: tuple(p.ids) for p in prefixes if found[p.key] is None}
        if len(missing) > 1:
            together = self._forward_together([*missing.values()])
            for key, logits in zip(missing, together or (), strict=False):
                found[key] = logits
                self._remember(key, logits)
        known = (found[prefix.key] for prefix in prefixes)
        logits_of_rows = [
            self.logits(prefix) if logits is None else logits
            for prefix, logits in zip(prefixes, known, strict=True)
        ]
        return torch.stack(logits_of_rows)  # (B, V)

    @abstractmethod
    def _forward(self, ids: tuple[int, ...]) -> Tensor:
        """Compute the logits, shape (V,), after a checked prefix."""

    def _forward_together(self, rows: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        """Compute the logits after several different prefixes in one pass.

        None where the format, or these prefixes, allow only one after the other.
        """
        return None

    def reset(self) -> None:
        """Forget every remembered logit and cache, as after a change of weights."""
        self._remembered.clear()

    def budget(self, prompt_length: int, max_new_tokens: int) -> int:
        """Return how many tokens may follow a prompt; the format's context rule.

        The rule here: `prompt_length + max_new_tokens` must fit the context.

        Raises:
            PromptError: it does not fit; both lengths are in the message.
        """
        context = self.card.context_length
        if context is not None and prompt_length + max_new_tokens > context:
            raise PromptError(
                f"prompt ({prompt_length} tokens) + max_new_tokens ({max_new_tokens}) "
                f"must be <= the context of {context}; shorten one of them"
            )
        return max_new_tokens

    def prompt_ids(self, prompt: Prompt) -> list[int]:
        """Return the ids of text, ids, or chat messages.

        Empty text becomes the model's beginning-of-text token where it has one.

        Raises:
            PromptError: empty with no such token; text with no tokenizer; chat
                messages for a model without a chat template; several prompts.
        """
        if isinstance(prompt, str):
            ids = self._text_ids(prompt, parse_special=self.parse_special)
        elif not _is_list(prompt) or are_several(prompt):
            raise PromptError(
                "a prompt must be text, a list of token ids, or a list of chat "
                f"messages, got {reprlib.repr(prompt)}; `generate` takes a list of such"
            )
        elif not len(prompt):
            ids = []
        elif isinstance(prompt[0], Mapping):
            ids = self.chat_ids(cast("Sequence[Message]", prompt))
        else:
            ids = list(self.check_ids(cast("Sequence[int]", prompt)))
        if not ids and self.card.bos_token_id is not None:
            ids = [self.card.bos_token_id]
        if not ids:
            raise PromptError(
                f"the prompt is empty and {self.card.name} has no beginning-of-text "
                "token; give at least one token"
            )
        return ids

    def _text_ids(self, text: str, *, parse_special: bool = False) -> list[int]:
        if self.tokenizer is None:
            raise PromptError(
                f"{self.card.name} has no tokenizer; give token ids, or load it with "
                "tokenizer=NAME_OR_DIRECTORY"
            )
        encode = self.tokenizer.encode
        return encode(text, parse_special=True) if parse_special else encode(text)

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a conversation, ending where the assistant begins."""
        raise PromptError(
            f"{self.card.name} has no chat template; give plain text to continue"
        )

    def token_text(self, token_id: int) -> str:
        """Return one token made visible, or its id where there is no tokenizer."""
        if self.tokenizer is None:
            return f"⟨{token_id}⟩"
        return self.tokenizer.token_text(token_id)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Every token made visible, by id."""
        return tuple(map(self.token_text, range(self.card.vocab_size)))

    def decoder(self, before: Sequence[int] = ()) -> IncrementalDecoder:
        """Return a new decoder of the ids after `before`, whose text they continue.

        Without a tokenizer all text is "".
        """
        if self.tokenizer is None:
            return IncrementalDecoder(lambda ids: "")
        return IncrementalDecoder(self.tokenizer.decode, self._probes, before)

    @cached_property
    def _probes(self) -> tuple[int, ...]:
        """Tokens that can change the text before them: one byte of no character."""
        own = getattr(self.tokenizer, "probes", None)
        if own is not None or self.tokenizer is None:
            return tuple(own or ())
        tokens = map(self.tokenizer.token_bytes, range(self.card.vocab_size))
        strays = (n for n, b in enumerate(tokens) if len(b) == 1 and b >= b"\x80")
        return tuple(islice(strays, 1))

    def prefix(self, input_ids: Sequence[int] | Prefix) -> Prefix:
        """Return checked ids that can grow; a loop passes them to `logits` each step.

        Raises:
            PromptError: as in `logits`.
        """
        if isinstance(input_ids, Prefix):
            return input_ids
        return Prefix(self.check_ids(input_ids))

    def check_ids(
        self, input_ids: Sequence[int], name: str = "token ids"
    ) -> tuple[int, ...]:
        """Return ids as a tuple of ints, or raise `PromptError` naming the bad one."""
        ids = tuple(input_ids)
        if not ids:
            raise PromptError(f"{name} must not be empty; give at least one")
        are_ints = set(map(type, ids)) == {int}
        if are_ints and 0 <= min(ids) and max(ids) < self.card.vocab_size:
            return ids
        return tuple(map(self._check_id, ids, count(), repeat(name)))

    def _check_id(self, token_id: int, position: int, name: str) -> int:
        rule, shown = "integers", repr(token_id)
        if isinstance(token_id, Integral) and not isinstance(token_id, bool):
            if 0 <= token_id < self.card.vocab_size:
                return int(token_id)
            rule, shown = f"in [0, {self.card.vocab_size})", str(token_id)
        raise PromptError(f"{name} must be {rule}, got {shown} at position {position}")

    def _remember(self, key: bytes, logits: Tensor) -> None:
        self._remembered[key] = logits
        room = self._memory_bytes // (logits.nbytes + sys.getsizeof(key))
        while len(self._remembered) > max(1, room):
            self._remembered.popitem(last=False)


class CachedModel(Model):
    """A model with a key/value cache over one path of token ids.

    A new prefix keeps what it shares with the path: the cache is cut back to that
    length if the format can, otherwise dropped. After an error or an interrupt it is
    dropped too, so a half-written cache is never used.
    """

    _path: tuple[int, ...] = ()

    @abstractmethod
    def _extend(self, new_ids: tuple[int, ...], past_length: int) -> Tensor:
        """Run `new_ids` after `past_length` cached ids; return logits, shape (V,)."""

    @abstractmethod
    def _truncate(self, length: int) -> bool:
        """Cut the cache back to `length` tokens (> 0); False if that is impossible."""

    @abstractmethod
    def _clear(self) -> None:
        """Drop the cache."""

    def _end(self, new_ids: tuple[int, ...], past_length: int) -> int:
        """Return how many tokens that makes; `PromptError` if they do not fit."""
        end, context = past_length + len(new_ids), self.card.context_length
        if context is not None and end > context:
            raise PromptError(
                f"{end} tokens do not fit the context of {context}; shorten the prompt"
            )
        return end

    def reset(self) -> None:
        """Forget remembered logits and the cache."""
        super().reset()
        self._drop_path()

    def _drop_path(self) -> None:
        self._path = ()
        self._clear()

    def _forward(self, ids: tuple[int, ...]) -> Tensor:
        shared = min(common_prefix(self._path, ids), len(ids) - 1)
        if shared < len(self._path) and not (shared and self._truncate(shared)):
            self._drop_path()
            shared = 0
        try:
            logits = self._extend(ids[shared:], shared)
        except BaseException:
            self._drop_path()
            raise
        self._path = ids
        return logits
