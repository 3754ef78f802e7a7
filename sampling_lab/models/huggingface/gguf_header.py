"""Read a GGUF file's header with every length checked against the file itself."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ...errors import CheckpointError, MissingPackageError

_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?QqdE", strict=False))
_STRING, _ARRAY = 8, 9
_FLOAT32 = 0  # the kind of a tensor
_VERSIONS = (2, 3)


@dataclass(frozen=True)
class GgufTensor:
    """Where a tensor lies in the file: its shape in torch's order, kind and place."""

    shape: tuple[int, ...]
    kind: int
    start: int


@dataclass(frozen=True)
class GgufHeader:
    """What a GGUF file says about itself.

    Attributes:
        metadata: key -> number, string or bool; an array is given as its length.
        tensors: name -> where it lies.
    """

    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]

    @property
    def architecture(self) -> str:
        """The architecture's name in llama.cpp's spelling, such as ``llama``."""
        return str(self.metadata.get("general.architecture", ""))

    @property
    def elements(self) -> int:
        """How many weights there are in all tensors together."""
        return sum(map(prod, self.shapes.values()))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Tensor name -> shape."""
        return {name: tensor.shape for name, tensor in self.tensors.items()}


def read_header(path: Path) -> GgufHeader:
    """Return the header of a GGUF file, whose tensors all lie inside the file.

    Nothing is allocated on the word of the file: each count and length is compared
    with the bytes that are left.

    Raises:
        CheckpointError: not GGUF, an unknown version, cut short, or damaged.
        MissingPackageError: the `gguf` package is not installed.
    """
    size = path.stat().st_size
    if size < 24:
        raise CheckpointError(f"{path} ({size} bytes) is too short to be a GGUF file")
    with path.open("rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _parse(_Cursor(data))
            except (struct.error, UnicodeDecodeError, ValueError) as error:
                raise CheckpointError(
                    f"{path} ({size} bytes) is cut short or damaged: {error}; "
                    "copy or download it again"
                ) from None


class _Cursor:
    """A place in the file; reading past the end raises `struct.error`."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def read(self, format: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{format}", self.data, self.at)
        self.at += struct.calcsize(f"<{format}")
        return values

    def skip(self, count: int) -> None:
        if count > len(self.data) - self.at:
            raise ValueError(
                f"{count} bytes are promised at byte {self.at} of {len(self.data)}"
            )
        self.at += count

    def string(self) -> str:
        (length,) = self.read("Q")
        start = self.at
        self.skip(length)
        return self.data[start : self.at].decode("utf-8")


def _parse(cursor: _Cursor) -> GgufHeader:
    magic, version, tensor_count, key_count = cursor.read("4sIQQ")
    if magic != b"GGUF" or version not in _VERSIONS:
        raise ValueError(f"it begins {magic!r}, version {version}, not GGUF 2 or 3")
    metadata = {cursor.string(): _value(cursor) for _ in range(key_count)}
    tensors = [_tensor(cursor) for _ in range(tensor_count)]
    start = _aligned(cursor.at, metadata.get("general.alignment", 32))
    placed = {
        name: GgufTensor(shape, kind, start + offset)
        for name, shape, kind, offset in tensors
    }
    for name, tensor in placed.items():
        _check_extent(name, tensor, len(cursor.data))
    return GgufHeader(metadata, placed)


def _aligned(at: int, alignment: Any) -> int:
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"general.alignment must be a power of 2, got {alignment!r}")
    return -(-at // alignment) * alignment


def _value(cursor: _Cursor) -> Any:
    (kind,) = cursor.read("I")
    if kind in _SCALARS:
        return cursor.read(_SCALARS[kind])[0]
    if kind == _STRING:
        return cursor.string()
    if kind == _ARRAY:
        return _array_length(cursor)
    raise ValueError(f"unknown value type {kind} at byte {cursor.at}")


def _array_length(cursor: _Cursor) -> int:
    kind, count = cursor.read("IQ")
    if kind in _SCALARS:
        cursor.skip(count * struct.calcsize(_SCALARS[kind]))
    elif kind == _STRING:
        for _ in range(count):
            cursor.skip(*cursor.read("Q"))
    else:
        raise ValueError(f"unknown array type {kind} at byte {cursor.at}")
    return count


def _tensor(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.string()
    (dimensions,) = cursor.read("I")
    if dimensions > 8:
        raise ValueError(f"tensor {name} claims {dimensions} dimensions")
    shape = cursor.read(f"{dimensions}Q")
    kind, offset = cursor.read("IQ")
    return name, tuple(reversed(shape)), kind, offset


def _check_extent(name: str, tensor: GgufTensor, size: int) -> None:
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    except ImportError as error:
        raise MissingPackageError(
            "reading a GGUF file needs the gguf package; run `pip install gguf`"
        ) from error
    block, width = GGML_QUANT_SIZES[GGMLQuantizationType(tensor.kind)]
    end = tensor.start + prod(tensor.shape) // block * width
    if end > size:
        raise ValueError(
            f"tensor {name} {list(tensor.shape)} ends at byte {end} of {size}"
        )


def read_floats(path: Path, tensor: GgufTensor) -> list[float]:
    """Return the values of a small tensor that is stored as plain float32."""
    if tensor.kind != _FLOAT32:
        raise CheckpointError(f"{path} stores factors as kind {tensor.kind}, not F32")
    count = prod(tensor.shape)
    with path.open("rb") as file:
        file.seek(tensor.start)
        return list(struct.unpack(f"<{count}f", file.read(4 * count)))
