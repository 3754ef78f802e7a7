"""Which format a checkpoint has, found from the file itself."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import CheckpointError

FORMATS = {
    "xslm": "a JSON toy GPT (model.json)",
    "scratch_llm": "a train-llm-from-scratch .pt",
    "kimi_k3": "a Kimi K3 trainer .pt, format version 7",
    "huggingface": "a directory, hub name or .gguf that transformers loads",
}
"""Format name -> what its checkpoints look like; each is a module of this package."""


BEGINS_AS = {
    "xslm": "json",
    "scratch_llm": "torch",
    "kimi_k3": "torch",
    "huggingface": "huggingface",
}
"""Format name -> what its files begin as."""


_LFS_POINTER = b"version https://git-lfs"


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
    kind = begins_as(path)
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


def begins_as(path: Path) -> str | None:
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
