"""Detect the format of a checkpoint from the file itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..errors import CheckpointError
from .checks import read_head


@dataclass(frozen=True)
class Format:
    """A kind of checkpoint; the package of its name in this room loads it.

    Attributes:
        name: as in `load(format=…)` and on cards.
        description: what its checkpoints look like.
        begins_as: how its files begin, as `begins_as` calls it.
    """

    name: str
    description: str
    begins_as: str


FORMATS = {
    format.name: format
    for format in (
        Format("xslm", "a JSON toy GPT (model.json)", "json"),
        Format("scratch_llm", "a train-llm-from-scratch .pt", "torch"),
        Format("kimi_k3", "a Kimi K3 trainer .pt, format version 7", "torch"),
        Format(
            "huggingface",
            "a directory, hub name or .gguf that transformers loads",
            "huggingface",
        ),
    )
}
"""Name -> format."""


def check_format(path: Path, name: str) -> None:
    """Refuse a file or directory of another format than `name`, saying which fits.

    Raises:
        CheckpointError: of another format, or of no known one.
    """
    found = detect(path)
    if found != name:
        raise CheckpointError(
            f"{path} is {FORMATS[found].description}, not {FORMATS[name].description}; "
            f"load it with format={found!r} or without a format"
        )


def detect(path: Path) -> str:
    """Return the name of the format of an existing file or directory.

    Raises:
        CheckpointError: empty, a Git LFS pointer, or of no known format.
    """
    if path.is_dir():
        return _detect_directory(path)
    kind = begins_as(path)
    if kind == "json":
        return _detect_json(path)
    if kind == "torch":
        return _detect_torch(path)
    if kind is not None:
        return kind
    known = "; ".join(format.description for format in FORMATS.values())
    raise CheckpointError(
        f"{path} ({path.stat().st_size} bytes, beginning {read_head(path)[:12]!r}) is "
        f"no checkpoint the lab knows; it loads {known}"
    )


def begins_as(path: Path) -> str | None:
    """Return the `Format.begins_as` of a file or directory, or None for no format.

    Raises:
        CheckpointError: unreadable, empty, or a Git LFS pointer.
    """
    head = b"GGUF" if path.is_dir() else read_head(path, 64)
    if head.startswith(b"GGUF"):
        return "huggingface"
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return "json"
    return "torch" if head.startswith((b"PK", b"\x80")) else None


def _detect_directory(path: Path) -> str:
    if (path / "config.json").is_file():
        return "huggingface"
    files = [p for p in sorted(path.iterdir()) if p.suffix in {".json", ".pt", ".gguf"}]
    hint = f"; did you mean {files[0]}?" if files else ""
    raise CheckpointError(f"{path.absolute()} has no config.json{hint}")


def _detect_json(path: Path) -> str:
    try:
        keys = json.loads(path.read_text(encoding="utf-8-sig")).keys()
    except (ValueError, RecursionError) as error:  # nested too deep, numbers too long
        raise CheckpointError(f"{path} is not valid JSON: {error}") from None
    if {"tokenizer", "weights"} <= keys:
        return "xslm"
    if path.name == "config.json":
        raise CheckpointError(f"{path} is one file of a model; load its directory")
    raise CheckpointError(
        f"{path} is JSON with keys {sorted(keys)}; an XSLM checkpoint has settings, "
        "tokenizer and weights"
    )


def _detect_torch(path: Path) -> str:
    from .torch_file import read_torch_file  # torch, only where a file needs it

    content = read_torch_file(path, weights=False)
    parts = [part for part in content.values() if isinstance(part, dict)]
    names = (str(name) for part in parts for name in part)
    # The names of its weights reveal a file that has lost its version, too.
    is_kimi = "format_version" in content or any("model.layers." in n for n in names)
    return "kimi_k3" if is_kimi else "scratch_llm"
