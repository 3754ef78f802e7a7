"""Install the pinned packages with pip, showing one line of progress.

Run by `make` with the Python of the virtual environment. What pip itself prints is
shown only if it fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND = [
    *(sys.executable, "-m", "pip", "install", "--no-input", "--progress-bar=raw"),
    *("--constraint", "constraints.txt", "--editable", ".[lab,test]"),
]
_PACKAGE = re.compile(
    r"(?:Collecting|Processing \S*/|Requirement already satisfied:) ?"
    r"([\w.-]+?)(?=-\d|[^\w.-]|$)"
)
_BYTES = re.compile(r"Progress (\d+) of (\d+)")
_SECONDS_BETWEEN_LINES = 10.0


def progress(lines: Iterator[str], total: int) -> Iterator[str]:
    """Turn pip's raw output into short messages about its progress.

    Args:
        lines: pip's output with `--progress-bar=raw`.
        total: number of pinned packages, an upper bound.

    Yields:
        One message for each line that shows progress.
    """
    names: set[str] = set()
    current = ""
    for line in lines:
        if found := _BYTES.match(line):
            done, size = (int(number) / 1e6 for number in found.groups())
            yield f"{current} ({done:,.0f} of {size:,.0f} MB)"
        elif found := _PACKAGE.match(line):
            names.add(re.sub(r"[-_.]+", "-", found[1]).lower())
            current = f"[{len(names):3} of {total}] {found[1]}"
            yield current
        elif line.startswith("Installing collected packages"):
            yield f"[{len(names):3} of {total}] unpacking them (a minute or so)"


def show(messages: Iterator[str]) -> None:
    """Overwrite each message with the next on a terminal, else show one every 10 s."""
    on_terminal = sys.stderr.isatty()
    last = 0.0
    for message in messages:
        if on_terminal:
            sys.stderr.write(f"\r\x1b[K{message[:78]}")
        elif time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            sys.stderr.write(f"{message}\n")
        sys.stderr.flush()
    if on_terminal:
        sys.stderr.write("\r\x1b[K")


def main() -> int:
    """Run pip and return its exit status."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").count("==")
    output: list[str] = []
    with subprocess.Popen(
        COMMAND,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:

        def lines() -> Iterator[str]:
            for line in pip.stdout or ():
                output.append(line)
                yield line

        show(progress(lines(), pins))
    if pip.returncode:
        sys.stderr.write("".join(output[-40:]))
        sys.stderr.write("The packages were not installed; pip says why above.\n")
    return pip.returncode


if __name__ == "__main__":
    raise SystemExit(main())
