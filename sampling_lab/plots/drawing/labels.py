"""Token labels that any font set up by matplotlib can draw, none of them blank."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from ...sampling.validation import rule_error
from ...text import visible

FONT = "DejaVu Sans"
"""It comes with matplotlib, so a picture is the same on every machine."""

Tokens = Callable[[int], str] | Sequence[str] | None
"""Token texts: a function of the id, a list by id, or None to show the ids."""


REST = "everything else"
"""The name of all tokens that are not shown one by one."""


def token_text(tokens: Tokens, token_id: int | None) -> str:
    """Return a token's whole text, visible; None is everything else.

    >>> token_text([" warm"], 0), token_text(None, 7)
    ('␣warm', '⟨7⟩')
    """
    if token_id is None:
        return REST
    if tokens is None:
        return f"⟨{token_id}⟩"
    try:
        text = tokens(token_id) if callable(tokens) else tokens[token_id]
    except (LookupError, TypeError):
        text = None
    if not isinstance(text, str):
        raise rule_error("tokens", f"able to tell the text of token {token_id}", tokens)
    return visible(text)


def token_label(tokens: Tokens, token_id: int | None, *, width: int = 18) -> str:
    """Return a token's text, visible, drawable and at most `width` characters long.

    >>> token_label([" warm", "$x_$"], 0), token_label(None, 7)
    ('␣warm', '⟨7⟩')
    """
    text = token_text(tokens, token_id)
    return text if token_id is None else shorten(drawable(text), width)


def shorten(label: str, width: int) -> str:
    """Return `label` with its middle replaced by … where it is too long.

    >>> shorten("internationalisation", 11)
    'inter…ation'
    """
    if len(label) <= width:
        return label
    tail = (width - 1) // 2
    return f"{label[: width - 1 - tail]}…{label[len(label) - tail :]}"


@lru_cache(maxsize=4096)
def drawable(text: str) -> str:
    r"""Return `text` made visible, with what the font lacks as its code point.

    >>> drawable("né\n"), drawable("中")
    ('né⏎', '\\u4e2d')
    """
    return "".join(map(_drawable_character, visible(text)))


@lru_cache(maxsize=4096)
def _drawable_character(character: str) -> str:
    """Return a character or its escape; a lone accent would be drawn over nothing."""
    if unicodedata.combining(character) or not _glyph(character):
        return character.encode("unicode_escape").decode("ascii")
    return character


def _glyph(character: str) -> int:
    return get_font(findfont(FontProperties(family=FONT))).get_char_index(
        ord(character)
    )
