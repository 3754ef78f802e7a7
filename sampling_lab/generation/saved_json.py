"""JSON files that are written whole or not at all, and read without trust."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

from ..errors import ParameterError, SamplingLabError
from ..sampling.draws import DrawResult
from .results import Generation, Step


def write(path: str | Path, data: Any, indent: int | None = None) -> None:
    """Write strict JSON; until it is complete, what was in the file stays there."""
    document = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    # A lone surrogate becomes its JSON escape.
    encoded = f"{document}\n".encode("utf-8", "backslashreplace")
    path = Path(path)
    descriptor, scratch = tempfile.mkstemp(prefix=".save-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(encoded)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def read(path: str | Path) -> Any:
    """Return what a JSON file holds.

    Raises:
        ParameterError: it cannot be read, or is no strict JSON.
    """
    path = Path(path).absolute()
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ParameterError(f"{path} cannot be read: {reason}") from None
    return parse(content, str(path))


def parse(content: bytes, name: str) -> Any:
    """Return what JSON in bytes holds.

    Args:
        content: the bytes of a file.
        name: what an error calls it.

    Raises:
        ParameterError: it is no strict JSON.
    """
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ParameterError(
            f"{name} is not a JSON file; give one that the lab saved"
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def read_generation(data: Any) -> Generation:
    """Return the generation that `Generation.to_dict` gave, every field checked.

    Raises:
        ParameterError: a field that is missing, unknown, or of another type; a step
            that does not fit the tokens.
    """
    try:
        generation = Generation.from_dict(data)
        is_same = generation.to_dict() == data
    except SamplingLabError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        is_same = False
    if not is_same:
        raise ParameterError(
            "a generation must have the fields that Generation.to_dict writes; "
            "save it again"
        )
    _check_types(generation)
    _check_steps(generation)
    return generation


def _check_types(record: Any) -> None:
    """Hold a dataclass instance against the types that its class declares."""
    for name, hint in get_type_hints(type(record)).items():
        value = getattr(record, name)
        if not name.startswith("_") and not _conforms(value, hint):
            raise ParameterError(
                f"{name} of a saved {type(record).__name__.lower()} must be "
                f"{getattr(hint, '__name__', hint)}, got {str(value)[:60]!r}"
            )


def _conforms(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type: plain, a union, or a tuple of one."""
    kinds = get_args(hint)
    if get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            return False
        if kinds[-1] is ...:
            return all(_conforms(item, kinds[0]) for item in value)
        return len(kinds) == len(value) and all(map(_conforms, value, kinds))
    if kinds:
        return any(_conforms(value, kind) for kind in kinds)
    if hint is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value)
    if isinstance(value, Step | DrawResult):
        _check_types(value)
    return type(value) is hint


def _check_steps(generation: Generation) -> None:
    steps = [(step.index, step.token_id) for step in generation.steps]
    if steps != [*enumerate(generation.token_ids)]:
        raise ParameterError(
            "steps of a saved generation must be one for each of its token_ids, in "
            f"order, got {len(steps)} for {len(generation.token_ids)}"
        )
    last = generation.stop_step
    if last is not None and (last.index != len(steps) or not last.is_stop):
        raise ParameterError(
            f"stop_step of a saved generation must be step {len(steps)}, after its "
            f"tokens, got {last.index}"
        )
