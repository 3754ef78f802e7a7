"""The sampling parameters: one frozen dataclass over the table, validated once."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any

from ..errors import ParameterError
from . import validation
from .chain import Chain
from .dialects import DEFAULT_DIALECT, Dialect, find_dialect
from .draws import DRAWS, Choices, Draw, Greedy
from .history import Guide, History
from .parameters import (
    PARAMETERS,
    SAMPLING_ONLY,
    TRUNCATIONS,
    ParameterTable,
    StepContext,
    format_value,
    stage_order,
)
from .truncation import AtLeast
from .validation import shown

_KEEPING = frozenset(TRUNCATIONS) - {"xtc_probability"}
_DRAWN_WITH = ("seed", "draw_method")
_NOT_DESCRIBED = (*_DRAWN_WITH, "dialect")
_ONLY_SAMPLING = (*SAMPLING_ONLY, *_DRAWN_WITH)


@dataclass(frozen=True)
class SamplingParams(ParameterTable):
    """How the next token is chosen from logits.

    The fields are the rows of `sampling_lab.sampling.parameters`; None is off, or the
    dialect's own way.

    Raises:
        ParameterError: a value outside its rule; names the rule and the value.

    Example:
        >>> SamplingParams(temperature=0.5, top_p=0.8).describe()
        'temperature 0.5, top-p 0.8, seed 0'

    """

    def __post_init__(self) -> None:
        """Validate every field and give each "off" its one spelling."""
        for name, parameter in PARAMETERS.items():
            value = getattr(self, name)
            clean = None if self._is_out(name, value) else parameter.rule(name, value)
            object.__setattr__(self, name, clean)
        # Where the dialect is the model's own, its rule is applied by `resolve`.
        is_open = self.dialect is None or self.rules.any_seed
        if not (is_open and self.draw_method in (None, "choices")):
            validation.seed("seed", self.seed)

    def _is_out(self, name: str, value: Any) -> bool:
        """Return whether a number is outside those that act in the dialect."""
        bounds = self.rules.acts_within.get(name)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return bool(bounds and is_number and (value <= bounds[0] or value > bounds[1]))

    def replace(self, **changes: Any) -> SamplingParams:
        """Return a copy with some fields changed, validated again."""
        for name in changes:
            if name not in PARAMETERS:
                raise _unknown(name)
        return dataclasses.replace(self, **changes)

    def under(self, own: str, /, **changes: Any) -> SamplingParams:
        """Return a copy with changes, by the rules of a model's own dialect.

        A dialect among the changes, or set before, goes first. The copy names no other
        one, so it still follows any model's own.
        """
        named = changes.get("dialect", self.dialect)
        checked = self.replace(**{**changes, "dialect": named or own})
        return checked.replace(dialect=named)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as strict JSON data; `SamplingParams(**data)` is equal."""
        return {name: _plain(value) for name, value in vars(self).items()}

    def resolve(self, dialect: str) -> SamplingParams:
        """Return a copy that leaves nothing open: a dialect, and a seed."""
        seed = secrets.randbits(32) if self.seed is None else self.seed
        own = dialect if self.dialect is None else self.dialect
        return self.replace(dialect=own, seed=seed)

    @property
    def is_greedy(self) -> bool:
        """Whether the highest logit is always taken and the seed has no effect."""
        return self.temperature == 0.0

    @property
    def rules(self) -> Dialect:
        """The dialect's rules."""
        return find_dialect(DEFAULT_DIALECT if self.dialect is None else self.dialect)

    def is_on(self, name: str) -> bool:
        """Return whether a parameter differs from neutral."""
        try:
            return bool(getattr(self, name) != PARAMETERS[name].neutral)
        except (KeyError, TypeError, AttributeError):
            raise _unknown(name) from None

    @property
    def stage_names(self) -> tuple[str, ...]:
        """The parameters whose stages act, in the dialect's order.

        Neutral ones do not, and at temperature 0 no truncation does: greedy decoding
        takes the highest logit after penalties, biases and bans. A dynamic temperature
        takes the place of the fixed one.
        """
        left_out = SAMPLING_ONLY if self.is_greedy else ()
        if self.dynatemp_range and not self.is_greedy:
            left_out = ("temperature",)
        if self.mirostat and not self.is_greedy:
            left_out = (*left_out, *self.rules.without_mirostat)
        return tuple(
            name
            for name in stage_order(self.rules)
            if self.is_on(name) and name not in left_out
        )

    @property
    def needs_history(self) -> bool:
        """Whether the chain depends on earlier tokens, or on which step it is."""
        return any(PARAMETERS[name].per_step for name in self.stage_names)

    def chain(
        self,
        token_ids: Sequence[int] = (),
        prompt_length: int = 0,
        stop_token_ids: Sequence[int] = (),
        surprises: Sequence[float] = (),
        guide: Guide | None = None,
    ) -> Chain:
        """Return the chain of stages in the dialect's order.

        The arguments are the fields of `History`; they count where `needs_history`.
        """
        history = History(token_ids, prompt_length, stop_token_ids, surprises, guide)
        stages = []
        for name in self.stage_names:
            at = StepContext(name, vars(self), self.rules, history)
            if make := PARAMETERS[name].stage:
                stage: Any = make(getattr(self, name), at)
                if variant := self.rules.variants.get(name):
                    stage = dataclasses.replace(stage, **variant)
                if self.min_tokens_to_keep > 1 and name in _KEEPING:
                    stage = AtLeast(stage, self.min_tokens_to_keep)
                stages.append(stage)
        return Chain(tuple(stages))

    def draw(self) -> Draw:
        """Return the dialect's draw, or the one asked for, freshly seeded.

        Raises:
            ParameterError: the seed is still None, which `resolve` draws, or outside
                [0, 2**64) for another draw than `Choices`.
        """
        if self.is_greedy:
            return Greedy(0)
        if self.seed is None:
            raise ParameterError("seed must be an integer to draw, got None")
        draw = DRAWS[self.draw_method or self.rules.draw]
        if draw is not Choices:
            validation.seed("seed", self.seed)
        return draw(self.seed)

    def differences(self) -> list[str]:
        """Return what differs from neutral, each as `describe` writes it.

        >>> SamplingParams(temperature=0.8, top_k=5).differences()
        ['temperature 0.8', 'top-k 5']
        """
        names = (name for name in PARAMETERS if name not in _NOT_DESCRIBED)
        return [self._setting(name) for name in names if self.is_on(name)]

    def describe(self) -> str:
        """Return what differs from neutral, and the seed unless greedy, as text.

        `parse_settings` reads it back.
        """
        parts = self.differences()
        if not self.is_greedy:
            parts.append(self._setting("seed"))
            if self.draw_method:
                parts.append(self._setting("draw_method"))
        return ", ".join(parts)

    def _setting(self, name: str) -> str:
        return f"{PARAMETERS[name].label} {format_value(name, getattr(self, name))}"

    def effective(self, vocab_size: int) -> dict[str, Any]:
        """Return what really acts on a vocabulary of this size.

        Greedy decoding ignores truncations and the seed; a top-k at or above the
        vocabulary is off.
        """
        fields = self.to_dict()
        if self.is_greedy:
            fields.update(dict.fromkeys(_ONLY_SAMPLING))
        elif self.top_k is not None:
            fields["top_k"] = min(self.top_k, vocab_size)
        for name, parameter in PARAMETERS.items():
            if parameter.of and fields[parameter.of] is None:
                fields[name] = None
        return fields


def _unknown(name: Any) -> ParameterError:
    near = get_close_matches(str(name)[:40], PARAMETERS, 1) or ["help(SamplingParams)"]
    return ParameterError(
        f"there is no sampling parameter {shown(name)}; see {near[0]}"
    )


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


if SamplingParams.__doc__:  # python -OO leaves none
    SamplingParams.__doc__ = SamplingParams.__doc__.replace(
        "    Raises:",
        "    Args:\n"
        + "".join(f"        {p.name}: {p.help}.\n" for p in PARAMETERS.values())
        + "\n    Raises:",
        1,
    )
