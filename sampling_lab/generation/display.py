"""How generated tokens look in a notebook: each one shaded by its surprisal."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Generation, Step

_FULL_SHADE_BITS = 10.0
_MARKS = ("␣", "⏎", "⇥")


def surprisal(step: Step) -> float:
    """Return -log2 of a step's raw probability: bits, 0 for a certain token."""
    return abs(math.log2(step.raw_prob)) if step.raw_prob > 0 else math.inf


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

    The shade is a translucent orange, so the page's own text colour stays legible
    on it in light and dark themes; its depth is surprisal up to 10 bits.
    """
    tokens = "<wbr>".join(map(_token_html, steps)) or "<i>empty</i>"
    return (
        '<div style="white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;'
        f'font-family:monospace;font-size:14px">{tokens}</div>'
    )


def _token_html(step: Step) -> str:
    bits = surprisal(step)
    shade = 0.08 + 0.62 * min(bits, _FULL_SHADE_BITS) / _FULL_SHADE_BITS
    title = (
        f"id {step.token_id} · raw {step.raw_prob:.3f} · final {step.final_prob:.3f} "
        f"· rank {step.rank} · {bits:.1f} bits"
    )
    break_after = "<br>" if "\n" in step.text else ""
    return (
        f'<span title="{title}" style="background:rgba(230,126,34,{shade:.2f});'
        'border-radius:3px;padding:2px 0;margin-right:1px">'
        f"{_faint_marks(html.escape(step.token_text))}</span>{break_after}"
    )


def _faint_marks(text: str) -> str:
    """Let the signs for white space step back behind the letters."""
    for mark in _MARKS:
        text = text.replace(mark, f'<span style="opacity:.4">{mark}</span>')
    return text
