"""The sampling parameters: one frozen dataclass, validated in one place."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from ..snippets import as_code
from . import notes, validation
from .chain import Chain
from .dialects import DEFAULT_DIALECT, PENALTIES, TRUNCATIONS, Dialect, find_dialect
from .draws import DRAWS, Draw, Greedy
from .recipe import build_chain

if TYPE_CHECKING:
    from ..models.base import Prompt


@dataclass(frozen=True)
class SamplingParams:
    """How the next token is chosen from logits.

    None is off, or the dialect's own way; the value in brackets is taken for it too.

    Args:
        temperature: >= 0; 1 leaves the logits, 0 is greedy.
        top_k: keep the k highest logits, an integer >= 1 (0).
        top_p: keep the nucleus of this mass, in (0, 1] (1).
        min_p: keep tokens this fraction as likely as the most likely one, in
            [0, 1] (0).
        seed: an integer in [0, 2**64); None draws one, which results report.
        dialect: a name in `sampling_lab.dialects.DIALECTS`; None is the model's own.
        typical_p: keep the tokens nearest the entropy, to this mass, in (0, 1] (1).
        top_n_sigma: keep logits within so many deviations of the highest, > 0 (0).
        xtc_probability: how often XTC removes the top choices, in [0, 1] (0).
        xtc_threshold: the probability that makes a token a top choice, in [0, 1].
        repetition_penalty: divides the logits of tokens said before, > 0 (1).
        frequency_penalty: is subtracted once for each time a token was said (0).
        presence_penalty: is subtracted once if a token was said at all (0).
        penalty_window: the penalties count the last so many tokens, an integer >= 1.
        penalize_prompt: whether the prompt counts as said; None is the engine's way.
        logit_bias: a mapping of token ids to numbers that are added to their logits.
        banned_token_ids: tokens that are never drawn.
        no_repeat_ngram_size: no n-gram is said twice, an integer >= 1 (0).
        draw_method: "choices", "race" or "keyed"; None is the dialect's own.

    Raises:
        ParameterError: a value outside its rule; names the rule and the value.

    Example:
        >>> SamplingParams(temperature=0.5, top_p=0.8).describe()
        'temperature 0.5, top-p 0.8, seed 0'
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = 0
    dialect: str | None = None
    _: KW_ONLY
    typical_p: float | None = None
    top_n_sigma: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float = 0.1
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    penalty_window: int | None = None
    penalize_prompt: bool | None = None
    logit_bias: Mapping[int, float] | Sequence[tuple[int, float]] | None = None
    banned_token_ids: Sequence[int] | None = None
    no_repeat_ngram_size: int | None = None
    draw_method: str | None = None

    def __post_init__(self) -> None:
        """Validate every field and give each "off" its one spelling."""
        for name, rule in _RULES.items():
            object.__setattr__(self, name, rule(name, getattr(self, name)))
        if self.dialect is not None:
            find_dialect(self.dialect)

    def replace(self, **changes: Any) -> SamplingParams:
        """Return a copy with some fields changed, validated again."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise ParameterError(
                    f"there is no sampling parameter {name!r}; there are "
                    + ", ".join(known)
                )
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as strict JSON data; `SamplingParams(**data)` is equal."""
        fields = dict(vars(self))
        if self.logit_bias:
            fields["logit_bias"] = [list(pair) for pair in self.logit_bias]
        if self.banned_token_ids:
            fields["banned_token_ids"] = list(self.banned_token_ids)
        return fields

    def resolve(self, dialect: str) -> SamplingParams:
        """Return a copy that leaves nothing open: a dialect, and a seed."""
        seed = secrets.randbits(32) if self.seed is None else self.seed
        return self.replace(dialect=self.dialect or dialect, seed=seed)

    @property
    def is_greedy(self) -> bool:
        """Whether the highest logit is always taken and the seed has no effect."""
        return self.temperature == 0.0

    @property
    def needs_history(self) -> bool:
        """Whether the chain depends on what was said, or on which step it is."""
        names = (*PENALTIES, "no_repeat_ngram_size")
        tosses = self.is_on("xtc_probability") and not self.is_greedy
        return tosses or any(map(self.is_on, names))

    @property
    def rules(self) -> Dialect:
        """The dialect's rules."""
        return find_dialect(self.dialect or DEFAULT_DIALECT)

    def is_on(self, name: str) -> bool:
        """Return whether a parameter differs from neutral."""
        return getattr(self, name) != (1.0 if name == "temperature" else None)

    def chain(self, token_ids: Sequence[int] = (), prompt_length: int = 0) -> Chain:
        """Return the chain of stages, in the dialect's order, without neutral ones.

        Greedy decoding needs none of the cuts: it takes the highest logit after the
        penalties, biases and bans.

        Args:
            token_ids: the prompt and what was generated after it; counts where
                `needs_history`.
            prompt_length: how many of them are the prompt.
        """
        return build_chain(self, token_ids, prompt_length)

    def draw(self) -> Draw:
        """Return the dialect's draw, or the one asked for, freshly seeded.

        Raises:
            ParameterError: the seed is still None; `resolve` draws one.
        """
        if self.is_greedy:
            return Greedy(0)
        if self.seed is None:
            raise ParameterError("seed must be an integer to draw, got None")
        return DRAWS[self.draw_method or self.rules.draw](self.seed)

    def describe(self) -> str:
        """Return in words what differs from neutral, and the seed where it counts."""
        return notes.describe(self)

    def effective(self, vocab_size: int) -> dict[str, Any]:
        """Return what really acts on a vocabulary of this size.

        Greedy decoding ignores the cuts and the seed; a top-k at or above the
        vocabulary is off.
        """
        fields = self.to_dict()
        if self.is_greedy:
            ignored = (*TRUNCATIONS, "xtc_threshold", "seed", "draw_method")
            fields.update(dict.fromkeys(ignored))
        elif self.top_k is not None:
            fields["top_k"] = min(self.top_k, vocab_size)
        if not self.is_on("xtc_probability"):
            fields["xtc_threshold"] = None
        return fields

    def notes(self, vocab_size: int) -> tuple[str, ...]:
        """Return a sentence for every setting that cannot matter, or is borrowed."""
        return notes.notes(self, vocab_size)

    def as_code(
        self,
        target: str = "sampling_lab",
        *,
        prompt: Prompt = "Once upon a time",
        checkpoint: str = "checkpoints/xslm/model.json",
        max_new_tokens: int | None = 64,
        stop_token_ids: Sequence[int] | None = None,
    ) -> str:
        """Return code to paste that does the same; see `sampling_lab.as_code`.

        Args:
            target: "sampling_lab", "transformers", "vllm", "llama.cpp" or "cli".
            prompt: text, token ids or chat messages.
            checkpoint: a path or a hub name.
            max_new_tokens: how many tokens at most; None is each engine's default.
            stop_token_ids: the ids that end a reply; None is the model's own.
        """
        return as_code(
            self,
            target,
            prompt=prompt,
            checkpoint=checkpoint,
            max_new_tokens=max_new_tokens,
            stop_token_ids=stop_token_ids,
        )


_OFF = "or None for off"
_RULES: dict[str, validation.Rule] = {
    "temperature": validation.TEMPERATURE,
    "top_k": validation.Integer(f"an integer >= 1, or 0 {_OFF}", off=(0,)),
    "top_p": dataclasses.replace(validation.PROBABILITY, off=(1.0,)),
    "min_p": dataclasses.replace(validation.FRACTION, off=(0.0,)),
    "seed": validation.seed,
    "typical_p": dataclasses.replace(validation.PROBABILITY, off=(1.0,)),
    "top_n_sigma": validation.Number(f"a number > 0, or 0 {_OFF}", low=0.0, off=(0.0,)),
    "xtc_probability": dataclasses.replace(validation.FRACTION, off=(0.0,)),
    "xtc_threshold": validation.FRACTION,
    "repetition_penalty": dataclasses.replace(validation.POSITIVE, off=(1.0,)),
    "frequency_penalty": dataclasses.replace(validation.FINITE, off=(0.0,)),
    "presence_penalty": dataclasses.replace(validation.FINITE, off=(0.0,)),
    "penalty_window": validation.Integer(
        "an integer >= 1, or None for all", off=(None,)
    ),
    "penalize_prompt": validation.one_of(True, False, None),
    "logit_bias": validation.biases,
    "banned_token_ids": validation.token_ids,
    "no_repeat_ngram_size": validation.Integer(
        f"an integer >= 1, or 0 {_OFF}", off=(0,)
    ),
    "draw_method": validation.one_of(*DRAWS, None),
}
