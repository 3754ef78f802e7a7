"""From a key on a slider to the picture on the page, in Chromium: for `make bench`."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from tests.browser import (
    ARGUMENTS,
    BROWSER,
    SECONDS,
    PicturePanel,
    open_and_run,
    playwright,
    serve_notebooks,
    write_notebook,
)

_CELL = """
from sampling_lab.explorer import Explorer
Explorer({checkpoint!r}, prompt={prompt!r})
"""
_MOVE = """async (handle, key) => {
    const image = handle.closest('.sampling-lab').querySelector('img')
    const seen = new Promise(done => {
        new MutationObserver((_, watcher) => {
            watcher.disconnect()
            done()
        }).observe(image, { attributes: true, attributeFilter: ['src'] })
    })
    const start = performance.now()
    handle.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
    await seen
    await image.decode()
    return performance.now() - start
}"""
"""Milliseconds until the new picture is there and ready to be painted."""


def slider_to_page(checkpoint: Path, prompt: str, rounds: int = 60) -> float | None:
    """Return the median seconds of a slider's step; None without a browser."""
    if BROWSER is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        serving = serve_notebooks("jupyterlab", Path(folder), "lab/tree")
        with serving as lab, playwright.sync_playwright() as driver:
            made = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
            page = made.new_page(viewport={"width": 1400, "height": 1300})
            page.set_default_timeout(1000 * SECONDS)
            playwright.expect.set_options(timeout=1000 * SECONDS)
            code = _CELL.format(checkpoint=str(checkpoint), prompt=prompt)
            write_notebook(page, lab, "bench.ipynb", code)
            open_and_run(page, lab, "bench.ipynb")
            knob = PicturePanel(page).row("temperature").locator(".noUi-handle")
            taken = []
            for at in range(rounds):
                key = "ArrowRight" if at % 20 < 10 else "ArrowLeft"
                taken.append(knob.evaluate(_MOVE, key) / 1e3)
                page.wait_for_timeout(60)  # a person's hand
            made.close()
    return statistics.median(taken[rounds // 6 :])
