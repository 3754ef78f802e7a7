"""Settings as text: one grammar for the chat, Compare, the command line and boxes.

A setting is ``NAME VALUE``; settings stand between commas. The name is a field of
`SamplingParams` or its name in words, in any case, with spaces, hyphens or
underscores; ``=`` or ``:`` may stand between name and value. ``off`` is the value that
changes nothing. `SamplingParams.describe` writes the same grammar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from ..errors import ParameterError
from .parameters import PARAMETERS, format_value
from .params import SamplingParams

NEUTRAL = "neutral"
"""The setting that changes nothing."""

MOST_SEEDS = 1000
"""A longer range of seeds is a typing error."""

_WORDS = {
    NEUTRAL: {n: p.neutral for n, p in PARAMETERS.items() if p.stage},
    "greedy": {"temperature": 0.0},
}
_NAMES = {p.label.lower().replace(" ", "-"): name for name, p in PARAMETERS.items()}
_NAMES |= {name.replace("_", "-"): name for name in PARAMETERS}
_KNOWN = [f"{p.label} …" for p in PARAMETERS.values()] + list(_WORDS)
_OFF = ("", "off", "none")
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}
_COMMA = re.compile(r",(?=\s*(?:[^\W\d]|$))")  # a comma before a number lists values
_BIAS = re.compile(r'"?(\d{1,20}(?:,\d{1,20})*)"?(?:=|(?=[+-]))(.+)')
_SEEDS = re.compile(r"(-?\d{1,99})(?:[-–](-?\d{1,99}))?")


def parse_settings(text: str) -> SamplingParams:
    """Return the parameters that a text describes; what it leaves out is neutral.

    Raises:
        ParameterError: a setting that is unknown, given twice, or outside its rule.

    Example:
        >>> parse_settings("temperature=0.7, top-p 0.9").top_p
        0.9
        >>> parse_settings(SamplingParams(top_k=5).describe()).top_k
        5
    """
    return SamplingParams(**parse_fields(text))


def parse_fields(text: str, others: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields that a text sets, not yet validated.

    Args:
        text: settings between commas.
        others: further names with number values that may be set, such as
            "max_new_tokens".

    Raises:
        ParameterError: a setting that is unknown or given twice.

    Example:
        >>> parse_fields('top_k off, logit_bias {"7": 1}')
        {'top_k': None, 'logit_bias': [(7, 1)]}
    """
    fields: dict[str, Any] = {}
    words: dict[str, Any] = {}
    for part in filter(None, map(str.strip, _COMMA.split(text))):
        if part.lower() == NEUTRAL:
            words = _WORDS[NEUTRAL]
            continue
        for name, value in _setting(part, others).items():
            if name in fields:
                raise ParameterError(f"{name} is given twice in {text.strip()!r}")
            fields[name] = value
    return words | fields


def parse_lines(text: str) -> list[SamplingParams]:
    """Return the parameters of each line that is not empty.

    Raises:
        ParameterError: as in `parse_settings`; it names the line, counting from 1.
    """
    settings = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            settings.append(parse_settings(line))
        except ParameterError as error:
            raise ParameterError(f"settings, line {number}: {error}") from None
    return settings


def format_settings(params: SamplingParams) -> str:
    """Return settings that `parse_settings` reads, with the dialect, without the seed.

    >>> format_settings(SamplingParams(top_k=5, dialect="xslm", seed=7))
    'top-k 5, dialect xslm'
    """
    parts = params.differences()
    for name in ("draw_method", "dialect"):
        if (value := getattr(params, name)) is not None:
            parts.append(f"{PARAMETERS[name].label} {format_value(name, value)}")
    return ", ".join(parts) or NEUTRAL


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of a text such as "1 2 3" or "1-6", in its order.

    Raises:
        ParameterError: neither a seed nor a range, or too long a range.
    """
    seeds: list[int] = []
    for part in text.replace(",", " ").split():
        found = _SEEDS.fullmatch(part)
        if found is None:
            raise ParameterError(
                f"seeds must be integers or ranges, such as 1 2 3 or 1-6, got {part!r}"
            )
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 <= last - first < MOST_SEEDS:
            raise ParameterError(
                f"a range of seeds must go up, over at most {MOST_SEEDS:,}, "
                f"got {part!r}"
            )
        seeds += range(first, last + 1)
    return seeds


def read_value(name: str, text: str) -> Any:
    """Return a parameter's value from its text; its rule has yet to validate it.

    >>> read_value("temperature", "off"), read_value("banned_token_ids", "3, 4")
    (1.0, [3, 4])
    """
    parameter, text = PARAMETERS[name], text.strip()
    word = text.lower()
    if word in _OFF or (name == "seed" and word == "random"):
        return None if name == "seed" else parameter.neutral
    if parameter.value == "flag":
        return _FLAGS.get(word, text)
    if parameter.value == "name":
        return word
    if parameter.value == "ids":
        ids = read_token_ids(re.sub(r"\s*,\s*|\s+", ",", text.strip("[] ")))
        return text if ids is None else ids
    if parameter.value == "text":
        try:
            return json.loads(text) if text.startswith('"') else text
        except json.JSONDecodeError:
            return text
    if parameter.value in ("biases", "sequences"):
        return _pairs(text, several=parameter.value == "sequences") or text
    return read_number(text)


def _pairs(text: str, *, several: bool) -> list[tuple[Any, Any]] | None:
    """Return the tokens, `several` or one, and the numbers of biases; None if bad."""
    pairs = re.sub(r"\s*[:=]\s*", "=", text.strip("{} "))
    found = [
        _BIAS.fullmatch(p) for p in re.split(r"\s+" if several else r"[\s,]+", pairs)
    ]
    if not all(found):
        return None
    ids = [tuple(map(int, pair[1].split(","))) for pair in found if pair]
    numbers = [read_number(pair[2]) for pair in found if pair]
    return list(zip(ids if several else [one for one, *_ in ids], numbers, strict=True))


def read_token_ids(text: str) -> list[int] | None:
    """Return the integers between commas; None if anything else is there.

    >>> read_token_ids("[7, 13,29]"), read_token_ids("7 13"), read_token_ids("7,a")
    ([7, 13, 29], None, None)
    """
    text = text.strip("[] ")
    ids = [read_number(part.strip()) for part in text.split(",") if text]
    return ids if all(type(token_id) is int for token_id in ids) else None


def read_number(text: str) -> Any:
    """Return an integer or a float, or else the text, which a rule then refuses.

    >>> read_number("40"), read_number("0.5"), read_number("1_000"), read_number("x")
    (40, 0.5, '1_000', 'x')
    """
    if "_" not in text:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def _setting(part: str, others: Sequence[str]) -> dict[str, Any]:
    """Return the fields that one setting stands for."""
    if (fields := _WORDS.get(part.lower())) is not None:
        return fields
    names = _NAMES | {name.replace("_", "-"): name for name in others}
    longest_first = sorted(names, key=len, reverse=True)
    spelled = "|".join(re.escape(n).replace(r"\-", "[-_ ]+") for n in longest_first)
    found = re.fullmatch(rf"({spelled})(?:\s*[:=]\s*|\s+|$)(.*)", part, re.I | re.S)
    if found is None:
        raise _unknown(part)
    name = names[re.sub("[-_ ]+", "-", found[1].lower())]
    if not found[2]:
        raise ParameterError(f"{name} needs a value, such as {_example(name)}")
    read = read_number(found[2]) if name in others else read_value(name, found[2])
    return {name: read}


def _example(name: str) -> str:
    return {"temperature": "temperature 0.7", "seed": "seed 7"}.get(name, f"{name} off")


def _unknown(part: str) -> ParameterError:
    words = " ".join(re.findall(r"[^\W\d]\S*", part)).lower().replace("_", "-")
    near = get_close_matches(f"{words} …", _KNOWN, 1, 0.7)
    known = f"did you mean {near[0]}" if near else f"write {', '.join(_KNOWN)}"
    return ParameterError(f"{part!r} is no setting; {known}")
