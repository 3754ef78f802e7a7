"""Read a GGUF file's header with `gguf`, comparing each size with the file itself."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType
from gguf.gguf_reader import READER_SUPPORTED_VERSIONS

from ...errors import CheckpointError
from ..checks import first_sentence

_MOST_KEYS, _MOST_TENSORS = 1_024, 16_384
# Of all arrays together: `GGUFReader`, which transformers uses, takes a kilobyte for
# each. A vocabulary of 262,144 tokens has 1.3 million.
_MOST_VALUES, _VALUES_PER_TOKEN = 1 << 21, 8
_LONGEST_TEXT = 1 << 20
_MOST_DIMENSIONS = 4


@dataclass(frozen=True)
class GgufHeader:
    """The facts in a GGUF file's header.

    Attributes:
        metadata: key -> number, string or bool; an array is given as its length.
        shapes: tensor name -> shape, in torch's order.
        rope_factors: what divides each rotary frequency, or None.
    """

    metadata: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    rope_factors: list[float] | None

    @property
    def architecture(self) -> str:
        """The architecture's name in llama.cpp's spelling, such as ``llama``."""
        return str(self.metadata.get("general.architecture", ""))

    @property
    def elements(self) -> int:
        """The number of weights in all tensors, without the rotary factors."""
        return sum(map(prod, self.shapes.values())) - len(self.rope_factors or ())


def read_header(path: Path) -> GgufHeader:
    """Return the header of a GGUF file, whose tensors all lie inside the file.

    Raises:
        CheckpointError: not GGUF, an unknown version, cut short, or damaged.
    """
    try:
        with path.open("rb") as file:
            magic, version, tensors, keys = struct.unpack("<4sIQQ", file.read(24))
        if magic != b"GGUF" or version not in READER_SUPPORTED_VERSIONS:
            raise ValueError(f"it begins {magic!r}, version {version}, not GGUF 2 or 3")
        if keys > _MOST_KEYS or tensors > _MOST_TENSORS:
            raise ValueError(f"it claims to have {keys:,} keys and {tensors:,} tensors")
        with np.errstate(over="raise"):  # an offset beyond 64 bits
            return _header(_CheckedReader(path))
    except Exception as error:  # the reader raises many kinds over damaged bytes
        raise CheckpointError(
            f"{path} ({path.stat().st_size} bytes) is cut short or damaged: "
            f"{first_sentence(error)}; copy or download it again"
        ) from None


class _CheckedReader(GGUFReader):
    """The library's reader, except that no size in the file is taken on trust.

    The library shortens what reaches beyond the end of the file, and makes several
    objects for every value of an array. Here the first is an error, and an array's
    field holds its length.
    """

    values = 0  # in all arrays so far

    def _get(
        self, offset: int, dtype: Any, count: Any = 1, *rest: Any, **order: Any
    ) -> Any:
        if dtype is np.uint64 and count > _MOST_DIMENSIONS:
            raise ValueError(f"a tensor claims {count} dimensions")
        found = super()._get(offset, dtype, count, *rest, **order)
        if len(found) < count:
            raise ValueError(f"{count} values are promised at byte {offset}")
        return found

    def _get_str(self, offset: int) -> Any:
        length, text = super()._get_str(offset)
        if len(text) > _LONGEST_TEXT:
            raise ValueError(f"a text of {len(text):,} bytes at byte {offset}")
        return length, text

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        kind = GGUFValueType(self._get(orig_offs, np.uint32)[0])
        length = self._get(orig_offs + 4, np.uint64)
        start, count = orig_offs + 12, int(length[0])
        self.values += count
        if self.values > _MOST_VALUES:
            raise ValueError(f"an array of {count:,} values at byte {start}")
        if kind == GGUFValueType.STRING:
            end = start
            for _ in range(count):
                end += 8 + struct.unpack_from("<Q", self.data.data, end)[0]
        else:
            end = start + count * np.dtype(self.gguf_scalar_to_np[kind]).itemsize
        self._get(start, np.uint8, end - start)  # it lies inside the file
        return end - orig_offs, [length], [0], [GGUFValueType.UINT64]


def _header(reader: _CheckedReader) -> GgufHeader:
    shapes = {t.name: tuple(map(int, reversed(t.shape))) for t in reader.tensors}
    tokens = shapes.get("token_embd.weight", (0,))[0]
    if reader.values > _VALUES_PER_TOKEN * tokens + 4096:
        raise ValueError(f"arrays of {reader.values:,} values for {tokens:,} tokens")
    factors = [t for t in reader.tensors if t.name == "rope_freqs.weight"]
    if factors and factors[0].tensor_type != GGMLQuantizationType.F32:
        raise ValueError("its rotary factors are not stored as F32")
    return GgufHeader(
        {name: field.contents() for name, field in reader.fields.items()},
        shapes,
        factors[0].data.tolist() if factors else None,
    )
