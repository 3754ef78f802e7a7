"""Token text: made visible for people, and decoded exactly while it streams."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

_VISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥", "\u00a0": "⍽", "\u200b": "\\u200b"}
_INCOMPLETE = "\ufffd"
_OBEYED = {"Cc", "Cs", "Zl", "Zp"}
_REORDERING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    r"""Return `text` with white space and control characters made visible.

    A space is ``␣``, a line feed ``⏎``, a tab ``⇥``; every other character that
    `str.isprintable` rejects is written as its Python escape, so that no terminal
    or page obeys it. The empty string is ``∅``, so nothing is ever blank.

    >>> visible(" warm\n"), visible("\x1b[31m"), visible("")
    ('␣warm⏎', '\\x1b[31m', '∅')
    """
    return "".join(map(_visible_character, text)) or "∅"


def _visible_character(character: str) -> str:
    if character in _VISIBLE:
        return _VISIBLE[character]
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def terminal(text: str) -> str:
    r"""Return `text` for a terminal: what it would obey is written as an escape.

    Line feed and tab pass; other control characters, lone surrogates, and what breaks
    or reorders lines do not. It works character by character, so a stream may be cut
    anywhere.

    >>> terminal("warm\n\x1b[2J\r")
    'warm\n\\x1b[2J\\r'
    """
    return "".join(map(_terminal_character, text))


def _terminal_character(character: str) -> str:
    if character in "\n\t":
        return character
    is_obeyed = unicodedata.category(character) in _OBEYED
    if is_obeyed or character in _REORDERING:
        return character.encode("unicode_escape").decode("ascii")
    return character


def visible_bytes(data: bytes) -> str:
    r"""Return a token's bytes as visible text, or as hex if they are not whole UTF-8.

    >>> visible_bytes(b" hi"), visible_bytes(b"\xf0\x9f")
    ('␣hi', '⟨f0 9f⟩')
    """
    try:
        return visible(data.decode("utf-8"))
    except UnicodeDecodeError:
        return f"⟨{data.hex(' ')}⟩"


def counted(count: int, name: str, plural: str = "s") -> str:
    """Return a number with its noun.

    >>> counted(1, "token"), counted(2000, "forward pass", "es")
    ('1 token', '2,000 forward passes')
    """
    return f"{count:,} {name}{'' if count == 1 else plural}"


class IncrementalDecoder:
    """Decode a growing list of ids so that the pieces join to `decode(all)`.

    Text that a later token could still change is held back: the first bytes of a
    character, and with a `stray_byte` also the text of byte-fallback tokens, which
    all turn into U+FFFD if the bytes after them are not valid UTF-8. At the end
    `flush` returns the rest.

    Only the ids since a recent token are decoded each time, so the cost of a token
    does not depend on how many came before. If a tokenizer rewrites text that was
    already returned, the new version follows it, so nothing is lost.

    Args:
        decode: the tokenizer's own ids -> text function.
        stray_byte: a token of one byte that is no character (0x80 to 0xFF), in a
            vocabulary that has one.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], stray_byte: int | None = None
    ) -> None:
        self._decode = decode
        self._stray = [] if stray_byte is None else [stray_byte]
        self._window: list[int] = []  # the last ids, from which new text is decoded
        self._shown = ""  # the window's text as far as it was returned

    def push(self, token_id: int) -> str:
        """Add one id and return the text that is now certain, often ``""``."""
        self._window.append(token_id)
        text = certain = self._decode(self._window)
        if self._stray:
            worst = self._decode(self._window + self._stray)
            certain = text[: common_prefix(text, worst)]
        piece = self._release(certain.rstrip(_INCOMPLETE))
        if len(self._window) >= _WINDOW and self._shown == text:
            self._shorten()
        return piece

    def flush(self) -> str:
        """Return what was held back."""
        return self._release(self._decode(self._window))

    def _release(self, text: str) -> str:
        shared = common_prefix(self._shown, text)
        if shared == len(text):  # nothing new, or less than was shown for now
            return ""
        self._shown = text
        return text[shared:]

    def _shorten(self) -> None:
        """Keep a few ids, whose text shows how the next ones join on."""
        last = self._window[-_CONTEXT:]
        # Special tokens have no text; the first id then stands for the text before.
        for window in (last, [self._window[0], *last]):
            if shown := self._decode(window):
                self._window, self._shown = window, shown
                return


_CONTEXT = 8
_WINDOW = 3 * _CONTEXT
"""A window of this many ids is shortened to the context, once all of it is shown."""


def common_prefix(a: Sequence[int] | str, b: Sequence[int] | str) -> int:
    """Return how many items two sequences of one type share from their beginning.

    By bisection over slices, which are compared without a loop in Python.

    >>> common_prefix("walking", "walked"), common_prefix((1, 2), (1, 2, 3))
    (4, 2)
    """
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:  # equal up to `low`, different before `high`
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


class StopMatcher:
    """Cut a stream of text pieces at the first stop string, wherever it is split.

    Text that could still become a stop string is held back, so nothing of the stop
    string is ever shown. With several stop strings the earliest match wins.

    >>> matcher = StopMatcher(["beta gamma"])
    >>> [matcher.push(piece) for piece in ("al", "pha be", "ta ga", "mma x")]
    ['al', 'pha ', '', '']
    >>> matcher.stopped
    True
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.stopped = False

    def push(self, piece: str) -> str:
        """Add a piece and return the text before any possible stop string."""
        if self.stopped:
            return ""
        text = self._held + piece
        hits = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if hits:
            self.stopped, self._held = True, ""
            return text[: min(hits)]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """Return what was held back: no stop string came of it."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest proper beginning of `stop` that ends `text`."""
    longest = min(len(stop) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
