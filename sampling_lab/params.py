"""The sampling parameters: one frozen dataclass, validated in one place."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from . import rules
from .chain import Chain
from .dialects import (
    ADJUSTMENTS,
    CUTS,
    DEFAULT_DIALECT,
    PENALTIES,
    Dialect,
    find_dialect,
)
from .draws import DRAWS, Draw, Greedy
from .errors import ParameterError
from .recipe import build_chain


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
        parts = [_words(self, name) for name in _WORDS if self.is_on(name)]
        if not self.is_greedy:
            parts.append("a fresh seed" if self.seed is None else f"seed {self.seed}")
        if self.draw_method and not self.is_greedy:
            parts.append(f"drawn by {self.draw_method}")
        return ", ".join(parts)

    def effective(self, vocab_size: int) -> dict[str, Any]:
        """Return what really acts on a vocabulary of this size.

        Greedy decoding ignores the cuts and the seed; a top-k at or above the
        vocabulary is off.
        """
        fields = self.to_dict()
        if self.is_greedy:
            ignored = (*CUTS, "xtc_threshold", "seed", "draw_method")
            fields.update(dict.fromkeys(ignored))
        elif self.top_k is not None:
            fields["top_k"] = min(self.top_k, vocab_size)
        if not self.is_on("xtc_probability"):
            fields["xtc_threshold"] = None
        return fields

    def notes(self, vocab_size: int) -> tuple[str, ...]:
        """Return a sentence for every setting that cannot matter, or is borrowed."""
        notes = []
        if self.is_greedy:
            notes.append("temperature is 0 (greedy): the seed has no effect")
            idle = [_label(name) for name in CUTS if self.is_on(name)]
            if idle:
                verb = "has" if len(idle) == 1 else "have"
                notes.append(f"temperature is 0: {', '.join(idle)} {verb} no effect")
        else:
            notes += self._notes_on_cuts(vocab_size)
        if not any(map(self.is_on, PENALTIES)):
            for name in ("penalty_window", "penalize_prompt"):
                if self.is_on(name):
                    notes.append(f"{name} has no effect: no penalty is set")
        return (*notes, *self._notes_on_borrowed())

    def _notes_on_cuts(self, vocab_size: int) -> list[str]:
        notes = []
        if self.top_k is not None and self.top_k > vocab_size:
            notes.append(
                f"top_k {self.top_k} is above the vocabulary: "
                f"the effective k is {vocab_size}"
            )
        if self.xtc_probability and self.xtc_threshold > 0.5:
            notes.append(
                f"xtc_threshold {self.xtc_threshold:g} is above 0.5: no two tokens can "
                "reach it, so XTC has no effect"
            )
        return notes

    def _notes_on_borrowed(self) -> list[str]:
        """Return a sentence for every parameter that the engine itself lacks."""
        names = ADJUSTMENTS if self.is_greedy else (*ADJUSTMENTS, *CUTS)
        return [
            f"{self.rules.name} itself has no {_label(name)}: here it is the lab's own"
            for name in names
            if self.is_on(name) and name in self.rules.lacks
        ]


_OFF = "or None for off"
_RULES: dict[str, rules.Rule] = {
    "temperature": rules.TEMPERATURE,
    "top_k": rules.Whole(f"an integer >= 1, or 0 {_OFF}", off=(0,)),
    "top_p": dataclasses.replace(rules.MASS, off=(1.0,)),
    "min_p": dataclasses.replace(rules.FRACTION, off=(0.0,)),
    "seed": rules.seed,
    "typical_p": dataclasses.replace(rules.MASS, off=(1.0,)),
    "top_n_sigma": rules.Number(f"a number > 0, or 0 {_OFF}", low=0.0, off=(0.0,)),
    "xtc_probability": dataclasses.replace(rules.FRACTION, off=(0.0,)),
    "xtc_threshold": rules.FRACTION,
    "repetition_penalty": dataclasses.replace(rules.POSITIVE, off=(1.0,)),
    "frequency_penalty": dataclasses.replace(rules.FINITE, off=(0.0,)),
    "presence_penalty": dataclasses.replace(rules.FINITE, off=(0.0,)),
    "penalty_window": rules.Whole("an integer >= 1, or None for all", off=(None,)),
    "penalize_prompt": rules.one_of(True, False, None),
    "logit_bias": rules.biases,
    "banned_token_ids": rules.token_ids,
    "no_repeat_ngram_size": rules.Whole(f"an integer >= 1, or 0 {_OFF}", off=(0,)),
    "draw_method": rules.one_of(*DRAWS, None),
}

_WORDS = {
    "temperature": "temperature {:g}",
    "top_k": "top-k {}",
    "top_p": "top-p {:g}",
    "min_p": "min-p {:g}",
    "typical_p": "typical-p {:g}",
    "top_n_sigma": "top-nσ {:g}",
    "xtc_probability": "XTC {:g} above {xtc_threshold:g}",
    "repetition_penalty": "repetition penalty {:g}",
    "frequency_penalty": "frequency penalty {:g}",
    "presence_penalty": "presence penalty {:g}",
    "penalty_window": "penalty window {}",
    "penalize_prompt": "penalize prompt: {}",
    "logit_bias": "logit bias {}",
    "banned_token_ids": "ban {}",
    "no_repeat_ngram_size": "no repeated {}-gram",
}
"""How `describe` says that a parameter is not neutral, in this order."""


def _words(params: SamplingParams, name: str) -> str:
    value = getattr(params, name)
    if name == "logit_bias":
        value = " ".join(f"{token_id}{bias:+g}" for token_id, bias in value)
    elif name == "banned_token_ids":
        value = " ".join(map(str, value))
    elif name == "penalize_prompt":
        value = "yes" if value else "no"
    return _WORDS[name].format(value, xtc_threshold=params.xtc_threshold)


def _label(name: str) -> str:
    """Return a parameter's name as people say it: the first words of `_WORDS`."""
    plain = {"no_repeat_ngram_size": "no-repeat-ngram", "banned_token_ids": "bans"}
    return plain.get(name) or _WORDS[name].split(" {")[0]
