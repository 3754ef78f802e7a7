"""List what a pickle would import, from its opcodes, without running them."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from typing import IO, Any

from .pickle_values import STAND_INS

_STORAGES = "Float Double Half BFloat16 Long Int Short Char Byte Bool".split()
_DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()

HARMLESS = frozenset(
    {
        "collections.OrderedDict",
        "torch.Size",
        "torch.device",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_parameter",
        *(f"torch.{name}Storage" for name in _STORAGES),
        *(f"torch.{name}" for name in _DTYPES),
        *STAND_INS,
        "_codecs.encode",
    }
)
"""Every name that a checkpoint of tensors and a trainer's notes needs.

Shorter than the list of `torch.load(weights_only=True)`, which also has types that
take as much memory as a file asks for, such as ``bytearray``.
"""

_ENCODE = object()  # ``_codecs.encode``, with which the bytes of a number are written
_MISUSED = "_codecs.encode for more than bytes that are in the file"

_EXTENSIONS = {"EXT1", "EXT2", "EXT4"}
_GLOBALS = {"GLOBAL", "INST", "STACK_GLOBAL"}
_REMEMBER = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_RECALL = {"GET", "BINGET", "LONG_BINGET"}


def imported_names(file: IO[bytes]) -> Iterator[str]:
    """Yield the dotted name of everything that one pickle would import.

    Only opcodes are read; nothing is imported or called.

    Raises:
        ValueError: the bytes are not a pickle, or are cut short.
    """
    texts: list[Any] = []  # text operands so far: STACK_GLOBAL takes the last two
    memo: dict[int, Any] = {}
    top: Any = None  # of the stack, where it is text or `_ENCODE`
    since: int | None = None  # how many operations since `_ENCODE`, until its call
    argument: Any  # of a type that depends on the opcode
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name in _REMEMBER:
            memo[len(memo) if name == "MEMOIZE" else argument] = top
            continue
        top = memo.get(argument) if name in _RECALL else argument
        if name in _GLOBALS:
            found = argument or " ".join(str(text) for text in texts[-2:])
            yield (found := found.replace(" ", ".", 1))
            top = _ENCODE if found == "_codecs.encode" else None
        elif name in _EXTENSIONS:
            yield f"extension code {argument}"
        elif isinstance(top, str):
            texts.append(top)
        if since is not None:
            if not _is_encoding(since, name, top):
                yield _MISUSED
            since = since + 1 if since < 3 else None
        if top is _ENCODE:
            since = 0


def _is_encoding(since: int, name: str, top: Any) -> bool:
    """Tell whether an operation after ``_codecs.encode`` is one that pickle writes.

    It takes a text of its own, because recalling a long one again and again would take
    as much memory as a file asks for, and "latin1"; then it is called.
    """
    if since == 0:
        return isinstance(top, str) and (name not in _RECALL or len(top) < 64)
    return top == "latin1" if since == 1 else name == ("TUPLE2", "REDUCE")[since - 2]


def first_refused(file: IO[bytes]) -> str | None:
    """Return the first name in a pickle that is not `HARMLESS`, or None.

    A pickle that is cut short is read as far as it goes.
    """
    try:
        return next((n for n in imported_names(file) if n not in HARMLESS), None)
    except ValueError:
        return None
