"""What code to paste is to do, and what an engine would do otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..sampling.dialects import find_dialect
from ..sampling.notes import label
from ..sampling.parameters import (
    ADJUSTMENTS,
    PARAMETERS,
    PENALTIES,
    SAMPLING_ONLY,
    missing,
)

if TYPE_CHECKING:
    from ..models.base import Prompt
    from ..sampling.params import SamplingParams


@dataclass(frozen=True)
class Request:
    """What the code is to do; the fields are the arguments of `as_code`."""

    params: SamplingParams
    prompt: Prompt
    checkpoint: str
    max_new_tokens: int | None
    stop_token_ids: tuple[int, ...] | None

    @property
    def is_chat(self) -> bool:
        """Whether the prompt is messages."""
        return not self.is_text and isinstance(self.prompt[0], Mapping)

    @property
    def is_text(self) -> bool:
        """Whether the prompt is text; otherwise it is token ids or messages."""
        return isinstance(self.prompt, str)

    def settings(self, engine: str) -> dict[str, Any]:
        """Return the parameters that are on and that an engine has, with options."""
        lacks = missing(find_dialect(engine))
        names = [name for name in _acting(self.params) if name not in lacks]
        options = (n for n, p in PARAMETERS.items() if p.of in names)
        names += filter(self.params.is_on, options)
        return {name: getattr(self.params, name) for name in names}

    def caveats(self, engine: str) -> str:
        """Return a comment for everything that the engine will do otherwise."""
        return "".join(f"# {line}\n" for line in _caveats(self.params, engine))


def given(params: SamplingParams) -> list[tuple[str, Any]]:
    """Return the fields that differ from their defaults, as a user would write them."""
    return [
        (name, dict(value) if name == "logit_bias" else value)
        for name, value in vars(params).items()
        if params.is_on(name)
    ]


def _acting(params: SamplingParams) -> list[str]:
    """Return the penalties, biases and truncations that are on and not idle."""
    names = ADJUSTMENTS if params.is_greedy else (*ADJUSTMENTS, *SAMPLING_ONLY)
    return list(filter(params.is_on, names))


def _caveats(params: SamplingParams, engine: str) -> Iterator[str]:
    """Say what the engine does otherwise than the lab with these parameters."""
    rules = find_dialect(engine)
    lacks = missing(rules)
    for name in _acting(params):
        if name in lacks:
            yield f"{engine} has no {label(name)}: left out"
    penalties = [n for n in PENALTIES if params.is_on(n) and n not in lacks]
    if penalties and params.penalty_window and engine != "llama.cpp":
        yield f"{engine} has no penalty window: all tokens count"
    if params.is_on("min_tokens_to_keep") and engine != "llama.cpp":
        yield f"{engine} has no {label('min_tokens_to_keep')}: left out"
    if params.dry_multiplier and params.dry_sequence_breakers and engine == "llama.cpp":
        yield "llama.cpp takes the breakers of DRY as text: left out"
    asked = params.penalize_prompt
    if asked is not None and any(
        asked != (name not in rules.ignores_prompt) for name in penalties
    ):
        does = "counts" if not asked else "does not count"
        yield f"{engine} {does} the prompt for {', '.join(map(label, penalties))}"
    if params.dialect not in (None, engine):
        yield (
            f"these are the rules of {params.dialect}; {engine} has its own order, "
            "ties, nucleus and draw"
        )
    if not params.is_greedy and params.draw_method not in (None, rules.draw):
        yield f"the lab draws by {params.draw_method}, {engine} in its own way"
