"""Files that the lab writes: the cache folder, whole files only, and their hashes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder for everything the lab caches; it need not exist yet.

    It is ``SAMPLING_LAB_CACHE`` if set, else ``sampling_lab`` in the user's cache
    folder (``XDG_CACHE_HOME``, else ``~/.cache``).
    """
    if own := os.environ.get("SAMPLING_LAB_CACHE"):
        return Path(own).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "sampling_lab"


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder inside `parent`, deleted afterwards.

    It is on the same disk as its neighbours, so that moving a finished file next to it
    is a rename, which happens wholly or not at all.
    """
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=parent) as name:
        yield Path(name)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees it half-written.

    Until it is complete, even after an interrupt, what was in the file stays there.
    The folder must exist.
    """
    with scratch_folder(path.parent) as scratch:
        finished = scratch / path.name
        finished.write_bytes(data)
        os.replace(finished, path)


def sha256(path: Path) -> str:
    """Return a file's SHA-256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
