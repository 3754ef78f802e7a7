"""The toy GPT's file: one JSON object, read strictly and written reproducibly."""

from __future__ import annotations

import json
import math
from collections.abc import Set
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import CheckpointError, ParameterError
from ...sampling.dialects import DIALECTS
from ...sampling.params import SamplingParams
from ...sampling.validation import seed, whole_number
from ..checks import listed
from ..files import write_whole
from .network import Weights, weight_shapes
from .tokenizer import BPE
from .tokenizer_arguments import read_tokenizer

_DEFAULTS = DIALECTS["xslm"].defaults

MAX_FILE_BYTES = 16 << 20
"""A toy is far smaller; a larger file is not read into memory."""

_OF_TRAINING = ("width", "context", "steps", "learning_rate")
_OLD_SETTINGS = {*_OF_TRAINING, "seed", "tokens", "max_tokens"}
"""All that the lab's first files had; their seed is that of the training."""


@dataclass(frozen=True)
class Settings:
    """The settings in a checkpoint.

    Attributes:
        width: size of the vector at every position.
        context: length of the sliding window, in tokens.
        training_seed: of the initial weights, in [0, 2**64).
        steps: number of training steps so far.
        learning_rate: of the training steps; > 0.
        temperature: of a generation, unless told otherwise, as are the next three.
        top_k: how many tokens it keeps.
        seed: any integer.
        tokens: how many new tokens it has.
        max_tokens: largest number that may be asked for.
    """

    width: int = 32
    context: int = 12
    training_seed: int = 0
    steps: int = 0
    learning_rate: float = 1.0
    temperature: float = _DEFAULTS["temperature"]
    top_k: int | None = _DEFAULTS["top_k"]
    seed: int | None = _DEFAULTS["seed"]
    tokens: int = 24
    max_tokens: int = 64

    def __post_init__(self) -> None:
        """Refuse values outside the attributes' rules."""
        for name in ("width", "context", "tokens", "max_tokens"):
            whole_number(name, getattr(self, name))
        for name in ("training_seed", "steps"):
            whole_number(name, getattr(self, name), minimum=0)
        seed("training_seed", self.training_seed)
        if self.tokens > self.max_tokens:
            raise ParameterError(
                f"tokens must be <= max_tokens ({self.max_tokens}), got {self.tokens}"
            )
        if not _is_number(self.learning_rate) or self.learning_rate <= 0:
            raise ParameterError(
                f"learning_rate must be a number > 0, got {self.learning_rate!r}"
            )
        SamplingParams(dialect="xslm", **self.sampling)

    @property
    def sampling(self) -> dict[str, Any]:
        """How a generation draws unless told otherwise, as sampling parameters."""
        return {name: getattr(self, name) for name in _DEFAULTS}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The contents of a file; the weights are float64.

    `notes` are what a file of somebody's own has too much or too little.
    """

    settings: Settings
    tokenizer: BPE
    weights: Weights
    notes: tuple[str, ...] = ()


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint file.

    Raises:
        CheckpointError: not a file, too large, not JSON, or anything in it of a wrong
            type or size, or not finite; a weight missing or unknown.
    """
    try:
        data = json.loads(
            _read_text(path),
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique_keys,
        )
        return _checkpoint(data)
    except (CheckpointError, ParameterError) as error:
        raise CheckpointError(f"{path} is not an XSLM checkpoint: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from None


def write_checkpoint(checkpoint: Checkpoint, path: str | Path) -> None:
    """Write a checkpoint; equal checkpoints give equal bytes, one matrix row a line."""
    matrices = ",\n".join(
        f'"{name}": [\n{_rows(weight)}\n]'
        for name, weight in checkpoint.weights.items()
    )
    settings = json.dumps(asdict(checkpoint.settings))
    tokenizer = json.dumps(checkpoint.tokenizer.to_json(), ensure_ascii=False)
    text = (
        f'{{"settings": {settings},\n"tokenizer": {tokenizer},\n'
        f'"weights": {{\n{matrices}\n}}}}\n'
    )
    write_whole(Path(path), text.encode())


def _rows(weight: Tensor) -> str:
    return ",\n".join(json.dumps(row, separators=(",", ":")) for row in weight.tolist())


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise CheckpointError("it is not a file")
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise CheckpointError(f"it has {size} bytes, more than {MAX_FILE_BYTES}")
    return path.read_text(encoding="utf-8-sig")


def _refuse_constant(name: str) -> None:
    raise CheckpointError(f"numbers must be finite, got {name}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise CheckpointError(f"key {twice[:40]!r} must not come twice")
    return unique


def _checkpoint(data: Any) -> Checkpoint:
    data = _object("the file", data)
    given = _object("settings", data.get("settings", {}))
    matrices = _object("weights", data.get("weights"))
    tokenizer, unused = read_tokenizer(_object("tokenizer", data.get("tokenizer")))
    if given.keys() == _OLD_SETTINGS:
        given = {**given, "training_seed": given["seed"]}
        del given["seed"]
    known = {field.name for field in fields(Settings)}
    unused += [k[:40] for k in given if k not in known]
    unused += [k[:40] for k in data if k not in ("settings", "tokenizer", "weights")]
    lacking = [name for name in _OF_TRAINING if name not in given]
    used = {name: given[name] for name in given if name in known}
    settings = Settings(**{**_sizes(matrices), **used})
    shapes = weight_shapes(settings.width, settings.context, tokenizer.vocab_size)
    _check_names(matrices, shapes.keys())
    weights = {
        name: _matrix(name, matrices[name], shape) for name, shape in shapes.items()
    }
    notes = [f"not used: {listed(unused)}"] if unused else []
    notes += [f"missing in the settings: {', '.join(lacking)}"] if lacking else []
    return Checkpoint(settings, tokenizer, weights, tuple(notes))


def _object(where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise CheckpointError(f"{where} must be an object, got {type(data).__name__}")
    return data


def _sizes(matrices: dict[str, Any]) -> dict[str, int]:
    """Return the settings that the positions' matrix has, if it is one."""
    rows = matrices.get("positions")
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], list):
        return {}
    return {"context": len(rows), "width": len(rows[0])}


def _check_names(matrices: dict[str, Any], expected: Set[str]) -> None:
    missing = sorted(expected - matrices.keys())
    unknown = [key[:40] for key in sorted(matrices.keys() - expected)]
    if missing or unknown:
        raise CheckpointError(
            f"weights must have the keys {', '.join(sorted(expected))}; "
            f"missing: {', '.join(missing) or 'none'}; "
            f"unknown: {listed(unknown) or 'none'}"
        )


def _matrix(name: str, rows: Any, shape: tuple[int, int]) -> Tensor:
    """Return a float64 matrix, after comparing its size with the expected one."""
    height, width = shape
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise CheckpointError(f"weights.{name} must be a list of rows of numbers")
    lengths = sorted({len(row) for row in rows} - {width}) or [width]
    if len(rows) != height or lengths != [width]:
        found = f"{len(rows)} x {lengths[0] if rows else 0}"
        raise CheckpointError(
            f"weights.{name} must be {height} x {width} by the settings and the "
            f"tokenizer, got {found}"
        )
    bad = [number for row in rows for number in row if not _is_number(number)]
    if bad:
        raise CheckpointError(
            f"weights.{name} must hold finite numbers, got {str(bad[0])[:40]}"
        )
    return torch.tensor(rows, dtype=torch.float64)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False
