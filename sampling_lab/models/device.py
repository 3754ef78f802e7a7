"""The device and the precision of a model's weights."""

from __future__ import annotations

import torch

from ..errors import ParameterError
from .checks import first_sentence

_DTYPES = ("float32", "bfloat16", "float16", "float64")


def find_device(name: str) -> torch.device:
    """Return the device of a name; "auto" is CUDA where available, else the CPU.

    Raises:
        ParameterError: no such device on this machine.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ParameterError(
            f"device must be auto, cpu, or an accelerator that is there, got {name!r} "
            f"({first_sentence(error)})"
        ) from error
    if device.type == "meta":
        raise ParameterError("device must hold data, got 'meta'")
    return device


def find_dtype(name: str, own: torch.dtype) -> torch.dtype:
    """Return the dtype of a name; "auto" is the checkpoint's own.

    Raises:
        ParameterError: not one of the float types that weights come in.
    """
    if name == "auto":
        return own
    if name not in _DTYPES:
        raise ParameterError(
            f"dtype must be auto or {', '.join(_DTYPES)}, got {name!r}"
        )
    dtype: torch.dtype = getattr(torch, name)
    return dtype
