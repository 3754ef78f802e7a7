"""What the browser tests share: servers of their own, a browser, a page, the panel.

A test module imports the fixtures it uses by name, and `pytestmark`. With
`SAMPLING_LAB_SCREENSHOTS=notebooks/images` pictures are kept there (`make
screenshots`); otherwise they go to a temporary folder, so that a test run leaves the
repository as it was.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.helpers import ROOT

playwright = pytest.importorskip("playwright.sync_api")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 120
"""How long one thing may take on a busy machine; a wait ends when it is there."""

IS_FETCHED = (ROOT / "checkpoints/smollm2-135m-instruct/config.json").exists()
"""The toy model, which serves where it is not, is done before one could press Stop."""

NOTEBOOKS_OWN_ERRORS = {"Cannot read properties of undefined (reading 'schema')"}
"""Notebook 7.6 goes through its shortcuts before it has them."""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is installed"
)


# Servers


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """Serve a copy of the notebooks with JupyterLab; return the address of each."""
    home = tmp_path_factory.mktemp("lab")
    with serve_notebooks("jupyterlab", home, "lab/tree") as address:
        yield f"{address}&reset"  # else it opens again what a test before this had


@pytest.fixture(scope="module")
def notebook7(tmp_path_factory) -> Iterator[str]:
    """Serve a copy of the notebooks with Notebook 7; return the address of each."""
    pytest.importorskip("notebook")
    home = tmp_path_factory.mktemp("notebook7")
    with serve_notebooks("notebook", home, "notebooks") as address:
        yield address


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Iterator[str]:
    """Serve the explorer alone, as `make app` does; return its address."""
    pytest.importorskip("voila")
    home = tmp_path_factory.mktemp("app")
    command = ["sampling_lab", "app", "--no-browser", "--port=0"]
    with server(command, home, stdout=subprocess.PIPE) as running:
        address = running.stdout.readline().decode().strip()
        assert address, (home / "log").read_text()[-2000:]
        yield address


@contextmanager
def serve_notebooks(module: str, home: Path, where: str) -> Iterator[str]:
    """Serve a copy of the notebooks; give an address with braces for a file's name.

    Args:
        module: JupyterLab's or Notebook 7's.
        home: a folder for everything.
        where: the path at which it opens notebooks.
    """
    shutil.copytree(ROOT / "notebooks", home / "root" / "notebooks")
    (home / "root" / "checkpoints").symlink_to(ROOT / "checkpoints")
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = '{"fetchNews": "false", "checkForUpdates": false}'
    (settings / "notification.jupyterlab-settings").write_text(quiet)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port, token = free.getsockname()[1], secrets.token_hex(16)
    command = [
        module,
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={home / 'root'}",
        f"--IdentityProvider.token={token}",
    ]
    with server(command, home) as running:
        base = f"http://127.0.0.1:{port}"
        wait_for(f"{base}/api?token={token}", running, home / "log")
        yield f"{base}/{where}/notebooks/{{}}?token={token}"


@contextmanager
def server(
    command: list[str], home: Path, stdout: int | None = None
) -> Iterator[subprocess.Popen]:
    """Run a Python module as a server until the block ends; its words go to a log.

    No setting of the person who runs the tests is read.
    """
    with (home / "log").open("w") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**os.environ, **own_settings(home)},
            stdout=stdout or log,
            stderr=log,
        )
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()


def own_settings(home: Path) -> Mapping[str, str]:
    """Return the environment of a server that keeps everything in a folder."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    variables = {name: str(home / folder) for name, folder in folders.items()}
    return {**variables, "PYTHONPATH": os.pathsep.join(paths)}


def wait_for(address: str, running: subprocess.Popen, log: Path) -> None:
    """Return when the server answers."""
    for _ in range(SECONDS * 4):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            try:
                running.wait(0.25)
            except subprocess.TimeoutExpired:
                continue
            break
    pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}")


# Browser and page


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture
def page(browser) -> Iterator[playwright.Page]:
    """Return an empty page; an error in its own scripts fails the test."""
    page = browser.new_page(
        viewport={"width": 1400, "height": 1300}, device_scale_factor=1.5
    )
    page.set_default_timeout(SECONDS * 1000)
    playwright.expect.set_options(timeout=SECONDS * 1000)
    errors: set[str] = set()
    page.on("pageerror", lambda error: errors.add(str(error)))
    yield page
    page.close()
    assert errors <= NOTEBOOKS_OWN_ERRORS, errors


@pytest.fixture
def screenshots(tmp_path) -> Path:
    folder = os.environ.get("SAMPLING_LAB_SCREENSHOTS")
    return ROOT / folder if folder else tmp_path


def write_notebook(page: playwright.Page, lab: str, name: str, *sources: str) -> None:
    """Put a notebook with these cells among those that are served."""
    address = urlsplit(lab)
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    content = {
        "cells": [
            {**cell, "id": f"cell-{at:02}", "source": source}
            for at, source in enumerate(sources)
        ],
        "metadata": {"kernelspec": {**kernel, "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    made = page.request.put(
        f"http://{address.netloc}/api/contents/notebooks/{name}?{address.query}",
        data={"type": "notebook", "content": content},
    )
    assert made.ok, made.text()


def open_and_run(page: playwright.Page, lab: str, notebook: str) -> None:
    """Open a notebook in JupyterLab, wait for its kernel, and run all its cells."""
    page.goto(lab.format(notebook))
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    run_all_cells(page)


WATCH_CELLS = """() => {
    window.haveRun = false
    let began = false
    const look = () => {
        const prompts = [...document.querySelectorAll('.jp-InputArea-prompt')]
        const waits = prompts.some((prompt) => prompt.textContent.includes('[*]'))
        window.haveRun ||= began && !waits
        began ||= waits
    }
    const all = { subtree: true, childList: true, characterData: true }
    new MutationObserver(look).observe(document.body, all)
}"""


def run_all_cells(page: playwright.Page) -> None:
    """Choose "Run All Cells" in the menu, and wait until all have run."""
    page.evaluate(WATCH_CELLS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function("window.haveRun")


class PicturePanel:
    """The panel on the page, as a person sees it."""

    def __init__(self, page: playwright.Page) -> None:
        self.page = page
        self.root = page.locator(".sampling-lab:not(.sampling-lab-compare)")
        self.root.wait_for()
        playwright.expect(self.part("caption")).to_contain_text("kept")

    def part(self, name: str) -> playwright.Locator:
        return self.root.locator(f".sampling-lab-{name}")

    def button(self, name: str) -> playwright.Locator:
        return self.root.get_by_role("button", name=name)

    def row(self, name: str) -> playwright.Locator:
        """Return the line of a control, by the name that stands before it."""
        label = self.page.get_by_text(name, exact=True)
        return self.root.locator(".widget-hbox", has=label).last

    def box(self, name: str) -> playwright.Locator:
        return self.row(name).locator("input")

    def fill(self, name: str, text: str) -> None:
        """Type into the box of a control."""
        self.box(name).fill(text)
        self.box(name).press("Enter")

    def press(self, name: str, key: str, times: int = 1) -> None:
        """Move a slider with the keyboard."""
        knob = self.row(name).locator(".noUi-handle")
        for _ in range(times):
            knob.press(key)

    def save(self, path: Path) -> None:
        """Keep a picture of the panel."""
        self.root.scroll_into_view_if_needed()
        self.root.screenshot(path=path)

    def tokens(self) -> playwright.Locator:
        """Return the chips of the strip, the prompt's and the new ones."""
        return self.root.locator("[role=option]")  # not those of a drop-down

    def new_tokens(self) -> playwright.Locator:
        """Return the chips after the prompt's."""
        return self.root.locator("[role=option]:not(.sl-strip-prompt)")

    def use_the_keyboard(self) -> None:
        """Generate, read a step and roll the dice without a mouse; cut no cell."""
        expect, cells = playwright.expect, self.page.locator(".jp-Cell").count()
        self.fill("new tokens", "6")
        self.button("Reset").press("Enter")
        expect(self.part("status")).to_have_text("ready")
        self.button("Generate").press("Enter")
        expect(self.part("status")).to_contain_text(re.compile("reached|ended"))
        count = self.token_count()
        newest = re.compile(rf"step ({count}|{count + 1}) · drew")  # or a stop token's
        expect(self.part("title")).to_contain_text(newest)
        self.root.locator("[role=option][tabindex='0']").focus()  # where Tab leads
        steps_right = self.tokens().count() - self.new_tokens().count() + 2
        for key in ("Home", *["ArrowRight"] * steps_right, "Enter"):
            self.page.keyboard.press(key)
        expect(self.part("title")).to_contain_text("step 3 · drew")
        for key in ("x", "d", "d", "a"):
            self.page.keyboard.press(key)
        self.row("seed").get_by_role("button").press("Space")
        expect(self.box("seed")).not_to_have_value("0")
        assert self.page.locator(".jp-Cell").count() == cells

    def picture(self) -> str:
        return self.root.locator("img").get_attribute("src")

    def token_count(self) -> int:
        found = re.search(r"(\d+) tokens", self.part("status").inner_text())
        return int(found[1]) if found else 0

    def wait_for_tokens(self, count: int) -> None:
        self.page.wait_for_function(
            r"""count => {
                const status = document.querySelector('.sampling-lab-status')
                const found = status.innerText.match(/generating · (\d+) tokens/)
                return found && Number(found[1]) >= count
            }""",
            arg=count,
        )
