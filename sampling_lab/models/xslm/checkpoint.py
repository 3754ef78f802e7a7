"""The toy GPT's file: one JSON object, read strictly and written reproducibly."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import CheckpointError, ParameterError
from ...sampling.validation import whole_number
from .network import Weights, weight_shapes
from .tokenizer import BPE

MAX_FILE_BYTES = 16 << 20
"""A toy is far smaller; a larger file is not read into memory."""

_SEED_LIMIT = 2**64


@dataclass(frozen=True)
class Settings:
    """The settings in a checkpoint.

    Attributes:
        width: size of the vector at every position.
        context: length of the sliding window, in tokens.
        seed: of the initial weights, in [0, 2**64).
        steps: number of training steps so far.
        learning_rate: of the training steps; > 0.
        tokens: default number of new tokens in a generation.
        max_tokens: largest number that may be asked for.
    """

    width: int = 32
    context: int = 12
    seed: int = 0
    steps: int = 0
    learning_rate: float = 1.0
    tokens: int = 24
    max_tokens: int = 64

    def __post_init__(self) -> None:
        """Refuse values outside the attributes' rules."""
        for name in ("width", "context", "tokens", "max_tokens"):
            whole_number(name, getattr(self, name))
        for name in ("seed", "steps"):
            whole_number(name, getattr(self, name), minimum=0)
        if self.seed >= _SEED_LIMIT:
            raise ParameterError(f"seed must be in [0, 2**64), got {self.seed}")
        if self.tokens > self.max_tokens:
            raise ParameterError(
                f"tokens must be <= max_tokens ({self.max_tokens}), got {self.tokens}"
            )
        if not _is_number(self.learning_rate) or self.learning_rate <= 0:
            raise ParameterError(
                f"learning_rate must be a number > 0, got {self.learning_rate!r}"
            )


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The contents of a file; the weights are float64."""

    settings: Settings
    tokenizer: BPE
    weights: Weights


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint file.

    Raises:
        CheckpointError: not a file, too large, not JSON, or anything in it missing,
            unknown, of a wrong type or size, or not finite.
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
    Path(path).write_text(
        f'{{"settings": {settings},\n"tokenizer": {tokenizer},\n'
        f'"weights": {{\n{matrices}\n}}}}\n',
        encoding="utf-8",
    )


def _rows(weight: Tensor) -> str:
    return ",\n".join(json.dumps(row, separators=(",", ":")) for row in weight.tolist())


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise CheckpointError("it is not a file")
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise CheckpointError(f"it has {size} bytes, more than {MAX_FILE_BYTES}")
    return path.read_text(encoding="utf-8")


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
    _check_keys("the file", data, {"settings", "tokenizer", "weights"})
    _check_keys(
        "settings", data["settings"], {field.name for field in fields(Settings)}
    )
    _check_keys("tokenizer", data["tokenizer"], {"characters", "merges"})
    settings = Settings(**data["settings"])
    if not isinstance(data["tokenizer"]["merges"], list):
        raise CheckpointError("merges must be a list of pairs of tokens")
    tokenizer = BPE(**data["tokenizer"])
    shapes = weight_shapes(settings.width, settings.context, tokenizer.vocab_size)
    _check_keys("weights", data["weights"], shapes.keys())
    weights = {
        name: _matrix(name, data["weights"][name], shape)
        for name, shape in shapes.items()
    }
    return Checkpoint(settings, tokenizer, weights)


def _check_keys(where: str, data: Any, expected: Set[str]) -> None:
    if not isinstance(data, Mapping):
        raise CheckpointError(f"{where} must be an object, got {type(data).__name__}")
    missing = sorted(expected - data.keys())
    unknown = sorted(key[:40] for key in data.keys() - expected)
    if missing or unknown:
        raise CheckpointError(
            f"{where} must have the keys {', '.join(sorted(expected))}; "
            f"missing: {', '.join(missing) or 'none'}; "
            f"unknown: {', '.join(unknown[:8]) or 'none'}"
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
