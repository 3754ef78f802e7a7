"""Speed of the explorer, measured in a kernel as a page uses it: for `make bench`."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

from tests.helpers import ROOT

SECONDS = 300

_SET_UP = """
import json, os, statistics, time
import psutil
from sampling_lab import load  # the model's own imports are part of loading it

model = load({checkpoint!r})
model.logits(model.prompt_ids({prompt!r}))
"""
_IMPORT = """
start = time.perf_counter()
from sampling_lab.explorer import Explorer
print(json.dumps(time.perf_counter() - start))
"""
_FIRST_PAINT = """
start = time.perf_counter()
explorer = Explorer(model, prompt={prompt!r}, max_new_tokens=24)
print(json.dumps(time.perf_counter() - start))
"""
_SLIDER = """
import asyncio

slider = explorer.controls.dials["temperature"].slider

def slide(step):
    slider.value = 0.1 + 0.05 * (step % 40)

def select(step):
    explorer.strip.selected = step % 20

async def painted_after(action, step):
    painted = asyncio.get_running_loop().create_future()

    def seen(change):
        if not painted.done():
            painted.set_result(time.perf_counter())

    await asyncio.sleep(0.03)  # as fast as a person; pending callbacks run
    explorer.picture.observe(seen, "value")
    start = time.perf_counter()
    action(step)
    end = await asyncio.wait_for(painted, 30)
    explorer.picture.unobserve(seen, "value")
    return end - start

async def times(count, action=slide):
    return [await painted_after(action, step) for step in range(count)]

passes = model.forward_passes
await times(10)
taken = await times({count})
assert model.forward_passes == passes
print(json.dumps(taken))
"""
_TAB = """
explorer.tab.value = {tab!r}
await times(5, {action})
print(json.dumps(await times(25, {action})))
"""
_MEMORY = """
import gc

def resident():
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20

explorer.tab.value = "Distribution"
await times(300)  # caches fill, and the allocator settles
before = resident()
for step in range(2000):
    slide(step)
    explorer.refresh._call()
print(json.dumps(resident() - before))
"""


def _actions(tab: str) -> str:
    """Return what changes a tab's picture; a slider does not change recorded steps."""
    return "select" if tab == "Steps" else "slide"


class Cells:
    """A kernel that runs cells and returns the JSON that the last line prints."""

    def __init__(self) -> None:
        self.manager = KernelManager()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.manager.start_kernel(cwd=str(ROOT), env=environment)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    def run(self, code: str) -> Any:
        """Run a cell; an error in it is raised here."""
        printed: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "error":
                raise RuntimeError("\n".join(content["traceback"]))
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                printed.append(content["text"])

        self.client.execute_interactive(code, output_hook=hear, timeout=SECONDS)
        return json.loads("".join(printed)) if printed else None

    def close(self) -> None:
        """End the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def run(checkpoint: Path, prompt: str, tabs: tuple[str, ...]) -> Iterator[tuple]:
    """Yield name, figure and goal of each line of the table."""
    cells = Cells()
    try:
        cells.run(_SET_UP.format(checkpoint=str(checkpoint), prompt=prompt))
        imports = cells.run(_IMPORT)
        seconds = cells.run(_FIRST_PAINT.format(prompt=prompt))
        figure = f"{seconds:.2f} s (imports {imports:.2f} s)"
        yield "first paint, once the model is loaded", figure, "<= 1 s"
        taken = sorted(cells.run(_SLIDER.format(count=150)))
        median, high = statistics.median(taken), taken[int(0.95 * len(taken))]
        figure = f"{median * 1e3:.1f} ms, p95 {high * 1e3:.1f} ms"
        yield (
            "slider event to picture, in a kernel",
            figure,
            "median <= 16 ms, p95 <= 33 ms",
        )
        cells.run("explorer.generate()\nawait explorer.finished()")
        cells.run("explorer.strip.selected = 3")
        for tab in tabs:
            taken = cells.run(_TAB.format(tab=tab, action=_actions(tab)))
            figure = f"{statistics.median(taken) * 1e3:.1f} ms"
            yield f"  redraw of the tab {tab}", figure, "<= 40 ms"
        grown = cells.run(_MEMORY)
        yield "memory after 2,000 redraws", f"{grown:+.1f} MB", "within 20 MB"
    finally:
        cells.close()
