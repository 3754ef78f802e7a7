"""The sampling parameters: one frozen dataclass, validated in one place."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import rules
from .chain import Chain
from .dialects import DEFAULT_DIALECT, Dialect, find_dialect
from .draws import DRAWS, Draw, Greedy
from .errors import ParameterError
from .stages import MinP, Stage, Temperature, TopK, TopP

_TOP_K_OR_OFF = "an integer >= 1, or 0 or None for off"


@dataclass(frozen=True)
class SamplingParams:
    """How the next token is chosen from logits.

    Args:
        temperature: >= 0; 1 leaves the logits, 0 is greedy.
        top_k: keep the k highest logits, an integer >= 1; None or 0 is off.
        top_p: keep the nucleus of this mass, in (0, 1]; None or 1 is off.
        min_p: keep tokens this fraction as likely as the most likely one, in
            [0, 1]; None or 0 is off.
        seed: an integer in [0, 2**64); None draws one, which results report.
        dialect: a name in `sampling_lab.dialects.DIALECTS`; None is the model's own.

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

    def __post_init__(self) -> None:
        """Validate every field and give each "off" its one spelling."""
        for name, validate in _RULES.items():
            object.__setattr__(self, name, validate(name, getattr(self, name)))
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
        """Return the fields as strict JSON data."""
        return dataclasses.asdict(self)

    def resolve(self, dialect: str) -> SamplingParams:
        """Return a copy that leaves nothing open: a dialect, and a seed."""
        seed = secrets.randbits(32) if self.seed is None else self.seed
        return self.replace(dialect=self.dialect or dialect, seed=seed)

    @property
    def is_greedy(self) -> bool:
        """Whether the highest logit is always taken and the seed has no effect."""
        return self.temperature == 0.0

    @property
    def rules(self) -> Dialect:
        """The dialect's rules."""
        return find_dialect(self.dialect or DEFAULT_DIALECT)

    def chain(self) -> Chain:
        """Return the chain of stages, in the dialect's order, without neutral ones.

        Greedy decoding needs none of the cuts: they never remove the highest logit.
        """
        order = ("temperature",) if self.is_greedy else self.rules.order
        stages = (self._stage(name) for name in order)
        return Chain(tuple(stage for stage in stages if stage is not None))

    def draw(self) -> Draw:
        """Return the dialect's draw, freshly seeded.

        Raises:
            ParameterError: the seed is still None; `resolve` draws one.
        """
        if self.is_greedy:
            return Greedy(0)
        if self.seed is None:
            raise ParameterError("seed must be an integer to draw, got None")
        return DRAWS[self.rules.draw](self.seed)

    def describe(self) -> str:
        """Return in words what differs from neutral, and the seed where it counts."""
        parts = [
            f"{name.replace('_', '-')} {value:g}"
            for name in ("temperature", "top_k", "top_p", "min_p")
            if (value := getattr(self, name)) not in (None, _neutral(name))
        ]
        if not self.is_greedy:
            parts.append("a fresh seed" if self.seed is None else f"seed {self.seed}")
        return ", ".join(parts)

    def effective(self, vocab_size: int) -> dict[str, Any]:
        """Return what really acts on a vocabulary of this size.

        Greedy decoding ignores the cuts and the seed; a top-k at or above the
        vocabulary is off.
        """
        fields = self.to_dict()
        if self.is_greedy:
            return {
                **dict.fromkeys(fields),
                "temperature": 0.0,
                "dialect": self.dialect,
            }
        if self.top_k is not None:
            fields["top_k"] = min(self.top_k, vocab_size)
        return fields

    def notes(self, vocab_size: int) -> tuple[str, ...]:
        """Return a sentence for every setting that cannot matter here."""
        notes = []
        if self.is_greedy:
            notes.append("temperature is 0 (greedy): the seed has no effect")
        elif self.top_k is not None and self.top_k > vocab_size:
            notes.append(
                f"top_k {self.top_k} is above the vocabulary: "
                f"the effective k is {vocab_size}"
            )
        return tuple(notes)

    def _stage(self, name: str) -> Stage | None:
        value, rules = getattr(self, name), self.rules
        if value in (None, _neutral(name)):
            return None
        stages: dict[str, Callable[[], Stage]] = {
            "temperature": lambda: Temperature(value, shifted=rules.shifted),
            "top_k": lambda: TopK(value, ties=rules.ties),
            "top_p": lambda: TopP(value, rule=rules.nucleus),
            "min_p": lambda: MinP(value),
        }
        return stages[name]()


def _neutral(name: str) -> float | None:
    return 1.0 if name == "temperature" else None


_RULES: dict[str, rules.Rule] = {
    "temperature": rules.TEMPERATURE,
    "top_k": dataclasses.replace(rules.TOP_K, rule=_TOP_K_OR_OFF, off=(0,)),
    "top_p": dataclasses.replace(rules.TOP_P, off=(1.0,)),
    "min_p": dataclasses.replace(rules.MIN_P, off=(0.0,)),
    "seed": rules.seed,
}
