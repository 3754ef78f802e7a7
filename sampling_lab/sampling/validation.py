"""The rules of parameter values: each validates one and returns its one spelling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from ..errors import ParameterError

Rule = Callable[[str, Any], Any]
"""Takes a name and a value, returns the clean value or raises `ParameterError`."""

SEED_LIMIT = 2**64

_MOST_SHOWN = 120
_MOST_BITS = 256


def rule_error(name: str, rule: str, value: Any) -> ParameterError:
    """Return the error for a value outside its rule."""
    return ParameterError(f"{name} must be {rule}, got {shown(value)}")


def shown(value: Any) -> str:
    """Return a value for a message: on one line, and not endless."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length():,} bits"
    text = " ".join(repr(value).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


@dataclass(frozen=True)
class Number:
    """A finite real number within bounds; bools and strings are rejected.

    Attributes:
        rule: the rule in words, for the message.
        low: the smallest value allowed, or None.
        high: the largest one.
        open_low: whether `low` itself is outside.
        off: values that mean off, and become None.
    """

    rule: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    off: tuple[float | None, ...] = ()

    def __call__(self, name: str, value: Any) -> float | None:
        """Return the value as a float, or None where it means off."""
        if value is None and self.off:
            return None
        if not isinstance(value, Real) or isinstance(value, bool):
            raise rule_error(name, self.rule, value)
        number = _as_float(value)
        if number in self.off:
            return None
        inside = self.low <= number <= self.high and math.isfinite(number)
        if not inside or (self.open_low and number == self.low):
            raise rule_error(name, self.rule, value)
        return abs(number) if number == 0 else number  # -0.0 is 0


@dataclass(frozen=True)
class Integer:
    """An integer >= 1; bools, floats and strings are rejected.

    Attributes:
        rule: the rule in words, for the message.
        off: values that mean off, and become None.
        high: the largest one.
    """

    rule: str
    off: tuple[int | None, ...] = ()
    high: float = math.inf

    def __call__(self, name: str, value: Any) -> int | None:
        """Return the value as an int, or None where it means off."""
        if value is None and self.off:
            return None
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise rule_error(name, self.rule, value)
        if value in self.off:
            return None
        if not 1 <= int(value) <= self.high:
            raise rule_error(name, self.rule, value)
        return int(value)


def one_of(*choices: Any) -> Rule:
    """Return the rule that a value is one of a few."""

    def validate(name: str, value: Any) -> Any:
        # Types must agree too: True == 1, but only one of them is meant.
        if not any(type(value) is type(c) and value == c for c in choices):
            raise rule_error(name, f"one of {', '.join(map(repr, choices))}", value)
        return value

    return validate


def switch(name: str, value: Any) -> bool | None:
    """Return True, or None for off; False is off too."""
    return one_of(True, False, None)(name, value) or None


def grammar(name: str, value: Any) -> str | None:
    """Return a grammar with its kind before a colon; None and "" are off."""
    if value is None or (isinstance(value, str) and not value):
        return None
    kinds = ("regex:", "json:", "lark:")
    if not isinstance(value, str) or not value.startswith(kinds):
        raise rule_error(name, f"a text that begins with {', '.join(kinds)}", value)
    return value


def any_seed(name: str, value: Any) -> int | None:
    """Return a seed as an int, also from a whole float such as 1.0; None stays None."""
    if value is None:
        return None
    whole = isinstance(value, Integral) or (
        isinstance(value, float) and value.is_integer()
    )
    if not whole or isinstance(value, bool):
        raise rule_error(name, "an integer in [0, 2**64) or None", value)
    return int(value)


def seed(name: str, value: Any) -> int | None:
    """Return a seed that every generator takes: `any_seed` in [0, 2**64), or None."""
    found = any_seed(name, value)
    if found is not None and not 0 <= found < SEED_LIMIT:
        raise rule_error(name, "an integer in [0, 2**64) or None", value)
    return found


def token_ids(name: str, value: Any) -> tuple[int, ...] | None:
    """Return token ids, sorted and without repeats; None and an empty list are off."""
    rule = "token ids, integers >= 0"
    if value is None:
        return None
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise rule_error(name, rule, value)
    return tuple(sorted({_token_id(name, rule, item) for item in value})) or None


def biases(name: str, value: Any) -> tuple[tuple[int, float], ...] | None:
    """Return pairs of token id and bias, sorted by id and without zeros."""
    rule = "a mapping of token ids (integers >= 0) to finite numbers"
    if value is None:
        return None
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise rule_error(name, rule, value)
    pairs = value.items() if isinstance(value, Mapping) else value
    result: dict[int, float] = {}
    for pair in pairs:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise rule_error(name, rule, value)
        finite = Number(f"{rule}; to ban a token use banned_token_ids")
        bias = finite(name, pair[1]) or 0.0
        result[_token_id(name, rule, pair[0])] = bias
    return tuple(sorted(pair for pair in result.items() if pair[1])) or None


def sequence_biases(
    name: str, value: Any
) -> tuple[tuple[tuple[int, ...], float], ...] | None:
    """Return pairs of token ids in a row and their bias, sorted and without zeros."""
    rule = "a mapping of token ids in a row, such as (7, 8), to finite numbers"
    if value is None:
        return None
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise rule_error(name, rule, value)
    result: dict[tuple[int, ...], float] = {}
    for pair in value.items() if isinstance(value, Mapping) else value:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise rule_error(name, rule, value)
        sequence, bias = pair
        if not isinstance(sequence, Sequence) or isinstance(sequence, str | bytes):
            sequence = (sequence,)
        if not sequence:
            raise rule_error(name, rule, value)
        ids = tuple(_token_id(name, rule, token_id) for token_id in sequence)
        result[ids] = Number(rule)(name, bias) or 0.0
    return tuple(sorted(pair for pair in result.items() if pair[1])) or None


def _token_id(name: str, rule: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise rule_error(name, rule, value)
    return int(value)


def _as_float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:  # an int beyond every float
        return math.inf


TEMPERATURE = Number("a finite number >= 0", low=0.0)
PROBABILITY = Number("in (0, 1]", 0.0, 1.0, open_low=True)
FRACTION = Number("in [0, 1]", 0.0, 1.0)
BELOW_ONE = Number("in [0, 1)", 0.0, math.nextafter(1.0, 0.0))
CURVE = Number("in [1, 3]", 1.0, 3.0)
AT_LEAST_ONE = Number("a finite number >= 1", low=1.0)
POSITIVE = Number("a finite number > 0", low=0.0, open_low=True)
FINITE = Number("a finite number")
COUNT = Integer("an integer >= 1")


def whole_number(name: str, value: Any, minimum: int = 1) -> int:
    """Return `value` as an int >= `minimum`; bools, floats and strings are refused."""
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or value < minimum:
        raise rule_error(name, f"an integer >= {minimum}", value)
    return int(value)
