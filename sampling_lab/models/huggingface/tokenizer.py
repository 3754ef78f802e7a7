"""A Hugging Face tokenizer with the lab's interface."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CheckpointError, PromptError
from ...text import visible_bytes
from ..base import Message
from ..byte_level import byte_of_character
from ..checks import first_sentence
from .quiet import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SPACE = "▁"  # how SentencePiece writes a space


class HfTokenizer:
    """Text to ids as in `transformers`, except that no text acts as a control token.

    `encode` returns the ids of ``tokenizer(text)``, including any token that the
    tokenizer puts around a text (often a beginning-of-text token), but the name of a
    special token inside the text is only characters. The wrapped tokenizer's settings
    stay as they were.

    Args:
        wrapped: the tokenizer of `transformers`.
        bare: put nothing around a text (`add_special_tokens=False`).

    Attributes:
        wrapped: the tokenizer of `transformers`.
        vocab_size: one more than its highest id.
        eos_token_id: its end-of-text id, or None.
        bos_token_id: its beginning-of-text id, or None.
    """

    def __init__(self, wrapped: PreTrainedTokenizerBase, *, bare: bool = False) -> None:
        self.wrapped = wrapped
        self._bare = bare
        self._pieces = {index: piece for piece, index in wrapped.get_vocab().items()}
        self.vocab_size = max(self._pieces, default=-1) + 1
        self.eos_token_id: int | None = wrapped.eos_token_id
        self.bos_token_id: int | None = wrapped.bos_token_id

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        """Return the ids of text; with `parse_special`, those of `transformers`."""
        encoded = self.wrapped(
            text,
            add_special_tokens=not self._bare,
            split_special_tokens=not parse_special,
            verbose=False,
        )
        return list(encoded["input_ids"])

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids; special tokens and unknown ids add nothing."""
        known = [int(token_id) for token_id in token_ids if token_id in self._pieces]
        text = self.wrapped.decode(
            known, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return str(text)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token; ``b""`` for an id the tokenizer lacks.

        A token that begins a word includes the space before it, in byte-level,
        SentencePiece and WordPiece vocabularies.
        """
        piece = self._pieces.get(token_id)
        if piece is None:
            return b""
        if token_id in self._added:
            return self._added[token_id].encode()
        return self._piece_bytes(piece)

    def token_text(self, token_id: int) -> str:
        """Return one token made visible; never empty, ``⟨id⟩`` for an unknown id."""
        if token_id not in self._pieces:
            return f"⟨{token_id}⟩"
        return visible_bytes(self.token_bytes(token_id))

    @property
    def has_chat_template(self) -> bool:
        """Whether the author gave a template for conversations."""
        return bool(self.wrapped.chat_template)

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a conversation, ending where the assistant begins.

        Control tokens come from the author's template alone: their names inside a
        message are encoded as plain text.

        Raises:
            PromptError: no template, a message that is not a role with its content,
                or a conversation that the template refuses.
        """
        from jinja2 import TemplateError

        if not self.has_chat_template:
            raise PromptError(
                "this tokenizer has no chat template; give plain text to continue"
            )
        turns = [_checked(message) for message in messages]
        try:
            encoded: Any = self.wrapped.apply_chat_template(
                turns,
                add_generation_prompt=True,
                sanitize_control_tokens=True,
                tokenizer_kwargs={"verbose": False},
            )
        except (TemplateError, ValueError, TypeError) as error:
            raise PromptError(_refusal(turns, error)) from error
        return list(encoded["input_ids"])

    @cached_property
    def _added(self) -> dict[int, str]:
        """Tokens that are not in the vocabulary's spelling: id -> text."""
        decoder = self.wrapped.added_tokens_decoder
        return {index: token.content for index, token in decoder.items()}

    @cached_property
    def _piece_bytes(self) -> Callable[[str], bytes]:
        kinds = self._kinds()
        if "ByteLevel" in kinds:
            return _byte_level
        if "WordPiece" in kinds:
            return _word_piece
        spells_spaces = any(p.startswith(_SPACE) for p in self._pieces.values())
        if kinds & {"Metaspace", "ByteFallback"} or spells_spaces:
            return _sentence_piece
        return str.encode

    def _kinds(self) -> set[str]:
        """Names of the steps by which the tokenizer turns pieces into text."""
        backend = getattr(self.wrapped, "backend_tokenizer", None)
        if backend is None:
            return {"ByteLevel"} if hasattr(self.wrapped, "byte_decoder") else set()
        parts = (backend.decoder, backend.pre_tokenizer)
        return {kind for part in parts if part for kind in _types(part)}


def load_tokenizer(
    source: str | Path,
    *,
    revision: str | None = None,
    local_files_only: bool = False,
    trust_remote_code: bool = False,
    bare: bool = False,
) -> HfTokenizer:
    """Load a tokenizer from a directory, or from the hub by its name.

    Args:
        source: a directory with tokenizer files, or ``organisation/name``.
        revision: a hub branch, tag or commit.
        local_files_only: never ask the hub, use only what was downloaded before.
        trust_remote_code: allow the hub author's own code to run.
        bare: as in `HfTokenizer`.

    Raises:
        CheckpointError: no tokenizer there, or one that cannot be read.
    """
    from transformers import AutoTokenizer

    local = Path(source).is_dir()
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(
                str(source),
                revision=revision or "main",
                local_files_only=local or local_files_only,
                trust_remote_code=trust_remote_code,
            )
    except Exception as error:  # many tokenizer classes, each with its own errors
        where = Path(source).absolute() if local else source
        raise CheckpointError(
            f"tokenizer cannot be read from {where}: {first_sentence(error)}"
        ) from error
    return HfTokenizer(tokenizer, bare=bare)


def _checked(message: Message) -> dict[str, str]:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not isinstance(content, str):
        raise PromptError(
            "a chat message must be {'role': text, 'content': text}, "
            f"got {dict(message)!r}"
        )
    return {"role": role, "content": content}


def _refusal(turns: Sequence[Message], error: Exception) -> str:
    roles = ", ".join(turn["role"] for turn in turns)
    hint = "give plain text instead"
    if any(turn["role"] == "system" for turn in turns):
        hint = "leave the system message out, or put its text into the user's"
    return (
        f"the chat template refuses the roles {roles}: {first_sentence(error)}; {hint}"
    )


def _types(part: Any) -> list[str]:
    """Names of a step of the tokenizer and of the steps inside it."""
    try:
        state = json.loads(part.__getstate__())
    except Exception:  # a step written in Python has no state to show
        return [type(part).__name__]
    inside = state.get("decoders") or state.get("pretokenizers") or []
    return [state["type"], *(step["type"] for step in inside)]


def _byte_level(piece: str) -> bytes:
    table = byte_of_character()
    if not all(character in table for character in piece):
        return piece.encode()
    return bytes(table[character] for character in piece)


def _sentence_piece(piece: str) -> bytes:
    if byte := re.fullmatch("<0x([0-9A-Fa-f]{2})>", piece):
        return bytes.fromhex(byte[1])
    return piece.replace(_SPACE, " ").encode()


def _word_piece(piece: str) -> bytes:
    return piece[2:].encode() if piece.startswith("##") else f" {piece}".encode()
