"""Arguments of public functions: each is checked by its name, before all else."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np
from torch import Tensor

from ..errors import ParameterError
from . import validation
from .dialects import find_dialect
from .stage import check_logits
from .validation import Rule, rule_error, whole_number

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a function that `RULES` names, before it is called.

    A default is always accepted.

    Raises:
        SamplingLabError: a value outside its rule; names the argument and the value.
    """
    signature = inspect.signature(function)
    defaults = {n: p.default for n, p in signature.parameters.items() if n in RULES}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        for name, default in defaults.items():
            if name in given and given[name] is not default:
                RULES[name](name, given[name])
                if name != "logits" and isinstance(given[name], Tensor | np.ndarray):
                    given[name] = given[name].tolist()
        logits = given.get("logits", getattr(given.get("self"), "raw_logits", None))
        token_id = given.get("token_id")
        if logits is not None and token_id is not None:
            check_token("token_id", token_id, logits.shape[-1])
        return function(*bound.args, **bound.kwargs)

    return call


def check_token(name: str, token_id: int, vocab_size: int) -> None:
    """Refuse a token id outside the vocabulary."""
    if token_id >= vocab_size:
        raise rule_error(name, f"in [0, {vocab_size}), the vocabulary", token_id)


def check_range(low: float, high: float) -> None:
    """Refuse a range of temperatures that does not go up from above 0."""
    if not 0 < low < high < math.inf:
        raise ParameterError(f"low and high must be 0 < low < high, got {low}, {high}")


def _row(name: str, value: Any) -> None:
    if not isinstance(value, Tensor) or value.dim() != 1:
        shown = tuple(value.shape) if isinstance(value, Tensor) else value
        raise rule_error(name, "a tensor of one row, shape (V,)", shown)
    check_logits(value)


def _having(rule: str, *attributes: str) -> Rule:
    """Return the rule that a value is a thing with some attributes."""

    def validate(name: str, value: Any) -> None:
        if isinstance(value, type) or not all(hasattr(value, a) for a in attributes):
            raise rule_error(name, rule, value)

    return validate


def _each(rule: str, check: Rule, least: int = 1, most: float = math.inf) -> Rule:
    """Return the rule that a value is a list, of what, and how long."""

    def validate(name: str, value: Any) -> None:
        is_list = isinstance(value, Sequence | range | Tensor | np.ndarray)
        is_list = is_list and getattr(value, "ndim", 1) == 1
        is_list = is_list and not isinstance(value, str | bytes)
        if not is_list or not least <= len(value) <= most:
            raise rule_error(name, rule, value)
        for item in value.tolist() if hasattr(value, "tolist") else value:
            check(name, item)

    return validate


def _seeds(name: str, value: Any) -> None:
    if isinstance(value, Integral):
        whole_number(name, value)
    else:
        _each("a number >= 1, or a list of seeds", validation.any_seed, 0)(name, value)


def _tokens(name: str, value: Any) -> None:
    is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, bytes)
    if not callable(value) and not is_list:
        raise rule_error(name, "a function of token ids, or a list of texts", value)


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise rule_error(name, "a text", value)


def _number(name: str, value: Any) -> None:
    validation.FINITE(name, value)


def _real(name: str, value: Any) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise rule_error(name, "a number", value)


def _whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise rule_error(name, "an integer", value)


def _truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise rule_error(name, "True or False", value)


def _dialect(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise rule_error(name, "a name in DIALECTS", value)
    find_dialect(value)


_AXES = _having("matplotlib Axes", "plot", "figure")
_ID = functools.partial(whole_number, minimum=0)
_IDS = _each("a list of token ids", _ID, least=0)

RULES: Mapping[str, Rule] = {
    "logits": _row,
    "params": _having("SamplingParams", "chain", "draw"),
    "model": _having("a model, from load", "card", "logits_batch"),
    "generation": _having("a Generation", "all_steps", "prompt_ids"),
    "parent": _having("a Generation", "all_steps", "prompt_ids"),
    "ledger": _having("a Ledger", "raw_probs", "stages"),
    "noise": _having("StepNoise, from noise_of_step", "method", "exponentials"),
    "history": _having("a History", "token_ids", "prompt_length"),
    "comparison": _having("what compare_dialects gives", "groups"),
    "found": _having("what temperature_map gives", "segments"),
    "check": _having("what compare_frequencies gives", "rows"),
    "grid": _having("what seed_grid gives", "temperatures", "token_ids"),
    "drawn": _having("a DrawResult", "token_id", "method"),
    "settings": _each(
        "a list of SamplingParams", _having("SamplingParams", "chain"), 0
    ),
    "steps": _each("a list of steps", _having("steps", "final_prob"), least=0),
    "ax": _AXES,
    "axes": _each("a list of matplotlib Axes", _AXES),
    "tokens": _tokens,
    "n": whole_number,
    "token_id": _ID,
    "token_ids": _IDS,
    "chosen": _ID,
    "top": _each("a list of at least one token id", _ID),
    "prompt_length": _ID,
    "step": _ID,
    "selected": _whole,
    "seeds": _seeds,
    "temperatures": _each("a list of temperatures", validation.TEMPERATURE),
    "low": _real,
    "high": _real,
    "current": _number,
    "limits": _each("two numbers", _number, least=2, most=2),
    "dialects": _each("a list of names in DIALECTS", _dialect),
    "first": _dialect,
    "second": _dialect,
    "explain": _truth,
    "p": validation.PROBABILITY,
    "target": _text,
    "stop_token_ids": _each("a list of token ids", _whole, least=0),
}
"""The rule of each argument, by its name, which means the same in every function."""
