"""List what a pickle would import, from its opcodes, without running them."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from typing import IO, Any

_STORAGES = "Float Double Half BFloat16 Long Int Short Char Byte Bool".split()
_DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()

HARMLESS = frozenset(
    {
        "collections.OrderedDict",
        "torch.Size",
        "torch.device",
        "torch.torch_version.TorchVersion",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_parameter",
        *(f"torch.{name}Storage" for name in _STORAGES),
        *(f"torch.{name}" for name in _DTYPES),
    }
)
"""Every name that a checkpoint of tensors and plain settings needs.

Shorter than the list of `torch.load(weights_only=True)`, which also has types that
take as much memory as a file asks for, such as ``bytearray``.
"""

_EXTENSIONS = {"EXT1", "EXT2", "EXT4"}
_REMEMBER = {"PUT", "BINPUT", "LONG_BINPUT"}
_RECALL = {"GET", "BINGET", "LONG_BINGET"}


def imported_names(file: IO[bytes]) -> Iterator[str]:
    """Yield the dotted name of everything that one pickle would import.

    Only opcodes are read; nothing is imported or called.

    Raises:
        ValueError: the bytes are not a pickle, or are cut short.
    """
    texts: list[Any] = []  # text operands so far: STACK_GLOBAL takes the last two
    memo: dict[int, Any] = {}
    argument: Any  # of a type that depends on the opcode
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name in {"GLOBAL", "INST"}:
            yield argument.replace(" ", ".", 1)
        elif name == "STACK_GLOBAL":
            yield ".".join(str(text) for text in texts[-2:])
        elif name in _EXTENSIONS:
            yield f"extension code {argument}"
        elif name in _REMEMBER:
            memo[argument] = texts[-1] if texts else None
        elif name == "MEMOIZE":
            memo[len(memo)] = texts[-1] if texts else None
        elif name in _RECALL:
            texts.append(memo.get(argument))
        elif isinstance(argument, str):
            texts.append(argument)


def first_refused(file: IO[bytes]) -> str | None:
    """Return the first name in a pickle that is not `HARMLESS`, or None.

    A pickle that is cut short is read as far as it goes.
    """
    try:
        return next((n for n in imported_names(file) if n not in HARMLESS), None)
    except ValueError:
        return None
