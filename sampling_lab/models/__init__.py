"""Load a checkpoint of any known format; the format is found from the file itself."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError, ParameterError
from .formats import FORMATS, begins_as, check_format, detect

if TYPE_CHECKING:
    from .base import Model


_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


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
        device: "auto" (CUDA where available), "cpu", "cuda", ….
        dtype: "auto" (the format's own), "float32", "bfloat16", ….
        trust_remote_code: allow a hub model's own code to run; off by default.
        options: further options of one format, such as `tokenizer=` for Kimi K3.

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
    if isinstance(target, Path):
        # Of a file of its kind, the loader itself says best what is wrong.
        if begins_as(target) not in (FORMATS[name].begins_as, None):
            check_format(target, name)
    loader = import_module(f".{name}.model", __name__)
    model: Model = loader.load(
        target,
        device=device,
        dtype=dtype,
        trust_remote_code=trust_remote_code,
        **options,
    )
    return model


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
    """Return a hint that lists the nearest folder that exists."""
    parent = next((p for p in path.absolute().parents if p.is_dir()), None)
    if parent is None or parent == Path(parent.anchor):
        return ""
    found = sorted(p.name for p in parent.iterdir() if not p.name.startswith("."))
    return f" ({parent} holds: {', '.join(found[:8]) or 'nothing'})"
