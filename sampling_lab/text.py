"""Token text: made visible for people, and decoded exactly while it streams."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence

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


class IncrementalDecoder:
    """Decode a growing list of ids so that the pieces join to `decode(all)`.

    Text that a later token could still change is held back: the first bytes of a
    character, and what one of the `probes` would change if it came next, such as the
    text of byte-fallback tokens, which all turn into U+FFFD if the bytes after them
    are not valid UTF-8. At the end `flush` returns the rest.

    Only the ids since a recent token are decoded each time, so the cost of a token
    does not depend on how many came before.

    Args:
        decode: the tokenizer's own ids -> text function.
        probes: tokens that can change the text before them.
        before: ids whose text is known already: the pieces continue it.

    Attributes:
        rewritten: whether the tokenizer has changed text that was already returned.
            The new version then follows the old one, so nothing is lost.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        probes: Sequence[int] = (),
        before: Sequence[int] = (),
    ) -> None:
        self._decode = decode
        self._probes = tuple(probes)
        self._window = list(before)  # the last ids, from which new text is decoded
        self._shown = decode(before) if before else ""  # as far as it was returned
        self.rewritten = False
        self._shorten(self._shown, self._certain(self._shown))

    def push(self, token_id: int) -> str:
        """Add one id and return the text that is now certain, often ``""``."""
        self._window.append(token_id)
        text = self._decode(self._window)
        certain = self._certain(text)
        piece = self._release(certain)
        self._shorten(text, certain)
        return piece

    def flush(self) -> str:
        """Return what was held back."""
        return self._release(self._decode(self._window))

    def _certain(self, text: str) -> str:
        """Return the beginning of the window's text that no next token changes."""
        shared = len(text.rstrip(_INCOMPLETE))
        for probe in self._probes if self._window else ():
            other = self._decode([*self._window, probe])
            shared = min(shared, common_prefix(text, other))
        return text[:shared]

    def _release(self, text: str) -> str:
        shared = common_prefix(self._shown, text)
        if shared == len(text):  # nothing new, or less than was shown for now
            return ""
        self.rewritten |= shared < len(self._shown.rstrip(_INCOMPLETE))
        self._shown = text
        return text[shared:]

    def _shorten(self, text: str, certain: str) -> None:
        """Keep a few ids, whose text shows how the next ones join on."""
        if len(self._window) < _WINDOW or not self._shown == text == certain:
            return
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

    Args:
        stops: the stop strings.
        special: name -> id of tokens without text that they may name, alone or
            beside text.

    >>> matcher = StopMatcher(["beta gamma"])
    >>> [matcher.push(piece) for piece in ("al", "pha be", "ta ga", "mma x")]
    ['al', 'pha ', '', '']
    >>> matcher.stopped
    True
    """

    def __init__(
        self, stops: Sequence[str], special: Mapping[str, int] | None = None
    ) -> None:
        named = [n for n in special or () if any(n in stop for stop in stops)]
        # Decoded text has no surrogates, so one stands for each of these tokens.
        marks = dict(zip(sorted(named, key=len, reverse=True), _MARKS, strict=False))
        self._marks = {(special or {})[name]: mark for name, mark in marks.items()}
        for name, mark in marks.items():
            stops = [stop.replace(name, mark) for stop in stops]
        self._stops = tuple(stops)
        self._held = ""
        self.stopped = False

    def is_special(self, token_id: int) -> bool:
        """Tell whether a stop string names this token, which has no text."""
        return token_id in self._marks

    def push(self, piece: str, special: int | None = None) -> str:
        """Add a piece and return the text before any possible stop string.

        Args:
            piece: the text.
            special: a token that `is_special` and comes after it.
        """
        if self.stopped:
            return ""
        mark = "" if special is None else self._marks[special]
        text = self._held + piece + mark
        hits = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if hits:
            self.stopped, self._held = True, ""
            return self._without_marks(text[: min(hits)])
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return self._without_marks(text[: len(text) - keep])

    def flush(self) -> str:
        """Return what was held back: no stop string came of it."""
        held, self._held = self._held, ""
        return self._without_marks(held)

    def _without_marks(self, text: str) -> str:
        return text.translate({ord(mark): None for mark in self._marks.values()})


_MARKS = [chr(code) for code in range(0xD800, 0xE000)]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest proper beginning of `stop` that ends `text`."""
    longest = min(len(stop) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
