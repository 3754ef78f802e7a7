"""A Hugging Face tokenizer with the lab's interface."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CheckpointError, PromptError
from ...text import visible_bytes
from ..base import Message
from ..byte_level import byte_of_character
from ..checks import first_sentence, listed
from .quiet import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Special tokens around thoughts; channels need the names of their messages too.
_THOUGHTS = r"think|thought|reason|channel"
_CHANNELS = r"^<\|(channel|message|start|end)\|>$"


class HfTokenizer:
    """Text to ids as in `transformers`, except that no text acts as a control token.

    `encode` returns the ids of ``tokenizer(text)``, including any token that the
    tokenizer puts around a text (often a beginning-of-text token), but the name of a
    special token inside the text is only characters. The wrapped tokenizer's settings
    stay as they were.

    Attributes:
        wrapped: the tokenizer of `transformers`.
        vocab_size: one more than its highest id.
        eos_token_id: its end-of-text id, or None.
        bos_token_id: its beginning-of-text id, or None.
    """

    def __init__(self, wrapped: PreTrainedTokenizerBase) -> None:
        self.wrapped = wrapped
        self._pieces = {index: piece for piece, index in wrapped.get_vocab().items()}
        self.vocab_size = max(self._pieces, default=-1) + 1
        self.eos_token_id: int | None = wrapped.eos_token_id
        self.bos_token_id: int | None = wrapped.bos_token_id
        self._template = _template_name(wrapped.chat_template)

    def encode(self, text: str) -> list[int]:
        """Return the ids of plain text: special tokens in it are just characters."""
        with _without_dropout(self.wrapped):
            encoded = self.wrapped(text, split_special_tokens=True, verbose=False)
        return list(encoded["input_ids"])

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids; special tokens and unknown ids add nothing.

        Tokens around a model's thoughts, such as ``<think>``, are part of the text
        even where they are special, so that thoughts stay apart from the answer.
        """
        silent = self._silent
        ids = [int(n) for n in token_ids if n in self._pieces and n not in silent]
        return str(self.wrapped.decode(ids, clean_up_tokenization_spaces=False))

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """Name -> id of the tokens that add no text."""
        return {self._added.get(n, self._pieces[n]): n for n in sorted(self._silent)}

    @cached_property
    def _silent(self) -> frozenset[int]:
        decoder = self.wrapped.added_tokens_decoder
        special = {index for index, token in decoder.items() if token.special}
        special |= {*self.wrapped.all_special_ids} & self._pieces.keys()
        names = {
            index: self._added.get(index, self._pieces[index]) for index in special
        }
        marks = re.compile(_THOUGHTS, re.IGNORECASE)
        if "<|channel|>" in names.values():
            marks = re.compile(_CHANNELS)
        return frozenset(n for n, name in names.items() if not marks.search(name))

    @cached_property
    def probes(self) -> tuple[int, ...]:
        """Tokens that can change the text before them: a stray byte, a word's end."""
        stray = next((n for n, p in self._pieces.items() if p == "<0x80>"), None)
        word = next((n for n, p in self._pieces.items() if p.isalnum()), None)
        probes = (stray, word if self._joins == _word_goes_on else None)
        return tuple(probe for probe in probes if probe is not None)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token; ``b""`` for an id the tokenizer lacks.

        They are what the token adds to a text inside a word or after one, so a token
        that begins a word includes the space before it, and one that ends a word (in
        GPT-1's vocabulary) the space after it.
        """
        piece = self._pieces.get(token_id)
        if piece is None:
            return b""
        if token_id in self._silent:
            return self._added.get(token_id, piece).encode()
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

    @cached_property
    def turn_end_id(self) -> int | None:
        """The token with which the chat template closes an assistant's turn."""
        said = "qwertz"
        turns = [
            {"role": role, "content": [_part(text)] if self._takes_parts else text}
            for role, text in (("user", "hello"), ("assistant", said))
        ]
        try:
            text = self._render(turns, False)
            after = text.partition(said)[2].strip()
            first = self.wrapped(after, add_special_tokens=False)["input_ids"][0]
        except Exception:  # a template may refuse anything, or close nothing
            return None
        return int(first) if first in self.wrapped.added_tokens_decoder else None

    @cached_property
    def _takes_parts(self) -> bool:
        """Whether the template wants a message's content as a list of parts."""
        said = "qwertz"
        for content, in_parts in ((said, False), ([_part(said)], True)):
            try:
                if said in self._render([{"role": "user", "content": content}], True):
                    return in_parts
            except Exception:  # of one kind of content; chat_ids reports it
                continue
        return False

    def _render(self, turns: list[Any], open_turn: bool, **options: Any) -> Any:
        return self.wrapped.apply_chat_template(
            turns,
            chat_template=self._template,
            add_generation_prompt=open_turn,
            **{"tokenize": False, **options},
        )

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a conversation, ending where the assistant begins.

        Control tokens come from the author's template alone: their names inside a
        message are encoded as plain text.

        Raises:
            PromptError: no template, a message that is not a role with its content,
                or a conversation that the template refuses.
        """
        if not self.has_chat_template:
            raise PromptError(
                "this tokenizer has no chat template; give plain text to continue"
            )
        turns = [_checked(message) for message in messages]
        parts = [{**turn, "content": [_part(turn["content"])]} for turn in turns]
        options: dict[str, Any] = {"tokenize": True, "sanitize_control_tokens": True}
        options["tokenizer_kwargs"] = {"verbose": False}
        try:
            with _without_dropout(self.wrapped):
                given = parts if self._takes_parts else turns
                encoded = self._render(given, True, **options)
        except Exception as error:  # a template is a program that can fail in any way
            raise PromptError(_refusal(turns, error)) from error
        return list(encoded["input_ids"])

    @cached_property
    def _added(self) -> dict[int, str]:
        """Tokens that are not in the vocabulary's spelling: id -> text."""
        decoder = self.wrapped.added_tokens_decoder
        return {index: token.content for index, token in decoder.items()}

    @cached_property
    def _piece_bytes(self) -> Callable[[str], bytes]:
        if "ByteLevel" in self._kinds():
            return _byte_level
        if hasattr(self.wrapped, "_utf_vocab_size"):  # ByT5: a character for a byte
            return partial(str.encode, encoding="latin-1", errors="replace")
        if self._joins is not None:
            return self._joins
        return self._in_a_text

    @cached_property
    def _joins(self) -> Callable[[str], bytes] | None:
        """How a vocabulary marks the ends of words in its pieces, if it does."""
        pieces = self._pieces.values()
        if any(piece.endswith("</w>") for piece in pieces):
            return _word_ends
        goes_on = not self.wrapped.is_fast and any(p.endswith("@@") for p in pieces)
        return _word_goes_on if goes_on else None

    def _in_a_text(self, piece: str) -> bytes:
        """Return what the tokenizer's own decoder makes of a piece after another."""
        text = self.wrapped.convert_tokens_to_string(["a", piece])
        byte = re.fullmatch("<0x([0-9A-Fa-f]{2})>", piece)
        if byte and text != f"a{piece}":
            return bytes.fromhex(byte[1])
        return (text[1:] if text[:1] == "a" else piece).encode()

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
) -> HfTokenizer:
    """Load a tokenizer from a directory, or from the hub by its name.

    Args:
        source: a directory with tokenizer files, or ``organisation/name``.
        revision: a hub branch, tag or commit.
        local_files_only: never ask the hub, use only what was downloaded before.
        trust_remote_code: allow the hub author's own code to run.

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
            own = Path(source) / "chat_template.json"  # from older processors
            if tokenizer.chat_template is None and own.is_file():
                template = json.loads(own.read_text("utf-8"))["chat_template"]
                tokenizer.chat_template = template
    except Exception as error:  # many tokenizer classes, each with its own errors
        where = Path(source).absolute() if local else source
        raise CheckpointError(
            f"no tokenizer could be read from {where}: {first_sentence(error)}"
        ) from error
    return HfTokenizer(tokenizer)


def _template_name(templates: Any) -> str | None:
    """Return the name of the template to use, where an author gave several."""
    if not isinstance(templates, dict) or "default" in templates:
        return None
    if len(templates) == 1:
        return str(*templates)
    raise CheckpointError(
        f"the tokenizer has the chat templates {listed(sorted(templates))} but none "
        "is named default; rename the one to use"
    )


@contextmanager
def _without_dropout(tokenizer: Any) -> Iterator[None]:
    """Switch off what makes encoding random, as in training, and on again."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    model: Any = getattr(backend, "model", None)
    dropout = getattr(model, "dropout", None)
    if dropout is None:
        yield
        return
    model.dropout = None
    try:
        yield
    finally:
        model.dropout = dropout


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


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


def _word_ends(piece: str) -> bytes:
    return piece.replace("</w>", " ").encode()


def _word_goes_on(piece: str) -> bytes:
    return (piece[:-2] if piece.endswith("@@") else f"{piece} ").encode()
