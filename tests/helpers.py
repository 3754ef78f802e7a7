"""What tests of every room use."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

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


def until(
    condition: Callable[[], bool], seconds: float = 20.0
) -> Coroutine[Any, Any, None]:
    """Return a coroutine that waits for something to become true."""

    async def wait() -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.001)

    return wait()


def pixels(png: bytes) -> np.ndarray:
    """Return a picture as an array, uint8 of shape (height, width, 3)."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def run_cell(code: str) -> tuple[dict[str, Any], str]:
    """Run code as a cell would, and return its names and what it printed."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with redirect_stdout(printed), torch.random.fork_rng(devices=[]):
        exec(compile(code, "pasted", "exec"), names)
    return names, printed.getvalue()
