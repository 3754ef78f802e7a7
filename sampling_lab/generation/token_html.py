"""Tokens as HTML chips: a generation in a notebook, shaded by surprisal."""

from __future__ import annotations

import html
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Generation, Step

_FULL_SHADE_BITS = 10.0
_MARKS = ("␣", "⏎", "⇥")


def generation_html(generation: Generation) -> str:
    """Return the new text as HTML, shaded by surprisal; token text is escaped."""
    details = " · ".join(
        [
            f"{len(generation.token_ids)} tokens",
            generation.finish_reason,
            generation.params.describe(),
            *generation.notes,
        ]
    )
    return (
        f'<div style="line-height:1.9">{tokens_html(generation.steps)}'
        f"<small>{html.escape(details)}</small></div>"
    )


def tokens_html(steps: Iterable[Step]) -> str:
    """Return tokens as HTML chips, in order.

    The shade is a translucent orange, so that the page's own text colour stays legible
    on it in light and dark themes; its depth is surprisal up to 10 bits.
    """
    tokens = "<wbr>".join(map(_shaded_chip, steps)) or "<i>empty</i>"
    return (
        '<div style="white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;'
        f'font-family:monospace;font-size:14px">{tokens}</div>'
    )


def token_facts(step: Step) -> str:
    """Return a token's id, probabilities, rank and surprisal in one line."""
    return (
        f"id {step.token_id} · raw {step.raw_prob:.3f} · final {step.final_prob:.3f} "
        f"· rank {step.rank} · {step.surprisal:.1f} bits"
    )


def token_chip(step: Step, attributes: str, faint: str = "s") -> str:
    """Return a token as a `<span>` with its facts as tooltip; its text is escaped.

    Args:
        step: the step that drew it.
        attributes: the span's other attributes.
        faint: the tag (with attributes) around signs for white space.
    """
    breaks = "\n" in step.text
    return _chip(step.token_text, token_facts(step), attributes, faint, breaks)


def _shaded_chip(step: Step) -> str:
    shade = 0.08 + 0.62 * min(step.surprisal, _FULL_SHADE_BITS) / _FULL_SHADE_BITS
    style = (
        f'style="background:rgba(230,126,34,{shade:.2f});'
        'border-radius:3px;padding:2px 0;margin-right:1px"'
    )
    return token_chip(step, style, 'span style="opacity:.4"')


@lru_cache(20_000)  # a table of runs shows all its chips again at every token
def _chip(text: str, title: str, attributes: str, faint: str, breaks: bool) -> str:
    shown, end = html.escape(text), faint.partition(" ")[0]
    for mark in _MARKS:
        shown = shown.replace(mark, f"<{faint}>{mark}</{end}>")
    return f'<span title="{title}" {attributes}>{shown}</span>' + "<br>" * breaks
