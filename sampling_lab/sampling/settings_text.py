"""Parameters and seeds as a person types them: the inverse of `describe`."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import partial
from typing import Any

from ..errors import ParameterError
from . import notes
from .params import SamplingParams

NEUTRAL = "neutral"
"""How a setting is typed that changes nothing."""

MOST_SEEDS = 1000
"""A longer range is a slip of the finger."""

_Fields = dict[str, Any]
_SLOT = re.compile(r"\{[^}]*\}")
_BIAS = re.compile(r"(\d+)([+-].+)")
_SEEDS = re.compile(r"(\d{1,20})(?:[-–](\d{1,20}))?")
_KEPT_ELSEWHERE = re.compile(r"a fresh seed|seed \d+")


def parse_settings(text: str) -> SamplingParams:
    """Return the parameters that are described as `SamplingParams.describe` does.

    Settings stand between commas, in any order; what is left out is neutral. Beyond
    the words of `describe` there are "neutral", "greedy" and "dialect NAME", and a
    name may also be written with underscores or in another case.

    Raises:
        ParameterError: a setting that is unknown, given twice, or outside its rule.

    Example:
        >>> parse_settings("temperature 0.7, top-p 0.9").top_p
        0.9
        >>> parse_settings(SamplingParams(top_k=5).describe()).top_k
        5
    """
    fields: _Fields = {}
    for part in filter(None, map(str.strip, text.split(","))):
        for name, value in _setting(part).items():
            if name in fields:
                raise ParameterError(f"{name} is given twice in {text.strip()!r}")
            fields[name] = value
    return SamplingParams(**fields)


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
    """Return a setting in words that `parse_settings` reads, without its seed.

    Like those of `describe`, numbers have six digits.
    """
    parts = params.describe().split(", ")
    parts = [part for part in parts if not _KEPT_ELSEWHERE.fullmatch(part)]
    if params.dialect is not None:
        parts.append(f"dialect {params.dialect}")
    return ", ".join(filter(None, parts)) or NEUTRAL


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of a text such as "1 2 3" or "1-6", in its order.

    Raises:
        ParameterError: what is no seed and no range, or too long a range.
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


def _setting(part: str) -> _Fields:
    """Return the fields that one setting in words stands for."""
    for pattern, read in _READERS:
        if found := pattern.fullmatch(" ".join(part.split())):
            return read(found)
    said = " ".join(re.findall(r"[^\W\d]\S*", part))
    near = get_close_matches(f"{said.lower()} …".replace("_", "-"), _KNOWN, 1, 0.7)
    known = f"did you mean {near[0]}" if near else f"write {', '.join(_KNOWN)}"
    raise ParameterError(f"{part!r} is no setting; {known}")


def _reader(name: str, template: str) -> tuple[re.Pattern[str], Any]:
    """Return a pattern for a template of `describe`, and what reads its values."""
    slots = [slot[1:-1].split(":")[0] or name for slot in _SLOT.findall(template)]
    pattern = r"(.+)".join(map(_spelling, _SLOT.split(template)))

    def read(found: re.Match[str]) -> _Fields:
        return {
            slot: _value(slot, text)
            for slot, text in zip(slots, found.groups(), strict=True)
        }

    return re.compile(pattern, re.IGNORECASE), read


def _spelling(literal: str) -> str:
    """Return a pattern for notes, in which a hyphen may be an underscore."""
    return re.escape(literal).replace(r"\-", "[-_]").replace(r"\ ", "[ _]")


def _value(name: str, text: str) -> Any:
    if name == "penalize_prompt":
        return {"yes": True, "no": False}.get(text.lower(), text)
    if name == "banned_token_ids":
        return [_number(part) for part in text.split()]
    if name == "logit_bias":
        return [_bias(part) for part in text.split()]
    return _number(text)


def _number(text: str) -> Any:
    """Return an integer or a float, or else the text, which a rule then refuses."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _bias(text: str) -> tuple[Any, ...]:
    found = _BIAS.fullmatch(text)
    return tuple(map(_number, found.groups())) if found else (text,)


def _plain(name: str, found: re.Match[str]) -> _Fields:
    return {name: found[1].lower()}


def _means(fields: _Fields, found: re.Match[str]) -> _Fields:
    return fields


_READERS = [
    *(_reader(name, template) for name, template in notes.TEMPLATES.items()),
    _reader("seed", "seed {}"),
    *(
        (re.compile(pattern, re.IGNORECASE), partial(action, argument))
        for pattern, action, argument in (
            ("drawn by (.+)", _plain, "draw_method"),
            ("dialect (.+)", _plain, "dialect"),
            ("a fresh seed", _means, {"seed": None}),
            ("greedy", _means, {"temperature": 0.0}),
            (NEUTRAL, _means, {}),
        )
    ),
]
_KNOWN = [
    *(_SLOT.sub("…", template) for template in notes.TEMPLATES.values()),
    *("seed …", "drawn by …", "dialect …", "greedy", NEUTRAL),
]


def number(text: str) -> int | float:
    """Read a number; its rule is the library's, so a whole one stays an int.

    >>> number("40"), number("0.5")
    (40, 0.5)
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ParameterError(f"must be a number, got {text!r}")
