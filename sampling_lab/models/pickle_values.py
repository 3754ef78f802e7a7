"""What the names in a ``.pt`` stand for, besides tensors.

Trainers keep settings, paths, NumPy numbers and random states beside the weights. Their
own classes are never called: each name gives plain data or a type that is here.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from torch.torch_version import TorchVersion

_PLAIN = re.compile(r"[<>|=][biufcSU]\d{1,4}")  # numbers and text, and no objects


class Settings(dict[str, Any]):
    """The attributes of a namespace, such as the one that `argparse` returns."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes."""
        self.update(state)

    def __repr__(self) -> str:
        """Return a text of bounded length, whatever the attributes hold."""
        return reprlib.repr(dict(self))


class Unread:
    """An array or a random state of NumPy's, of which nothing is needed."""

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        """Leave the state alone."""

    def __repr__(self) -> str:
        """Return what it is, the same in each process."""
        return "(NumPy data)"


class _DType:
    """The code and the byte order of a NumPy dtype."""

    def __init__(self, code: str, *_: object) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]


def _scalar(dtype: _DType, data: bytes) -> Any:
    """Return one NumPy number or text as Python's own."""
    code = f"{dtype.order}{dtype.code}"
    if not _PLAIN.fullmatch(code):
        raise ValueError(f"a NumPy value of type {code[:40]!r} is no number")
    return np.frombuffer(data, code, 1)[0].item()


def _no_bytes() -> bytes:
    return b""


_UNREAD = """_core.multiarray._reconstruct core.multiarray._reconstruct ndarray
random._pickle.__randomstate_ctor random._pickle.__bit_generator_ctor
random._pickle.__generator_ctor random._mt19937.MT19937 random._pcg64.PCG64
random._pcg64.PCG64DXSM random._philox.Philox random._sfc64.SFC64
random.bit_generator.SeedSequence random.bit_generator.__pyx_unpickle_SeedSequence"""

STAND_INS: dict[str, Callable[..., Any]] = {
    "torch.torch_version.TorchVersion": TorchVersion,
    "__builtin__.bytes": _no_bytes,  # how empty bytes are written, without arguments
    "builtins.bytes": _no_bytes,  # what torch calls the same
    "argparse.Namespace": Settings,
    "types.SimpleNamespace": Settings,
    "numpy.dtype": _DType,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,  # since NumPy 2
    **{f"numpy.{name}": Unread for name in _UNREAD.split()},
    **{
        f"{module}.{pure}{system}Path": path
        for module in ("pathlib", "pathlib._local")  # the latter in Python 3.13
        for system, path in (("Posix", PurePosixPath), ("Windows", PureWindowsPath))
        for pure in ("", "Pure")
    },
}
"""Name in a pickle -> what is called in its place."""
