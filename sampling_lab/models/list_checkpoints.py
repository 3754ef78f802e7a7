"""Find the checkpoints in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import CheckpointError
from .formats import detect

FOLDER = "checkpoints"
"""The folder of the shipped checkpoints, at the root of a clone."""


def list_checkpoints(folder: str | Path | None = None) -> list[Path]:
    """Return the paths that `load` accepts in a folder and in those below it.

    A folder with a config.json is one checkpoint, and no other file in it is listed.
    Files that cannot be read as a checkpoint are left out.

    Args:
        folder: None is the first `checkpoints` among the current folder's, its
            parent's and the clone that contains the package.

    Example:
        >>> [path.name for path in list_checkpoints("checkpoints/xslm")]
        ['model-20-steps.json', 'model.json']
    """
    place = find_folder() if folder is None else Path(folder)
    return sorted(_below(place)) if place and place.is_dir() else []


def find_folder() -> Path | None:
    """Return the folder with the lab's checkpoints, as seen from the current one."""
    clone = Path(__file__).parents[2] / FOLDER
    near = [Path(FOLDER), Path(os.pardir) / FOLDER, clone]
    return next((place for place in near if place.is_dir()), None)


def _below(folder: Path, depth: int = 2) -> Iterator[Path]:
    if (folder / "config.json").is_file():
        yield folder
        return
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir() and depth:  # bounded, for a link may lead back up
            yield from _below(path, depth - 1)
        elif _is_checkpoint(path):
            yield path


def _is_checkpoint(path: Path) -> bool:
    if path.suffix not in {".json", ".pt", ".pth", ".gguf"}:
        return False
    try:
        return bool(detect(path))
    except CheckpointError:
        return False
