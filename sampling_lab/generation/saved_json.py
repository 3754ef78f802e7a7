"""JSON files that are written whole or not at all, and read without trust."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

from ..errors import ParameterError
from ..models.files import write_whole
from ..sampling.draws import DrawResult
from .results import Generation, Step, from_saved


def write(path: str | Path, data: Any, indent: int | None = None) -> None:
    """Write strict JSON; until it is complete, the file keeps its old content."""
    document = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    # A lone surrogate becomes its JSON escape.
    encoded = f"{document}\n".encode("utf-8", "backslashreplace")
    write_whole(Path(path), encoded)


def read(path: str | Path) -> Any:
    """Return the content of a JSON file; `ParameterError` if that is impossible."""
    path = Path(path).absolute()
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ParameterError(f"{path} cannot be read: {reason}") from None


def parse(content: bytes, name: str) -> Any:
    """Return the content of strict JSON in bytes; errors call the file `name`."""
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
    generation = Generation.from_dict(data)
    with from_saved():
        if generation.to_dict() != data:
            raise ValueError("another field")
    _check_types(generation)
    _check_steps(generation)
    return generation


def _check_types(record: Any) -> None:
    """Compare the fields of a dataclass instance with the types that it declares."""
    kind = type(record).__name__.removesuffix("Result").lower()
    for name, hint in get_type_hints(type(record)).items():
        value = getattr(record, name)
        if not name.startswith("_") and not _conforms(value, hint):
            raise ParameterError(
                f"{name} of a saved {kind} must be "
                f"{getattr(hint, '__name__', hint)}, got {str(value)[:60]!r}"
            )


def _conforms(value: Any, hint: Any) -> bool:
    """Return whether a value has a type: plain, a union, or a tuple of types."""
    kinds = get_args(hint)
    if get_origin(hint) is tuple:
        if isinstance(value, tuple) and kinds[-1] is ...:
            kinds = kinds[:1] * len(value)
        fits = isinstance(value, tuple) and len(kinds) == len(value)
        return fits and all(map(_conforms, value, kinds))
    if kinds:
        return any(_conforms(value, kind) for kind in kinds)
    if hint is float:  # JSON has integers as large as you like
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    if isinstance(value, Step | DrawResult):
        _check_types(value)
    return type(value) is hint


def _check_steps(generation: Generation) -> None:
    steps, last = generation.steps, generation.stop_step
    if [(s.index, s.token_id) for s in steps] != [*enumerate(generation.token_ids)]:
        raise ParameterError(
            "steps of a saved generation must be one for each of its token_ids, in "
            f"order, got {len(steps)} for {len(generation.token_ids)}"
        )
    if last is not None and (last.index != len(steps) or not last.is_stop):
        raise ParameterError(
            f"stop_step of a saved generation must be step {len(steps)}, after its "
            f"tokens, got {last.index}"
        )
