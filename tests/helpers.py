"""What tests of every room use."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
"""The project's root, where `checkpoints` and `notebooks` are."""


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


def run_python(code: str) -> tuple[dict[str, Any], str]:
    """Run code as a cell would, and return its names and what it printed."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with redirect_stdout(printed), torch.random.fork_rng(devices=[]):
        exec(compile(code, "pasted", "exec"), names)
    return names, printed.getvalue()
