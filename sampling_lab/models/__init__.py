"""Load a checkpoint of any known format; the format is found from the file itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError, ParameterError

if TYPE_CHECKING:
    from .base import Model

FORMATS = {
    "xslm": "a JSON toy GPT (model.json)",
    "scratch_llm": "a train-llm-from-scratch .pt",
    "kimi_k3": "a Kimi K3 trainer .pt, format version 7",
    "huggingface": "a directory, hub name or .gguf that transformers loads",
}
"""Format name -> what its checkpoints look like; each is a module of this package."""

_KINDS = {
    "xslm": "json",
    "scratch_llm": "torch",
    "kimi_k3": "torch",
    "huggingface": "huggingface",
}  # format -> what its files begin as
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_LFS_POINTER = b"version https://git-lfs"


def load(
    path_or_name: str | Path,
    *,
    format: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    trust_remote_code: bool = False,
    **options: Any,
) -> Model:
    """Load a checkpoint and return its model, ready to generate.

    Args:
        path_or_name: a file, a directory, or a hub name (``organisation/model``).
        format: one of `FORMATS`; found from the file itself when None.
        device: "auto" (CUDA where there is one), "cpu", "cuda", ….
        dtype: "auto" (the format's own), "float32", "bfloat16", ….
        trust_remote_code: allow a hub model's own code to run; off by default.
        options: what the one format understands, such as `tokenizer=` for Kimi K3.

    Raises:
        CheckpointError: no such file, a damaged or unknown one, or one that would
            run code; the message says what was found and what to do.

    Example:
        >>> from sampling_lab import load
        >>> load("checkpoints/xslm/model.json").card.vocab_size
        40
    """
    if format is not None and format not in FORMATS:
        raise ParameterError(
            f"format must be one of {', '.join(FORMATS)} or None, got {format!r}"
        )
    target = _find(path_or_name)
    name = format or (detect(target) if isinstance(target, Path) else "huggingface")
    # The loader itself knows best what is wrong with a file of its own kind.
    if isinstance(target, Path) and _kind(target) not in (_KINDS[name], None):
        check_format(target, name)
    loader = _loader(name)
    return loader(
        target,
        device=device,
        dtype=dtype,
        trust_remote_code=trust_remote_code,
        **options,
    )


def _loader(name: str) -> Callable[..., Model]:
    return import_module(f".{name}", __name__).load


def _find(path_or_name: str | Path) -> Path | str:
    """Return an existing path, or a hub name; a mistyped path never asks the hub."""
    path = Path(path_or_name).expanduser()
    if path.exists():
        return path
    text = str(path_or_name)
    folder = Path(text.split("/")[0])
    is_name = isinstance(path_or_name, str) and _HUB_NAME.fullmatch(text)
    is_file_like = path.suffix in {".json", ".pt", ".pth", ".gguf", ".safetensors"}
    if is_name and "/" in text and not is_file_like and not folder.exists():
        return text
    raise CheckpointError(
        f"there is no file or directory {path.absolute()}; check the spelling"
        f"{_neighbours(path)}, or give a hub name as organisation/model"
    )


def _neighbours(path: Path) -> str:
    """Name what does lie in the nearest folder that exists."""
    parent = next((p for p in path.absolute().parents if p.is_dir()), None)
    if parent is None or parent == Path(parent.anchor):
        return ""
    found = sorted(p.name for p in parent.iterdir() if not p.name.startswith("."))
    return f" ({parent} holds: {', '.join(found[:8]) or 'nothing'})"


def check_format(path: Path, name: str) -> None:
    """Refuse a file or directory of another format than `name`, saying which fits.

    Raises:
        CheckpointError: of another format, or of none.
    """
    found = detect(path)
    if found != name:
        raise CheckpointError(
            f"{path} is {FORMATS[found]}, not {FORMATS[name]}; load it with "
            f"format={found!r} or without a format"
        )


def detect(path: Path) -> str:
    """Return the name of the format of an existing file or directory.

    Raises:
        CheckpointError: empty, a Git LFS pointer, or nothing the lab knows.
    """
    if path.is_dir():
        return _detect_directory(path)
    head = _head(path)
    if not head:
        raise CheckpointError(f"{path} is empty (0 bytes); copy or download it again")
    if head.startswith(_LFS_POINTER):
        raise CheckpointError(
            f"{path} is a Git LFS pointer of {path.stat().st_size} bytes, not the "
            "checkpoint; run `git lfs pull`"
        )
    kind = _kind(path)
    if kind == "json":
        return _detect_json(path)
    if kind == "torch":
        return _detect_torch(path)
    if kind is not None:
        return kind
    raise CheckpointError(
        f"{path} ({path.stat().st_size} bytes, beginning {head[:12]!r}) is no "
        f"checkpoint the lab knows; it loads {'; '.join(FORMATS.values())}"
    )


def _kind(path: Path) -> str | None:
    """Return what a file or directory begins as, or None where no format does."""
    head = b"GGUF" if path.is_dir() else _head(path)
    if head.startswith(b"GGUF"):
        return "huggingface"
    if head.lstrip().startswith(b"{"):
        return "json"
    return "torch" if head.startswith((b"PK", b"\x80")) else None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(64)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def _detect_directory(path: Path) -> str:
    if (path / "config.json").is_file():
        return "huggingface"
    files = [p for p in sorted(path.iterdir()) if p.suffix in {".json", ".pt", ".gguf"}]
    hint = f"; did you mean {files[0]}?" if files else ""
    raise CheckpointError(f"{path.absolute()} has no config.json{hint}")


def _detect_json(path: Path) -> str:
    try:
        keys = json.loads(path.read_text(encoding="utf-8")).keys()
    except (ValueError, RecursionError) as error:  # nested too deep, numbers too long
        raise CheckpointError(f"{path} is not valid JSON: {error}") from None
    if {"settings", "tokenizer", "weights"} <= keys:
        return "xslm"
    if path.name == "config.json":
        raise CheckpointError(f"{path} is one file of a model; load its directory")
    raise CheckpointError(
        f"{path} is JSON with keys {sorted(keys)}; an XSLM checkpoint has settings, "
        "tokenizer and weights"
    )


def _detect_torch(path: Path) -> str:
    from .torch_file import read_torch_file

    content = read_torch_file(path, weights=False)
    parts = [part for part in content.values() if isinstance(part, dict)]
    names = (str(name) for part in parts for name in part)
    # The names tell of a file that has lost its version, too.
    is_kimi = "format_version" in content or any("model.layers." in n for n in names)
    return "kimi_k3" if is_kimi else "scratch_llm"
