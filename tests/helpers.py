"""What tests of every room use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
"""The project's root, where `checkpoints` and `notebooks` are."""


def run(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's root and capture what it prints."""
    words = [str(word) for word in command]
    options = {"cwd": ROOT, "capture_output": True, "text": True, **options}
    return subprocess.run(words, **options)


def run_cli(*argv: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `sampling-lab` with these arguments in its own process."""
    return run(sys.executable, "-m", "sampling_lab", *argv, **options)


def run_make(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run make as from a shell, even if make has started the tests."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return run("make", *words, **{"env": outside, **options})


def run_python(code: str) -> str:
    """Return what a script prints in its own process, which must not fail."""
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def strict_json(text: str) -> Any:
    """Parse JSON; NaN and Infinity, which are not JSON, fail the test."""

    def fail(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=fail)
