"""Load a checkpoint of any known format; the format is found from the file itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError, ParameterError
from ..sampling.validation import rule_error
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
    parse_special: bool = False,
    **options: Any,
) -> Model:
    """Load a checkpoint and return its model, ready to generate.

    Args:
        path_or_name: a file, a directory, or a hub name (``organisation/model``).
        format: one of `FORMATS`; found from the file itself when None.
        device: "auto" (CUDA where available), "cpu", "cuda", ….
        dtype: "auto" (the format's own), "float32", "bfloat16", ….
        parse_special: read the names of special tokens in a prompt's text as those
            tokens; otherwise they are plain characters, as they always are in chats.
        options: what the format's own `load` takes, such as `tokenizer`, `rename` and
            `trust_remote_code` of Kimi K3; all of them are off by default.

    Raises:
        CheckpointError: no such file, a damaged or unknown one, or one that would
            run code; the message says what was found and what to do.
        ParameterError: an option that the format does not have, or a bad value.

    Example:
        >>> from sampling_lab import load
        >>> load("checkpoints/xslm/model.json").card.vocab_size
        40
    """
    if not isinstance(path_or_name, str | PathLike):
        raise rule_error("path_or_name", "a path or a hub name", path_or_name)
    if not isinstance(format, str | None) or format not in (None, *FORMATS):
        raise rule_error("format", f"one of {', '.join(FORMATS)} or None", format)
    target = _find(path_or_name)
    name = format or (detect(target) if isinstance(target, Path) else "huggingface")
    if isinstance(target, Path):
        # Of a file of its kind, the loader itself says best what is wrong.
        if begins_as(target) not in (FORMATS[name].begins_as, None):
            check_format(target, name)
    loader = import_module(f".{name}.model", __name__)
    _check_options(name, options, loader.load)
    model: Model = loader.load(target, device=device, dtype=dtype, **options)
    model.parse_special = parse_special
    return model


def _check_options(name: str, options: Mapping[str, Any], loader: Any) -> None:
    """Refuse what is not a keyword of the format's loader."""
    parameters = [*inspect.signature(loader).parameters.values()][1:]
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    unknown = [option for option in options if option not in known]
    if unknown:
        own = [f"{option}=" for option in known if option not in ("device", "dtype")]
        raise ParameterError(
            f"{unknown[0]} is no option of {name} checkpoints, which have "
            f"{', '.join(own) or 'none'}; leave it out"
        )


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
