"""A tokenizer from the keyword arguments of somebody's own `BPE`.

Whoever wrote the class chose the arguments' names, so their values decide: a list of
tokens with a newline among them is the vocabulary or its characters, and a list of
pairs the merges.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...errors import CheckpointError
from .tokenizer import BPE, NEWLINE

_MERGES = re.compile("(merge|rule|pair)s?$", re.IGNORECASE)


def read_tokenizer(arguments: dict[str, Any]) -> tuple[BPE, list[str]]:
    """Return the tokenizer, and the names of the arguments that it does not need.

    Args:
        arguments: by any names, the characters or all tokens in the order of their ids
            (a string, a list, or an object of tokens and ids) and the merges in the
            order learned (pairs, "a b", or an object of these).

    Raises:
        CheckpointError: no merges, no characters, or arguments that contradict.
    """
    merges: list[Any] | None = None
    lists: list[list[str]] = []
    unused = []
    for name, value in arguments.items():
        items = _in_order(value)
        if not isinstance(value, str) and items is not None and _merge(name, items):
            if merges not in (None, items):
                raise CheckpointError(f"{name[:40]} must equal the other merges")
            merges = items
        elif items and NEWLINE in items and all(isinstance(i, str) for i in items):
            lists.append(_checked_ids(name, value, items))
        else:
            unused.append(name[:40])
    if merges is None:
        raise CheckpointError(
            "merges must be a list of pairs of tokens; the tokenizer has "
            f"{', '.join(key[:40] for key in [*arguments][:8]) or 'nothing'}"
        )
    tokens = _longest(lists)
    characters = "".join(token for token in tokens if len(token) == 1)
    is_whole = len(characters) < len(tokens)
    return BPE(characters, merges, tokens if is_whole else ()), unused


def _in_order(value: Any) -> list[Any] | None:
    """Return the items of a list, a string, or an object in the order of its ids."""
    if isinstance(value, dict):
        ids = _ids(value)
        return [*value] if ids is None else [ids[number] for number in sorted(ids)]
    return list(value) if isinstance(value, list | str) else None


def _ids(value: dict[str, Any]) -> dict[int, Any] | None:
    """Return what belongs to each id, whichever of the two comes first."""
    if all(type(number) is int for number in value.values()):
        return {number: token for token, number in value.items()}
    if all(re.fullmatch("[0-9]{1,9}", key) for key in value):
        return {int(key): token for key, token in value.items()}
    return None


def _merge(name: str, items: Sequence[Any]) -> bool:
    """Tell whether items are merges, by the name or because all are pairs."""
    shapes = (
        len(item) == 2 if isinstance(item, list) else " " in str(item)[1:-1]
        for item in items
    )
    return bool(_MERGES.search(name)) or (bool(items) and all(shapes))


def _checked_ids(name: str, value: Any, items: list[str]) -> list[str]:
    if isinstance(value, dict):
        ids = _ids(value)
        if ids is None or sorted(ids) != list(range(len(value))):
            raise CheckpointError(
                f"{name[:40]} must number its {len(value)} tokens from 0, each once"
            )
    return items


def _longest(lists: list[list[str]]) -> list[str]:
    """Return the longest list of tokens, of which the others must be parts."""
    longest = max(lists, key=len, default=[])
    for tokens in lists:
        odd = sorted(set(tokens) - set(longest))
        if odd or (len(tokens) == len(longest) and tokens != longest):
            at = odd[0][:40] if odd else "another order"
            raise CheckpointError(
                f"the tokenizer's lists of tokens must agree, got {at!r} in only one"
            )
    return longest
