"""Open a ``.pt`` file: tensors and plain values only, no larger than the file."""

from __future__ import annotations

import codecs
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import CheckpointError
from .checks import first_sentence, listed, read_head
from .pickle_imports import first_refused
from .pickle_values import STAND_INS

_PREFIXES = re.compile(r"(module\.|_orig_mod\.|transformer\.)+")
_STORAGE = re.compile(r"[^/]+/data/\d+")  # a tensor's bytes: never unpickled
_ALLOWED: list[Any] = [(value, name) for name, value in STAND_INS.items()]
_SHARED = 2  # a tied weight has the same bytes under two names


def read_torch_file(path: str | Path, *, weights: bool = True) -> dict[str, Any]:
    """Return the dictionary in a ``.pt`` file; the only way that any is opened.

    Nothing in the file is executed. The names that its pickle would import are read
    first and must all be harmless; then `torch.load` reads it with `weights_only`,
    first without data, so that every size is compared with the file's before memory is
    taken. With `weights`, the archive's checksums are compared too.

    Args:
        path: a file that `torch.save` wrote.
        weights: map the tensors' data; otherwise they are on the meta device, which
            has shapes and dtypes and takes no memory.

    Returns:
        The file's top-level dictionary. Tensors are private views of the file on
        the CPU: copy what you keep.

    Raises:
        CheckpointError: not a ``.pt``, cut short, damaged, claiming more than the file
            has, or one that could run code; the refused type is named.
    """
    path = Path(path)
    if path.is_dir():
        raise CheckpointError(f"{path} is a directory; give the .pt file in it")
    _check_head(path, read_head(path))
    _check_archive(path, contents=weights)
    outline = _torch_load(path, map_location="meta")
    if not isinstance(outline, dict):
        raise CheckpointError(
            f"{path} holds a {type(outline).__name__} at the top; a checkpoint is a "
            "dictionary with its settings and weights"
        )
    _check_sizes(path, outline)
    return _torch_load(path, map_location="cpu", mmap=True) if weights else outline


def strip_prefixes(state: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a state dict without the prefixes that training wrappers put first.

    ``module.``, ``_orig_mod.`` and ``transformer.`` go in any order and repeated, at
    the start of a name only.

    >>> strip_prefixes({"module._orig_mod.lm_head.bias": 1, "mlp.module.x": 2})
    {'lm_head.bias': 1, 'mlp.module.x': 2}
    """
    stripped: dict[str, Any] = {}
    for name, value in state.items():
        if not isinstance(name, str):
            raise CheckpointError(f"names of weights must be text, got {name!r}")
        short = name[match.end() :] if (match := _PREFIXES.match(name)) else name
        if short in stripped:
            raise CheckpointError(
                f"{short} is in the state dict twice, under different prefixes"
            )
        stripped[short] = value
    return stripped


def check_state(
    expected: Mapping[str, Sequence[int]],
    state: Mapping[str, Any],
    *,
    optional: Mapping[str, Sequence[int]] | None = None,
    allowed_extra: Sequence[str] = (),
    source: object = "the checkpoint",
) -> None:
    """Compare a state dict with the shapes that a configuration asks for.

    Call it before any module is allocated.

    Args:
        expected: name -> shape of every weight; each must be a float tensor.
        state: what the file holds, prefixes stripped.
        optional: name -> shape of what may be absent, such as a causal mask.
        allowed_extra: beginnings of names that may be there and are not used.
        source: what the message calls the file.

    Raises:
        CheckpointError: lists missing, unexpected and wrongly shaped names.
    """
    optional = optional or {}
    known = {**expected, **optional}
    extra = tuple(allowed_extra)
    missing = [name for name in expected if name not in state]
    unexpected = [n for n in state if n not in known and not n.startswith(extra)]
    wrong = [
        fault
        for name, shape in known.items()
        if name in state and (fault := _fault(name, state[name], shape, expected))
    ]
    problems = [("missing", missing), ("unexpected", unexpected), ("wrong", wrong)]
    found = [
        f"{len(names):,} {word} ({listed(names, 4)})"
        for word, names in problems
        if names
    ]
    if found:
        raise CheckpointError(
            f"{source} does not hold the weights its configuration asks for: "
            + "; ".join(found)
        )


def _fault(
    name: str, value: Any, shape: Sequence[int], expected: Mapping[str, object]
) -> str | None:
    if not isinstance(value, Tensor):
        return f"{name} is a {type(value).__name__}, not a tensor"
    if tuple(value.shape) != tuple(shape):
        return f"{name} is {tuple(value.shape)}, not {tuple(shape)}"
    if name in expected and not value.is_floating_point():
        return f"{name} is {value.dtype}, not floating-point"
    return None


def _check_head(path: Path, head: bytes) -> None:
    """Refuse what is not a `torch.save` archive, saying what it is instead."""
    if zipfile.is_zipfile(path):
        return
    what = f"{path} ({path.stat().st_size} bytes)"
    if head.startswith(b"PK"):
        raise CheckpointError(
            f"{what} begins like a .pt but is cut short; copy or download it again"
        )
    if head.startswith(b"\x80"):
        raise CheckpointError(
            f"{what} is in torch's old format, or is a plain pickle; load it where it "
            "was made and write it again with torch.save"
        )
    kind = "text" if _is_text(head) else f"data that begins {head[:8]!r}"
    raise CheckpointError(f"{what} is {kind}, not a .pt checkpoint")


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # may end in mid-character
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _check_archive(path: Path, *, contents: bool) -> None:
    """Check the table of contents and all pickles; with `contents`, every CRC too."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_table(path, archive.infolist())
            for member in archive.infolist():
                if not _STORAGE.fullmatch(member.filename):
                    _check_member(path, archive, member.filename)
            damaged = archive.testzip() if contents else None
    except CheckpointError:
        raise
    except Exception as error:  # zipfile raises many kinds over damaged bytes
        raise CheckpointError(
            f"{path} is a damaged archive: {first_sentence(error)}"
        ) from error
    if damaged is not None:
        raise CheckpointError(
            f"{path} is damaged: the bytes of {damaged} do not have the CRC that was "
            "written with them; copy or download it again"
        )


def _check_table(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    size, claimed = path.stat().st_size, sum(member.file_size for member in members)
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    if not stored or claimed > size:
        raise CheckpointError(
            f"{path} ({size:,} bytes) says that it unpacks to {claimed:,} bytes; "
            "torch.save never compresses, so this is not a checkpoint"
        )
    if len({member.filename for member in members}) < len(members):
        raise CheckpointError(f"{path} holds one file name twice; it is damaged")


def _check_member(path: Path, archive: zipfile.ZipFile, name: str) -> None:
    """Refuse a program, an archive, and a pickle that imports what is not harmless."""
    if name.endswith("/constants.pkl"):
        raise CheckpointError(f"{path} is a TorchScript program, not a checkpoint")
    with archive.open(name) as file:
        head = file.read(2)
    if head == b"PK":
        raise CheckpointError(
            f"{path} holds an archive, {name}, which torch.load does not open; load "
            "the .pt that is inside"
        )
    if not (name.endswith(".pkl") or head.startswith(b"\x80")):
        return
    with archive.open(name) as file:
        refused = first_refused(file)
    if refused is not None:
        raise CheckpointError(
            f"{path} is refused: {name} asks for {refused}, which could run code; "
            "only tensors and plain values are loaded, so save it again without that"
        )


def _torch_load(path: Path, **options: Any) -> Any:
    """Call `torch.load` with `STAND_INS` allowed for the time of the call, and no more.

    What a caller has allowed is put back afterwards.
    """
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with torch.serialization.safe_globals(_ALLOWED):
            return torch.load(path, weights_only=True, **options)
    except Exception as error:
        raise CheckpointError(
            f"{path} ({path.stat().st_size:,} bytes) is not a whole .pt checkpoint: "
            f"{first_sentence(error)}"
        ) from error
    finally:
        torch.serialization.add_safe_globals(before)


def _check_sizes(path: Path, outline: dict[str, Any]) -> None:
    """Refuse tensors that claim more bytes than the file has."""
    size, total = path.stat().st_size, 0
    for name, tensor in _tensors(outline):
        total += tensor.numel() * tensor.itemsize
        claimed = max(total, tensor.untyped_storage().nbytes())
        if claimed > _SHARED * size:
            raise CheckpointError(
                f"{path} has {size:,} bytes, but its tensors up to {name} "
                f"{tuple(tensor.shape)} claim {claimed:,}"
            )


def _tensors(root: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor inside nested containers, with the path of keys to it."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Tensor):
            yield name.removeprefix("."), value
        if not isinstance(value, dict | list | tuple) or id(value) in seen:
            continue
        seen.add(id(value))
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        waiting += [(f"{name}.{key}", inner) for key, inner in pairs]
