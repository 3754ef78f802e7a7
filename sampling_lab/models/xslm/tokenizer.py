r"""The toy model's tokenizer: byte-pair encoding, stored in the model's file.

Text is first cut into chunks that merges never cross: a newline alone, or a word
with one space after it. Inside a chunk the merges apply in the order in which they
were learned, each from left to right. The ids are the characters in order, then one
token for each merge, unless the file has another order.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from ...errors import CheckpointError, ParameterError
from ...text import visible

NEWLINE = "\n"
UNKNOWN = "\ufffd"

# Half characters, which JSON can spell and UTF-8 cannot.
_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))
_CHUNK = re.compile(r"\n|[^\n ]* |[^\n ]+")
_NAMED = re.compile(r"<[\w|/-]+>")


class UnknownCharacterWarning(UserWarning):
    """A prompt has a character that the vocabulary lacks; it became �."""


class BPE:
    r"""Text to ids and back by learned merges; all text is plain text.

    Args:
        characters: the single-character tokens in the order of their ids; newline
            and � are among them.
        merges: pairs of tokens in the order learned, also as "a b"; each makes one new
            token.
        vocab: the same tokens in another order of ids, and others in <angle brackets>,
            which no text becomes.

    Raises:
        CheckpointError: the arguments do not make a vocabulary.

    Example:
        >>> bpe = BPE("\n�A: ", [(":", " "), ("A", ": ")])
        >>> bpe.encode("A: "), bpe.encode("A:")
        ([6], [2, 3])
    """

    def __init__(
        self,
        characters: str,
        merges: Iterable[Sequence[str]],
        vocab: Sequence[str] = (),
    ) -> None:
        self.characters = _checked_characters(characters)
        self.merges: list[tuple[str, str]] = []
        self.tokens = list(self.characters)
        self._ids = {token: token_id for token_id, token in enumerate(self.tokens)}
        for merge in merges:
            self._add_merge(merge)
        if vocab and list(vocab) != self.tokens:
            self._reorder(vocab)

    @classmethod
    def learn(cls, text: str, vocab_size: int) -> BPE:
        """Return the tokenizer of `vocab_size` tokens that `text` teaches.

        Every step merges the pair of neighbours that is most frequent inside chunks;
        of equally frequent ones, the pair met first. It ends early when no pair is
        left.

        Raises:
            ParameterError: the characters alone are more than `vocab_size`.
        """
        bpe = cls(
            NEWLINE + UNKNOWN + "".join(sorted(set(text) - {NEWLINE, UNKNOWN})), []
        )
        if bpe.vocab_size > vocab_size:
            raise ParameterError(
                f"the text must use at most {vocab_size - 2} different characters "
                f"other than the newline, got {bpe.vocab_size - 2}"
            )
        chunks = [list(chunk) for chunk in _CHUNK.findall(text)]
        while bpe.vocab_size < vocab_size and (pair := bpe._best_pair(chunks)):
            bpe._add_merge(pair)
            chunks = [_apply_merge(chunk, pair) for chunk in chunks]
        return bpe

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    @property
    def newline_id(self) -> int:
        """The id of the newline, at which an answer ends."""
        return self._ids[NEWLINE]

    @property
    def unknown_id(self) -> int:
        """The id of �, which stands for every character the vocabulary lacks."""
        return self._ids[UNKNOWN]

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; a character without a token becomes �.

        Warns:
            UnknownCharacterWarning: naming the first such character and its position.
        """
        self._warn_of_unknown(text)
        return [
            self._ids.get(token, self.unknown_id)
            for chunk in _CHUNK.findall(text)
            for token in self._split(chunk)
        ]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the tokens' texts joined; unknown ids add nothing."""
        return "".join(map(self._text, token_ids))

    def token_bytes(self, token_id: int) -> bytes:
        """Return one token's text in UTF-8; ``b""`` for an unknown id."""
        return self._text(token_id).encode("utf-8")

    def token_text(self, token_id: int) -> str:
        """Return one token's text made visible; ``⟨id⟩`` for an unknown id."""
        text = self._text(token_id)
        return visible(text) if text else f"⟨{token_id}⟩"

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that make this tokenizer again."""
        arguments: dict[str, Any] = {
            "characters": self.characters,
            "merges": [list(merge) for merge in self.merges],
        }
        made = [*self.characters, *map("".join, self.merges)]
        return arguments if self.tokens == made else {**arguments, "vocab": self.tokens}

    def _text(self, token_id: int) -> str:
        return self.tokens[token_id] if 0 <= token_id < self.vocab_size else ""

    def _split(self, chunk: str) -> list[str]:
        tokens = list(chunk)
        for pair in self.merges:
            tokens = _apply_merge(tokens, pair)
        return tokens

    def _warn_of_unknown(self, text: str) -> None:
        lacking = [at for at, sign in enumerate(text) if sign not in self._ids]
        if not lacking:
            return
        more = f", and so do {len(lacking) - 1} more" if len(lacking) > 1 else ""
        warnings.warn(
            f"character {text[lacking[0]]!r} at position {lacking[0]} is not among the "
            f"{self.vocab_size} tokens and becomes {UNKNOWN}{more}",
            UnknownCharacterWarning,
            stacklevel=3,
        )

    def _add_merge(self, merge: Any) -> None:
        pair = self._pair(merge)
        if pair is None:
            raise CheckpointError(
                f"merge {len(self.merges)} must be a pair of earlier tokens, "
                f"got {str(merge)[:80]}"
            )
        joined = "".join(pair)
        if not self._is_new(joined) or not _CHUNK.fullmatch(joined):
            raise CheckpointError(
                f"merge {len(self.merges)} must make a new token without newline or "
                f"{UNKNOWN}, and with a space only at its end, got {joined[:80]!r}"
            )
        self.merges.append(pair)
        self._ids[joined] = len(self.tokens)
        self.tokens.append(joined)

    def _pair(self, merge: Any) -> tuple[str, str] | None:
        """Return the only pair of known tokens that a list or an "a b" can mean."""
        ways = [merge] if isinstance(merge, list | tuple) else []
        if isinstance(merge, str):
            spaces = [at for at, sign in enumerate(merge) if sign == " "]
            ways = [(merge[:at], merge[at + 1 :]) for at in spaces]
        pairs = [(way[0], way[1]) for way in ways if self._knows_pair(way)]
        return pairs[0] if len(pairs) == 1 else None

    def _knows_pair(self, parts: Sequence[Any]) -> bool:
        return len(parts) == 2 and all(
            isinstance(part, str) and part in self._ids for part in parts
        )

    def _reorder(self, vocab: Sequence[str]) -> None:
        """Give the tokens the ids of their places in `vocab`."""
        counts = Counter(vocab)
        others = [t for t in counts if t not in self._ids and not _NAMED.fullmatch(t)]
        lacking = [token for token in self.tokens if token not in counts]
        if odd := lacking or others or [t for t in counts if counts[t] > 1]:
            raise CheckpointError(
                "the vocabulary must hold each character and merged token once, and "
                f"others only in <brackets>; look at {odd[0][:40]!r}"
            )
        self.tokens = list(vocab)
        self._ids = {token: token_id for token_id, token in enumerate(vocab)}

    def _best_pair(self, chunks: list[list[str]]) -> tuple[str, str] | None:
        counts = Counter(
            pair
            for chunk in chunks
            for pair in pairwise(chunk)
            if self._is_new("".join(pair))
        )
        return max(counts, key=counts.__getitem__, default=None)

    def _is_new(self, joined: str) -> bool:
        return not (joined in self._ids or NEWLINE in joined or UNKNOWN in joined)


def _checked_characters(characters: Any) -> str:
    if not isinstance(characters, str):
        raise CheckpointError(
            f"characters must be a string, got {type(characters).__name__}"
        )
    whole = set(characters) - _SURROGATES
    if len(whole) < len(characters) or not {NEWLINE, UNKNOWN} <= whole:
        raise CheckpointError(
            f"characters must hold newline, {UNKNOWN}, no character twice and no half "
            f"of a surrogate pair, got {characters[:80]!r}"
        )
    return characters


def _apply_merge(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    """Join every neighbouring `pair`, from left to right."""
    merged: list[str] = []
    for token in tokens:
        # A token just joined is longer than the pair's left part: no double use.
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return merged
