"""How a generation looks in a notebook: each token shaded by its surprisal."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Generation, Step

_FULL_SHADE_BITS = 10.0


def surprisal(step: Step) -> float:
    """Return -log2 of a step's raw probability: bits, 0 for a certain token."""
    return abs(math.log2(step.raw_prob)) if step.raw_prob > 0 else math.inf


def generation_html(generation: Generation) -> str:
    """Return the new text as HTML, shaded by surprisal; token text is escaped.

    The shade is a translucent orange, so the page's own text colour stays legible
    on it in light and dark themes; its depth is surprisal up to 10 bits.
    """
    tokens = "".join(map(_token_html, generation.steps)) or "<i>empty</i>"
    details = " · ".join(
        [
            f"{len(generation.token_ids)} tokens",
            generation.finish_reason,
            generation.params.describe(),
            *generation.notes,
        ]
    )
    return (
        '<div style="line-height:1.9"><div style="white-space:pre-wrap;'
        f'font-family:monospace">{tokens}</div>'
        f"<small>{html.escape(details)}</small></div>"
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
        'border-radius:3px;padding:2px 1px;margin-right:1px">'
        f"{html.escape(step.token_text)}</span>{break_after}"
    )
