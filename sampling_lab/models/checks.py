"""Checks of files that several formats share, and their messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, ParameterError

RENAME_HINT = "names of another layout can be mapped with rename="

_LFS_POINTER = b"version https://git-lfs"


def read_head(path: Path, count: int = 512) -> bytes:
    """Return the first bytes of a checkpoint file.

    Raises:
        CheckpointError: unreadable, empty, or a Git LFS pointer.
    """
    try:
        with path.open("rb") as file:
            head = file.read(count)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not head:
        raise CheckpointError(f"{path} is empty (0 bytes); copy or download it again")
    if head.startswith(_LFS_POINTER):
        raise CheckpointError(
            f"{path} is a Git LFS pointer of {path.stat().st_size} bytes, not the "
            "checkpoint; run `git lfs pull`"
        )
    return head


def dictionary_in(
    path: Path, content: Mapping[Any, Any], names: Sequence[str], hint: str = ""
) -> Mapping[Any, Any]:
    """Return the entry under the first of `names` that is present: a dictionary.

    Args:
        path: for the message.
        content: the dictionary at the top of a file.
        names: possible names of the entry.
        hint: added to the message when the entry is missing.

    Raises:
        CheckpointError: no such entry, or not a dictionary.
    """
    name = next((name for name in names if content.get(name) is not None), None)
    if name is None:
        raise CheckpointError(
            f"{path} has no {' or '.join(names)}; it holds "
            f"{listed([str(key)[:40] for key in content], 10) or 'nothing'}{hint}"
        )
    entry = content[name]
    if not isinstance(entry, Mapping):
        raise CheckpointError(
            f"{name} in {path} must be a dictionary, got a {type(entry).__name__}"
        )
    return entry


def renamed(state: Mapping[str, Any], rename: Mapping[str, str]) -> dict[str, Any]:
    """Return a state dict of another layout under the names of this one.

    Args:
        state: name -> weight.
        rename: some of the words between a name's dots -> the words there instead, or
            "" for none; applied to every name, one pair after the other.

    Raises:
        ParameterError: not such pairs, words that no name has, or one name twice.

    >>> renamed({"blocks.0.attn": 1, "attn_norm": 2}, {"blocks": "h", "attn": "self"})
    {'h.0.self': 1, 'attn_norm': 2}
    """
    if not isinstance(rename, Mapping) or {*map(type, [*rename, *rename.values()])} - {
        str
    }:
        raise ParameterError(
            "rename must be pairs of text such as {'blocks': 'model.layers'}, "
            f"got {str(rename)[:80]}"
        )
    names = [f".{name}." for name in state]
    for old, new in rename.items():
        words, others = f".{old.strip('.')}.", f".{new.strip('.')}.".replace("..", ".")
        if not any(words in name for name in names):
            raise ParameterError(
                f"rename has {old[:80]!r}, which is between the dots of no name; the "
                f"names are {listed([name.strip('.') for name in names], 3)}"
            )
        names = [name.replace(words, others) for name in names]
    result = dict(zip((name.strip(".") for name in names), state.values(), strict=True))
    if len(result) < len(state):
        raise ParameterError("rename gives several weights one name; change its pairs")
    return result


def is_plain(value: object) -> bool:
    """Tell whether a value is a scalar of strict JSON: NaN and infinity are not."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or type(value) in (bool, int, str)


def listed(names: Sequence[str], most: int = 6) -> str:
    """Join names with commas; of a long list the first ones and how many follow.

    >>> listed("abcdefgh")
    'a, b, c, d, e, f and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first_sentence(error: BaseException, limit: int = 240) -> str:
    """Return the first sentence of a library's message, on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = text.split(". ")[0].removesuffix(".")
    return text if len(text) <= limit else f"{text[:limit]}…"
