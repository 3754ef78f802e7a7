"""The explorer in JupyterLab, in a real browser: open, slide, generate, stop.

`SAMPLING_LAB_SCREENSHOTS=notebooks/images` keeps the pictures there (`make
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).resolve().parent.parent
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

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is installed"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """Serve a copy of the notebooks from a JupyterLab of its own; return its address.

    No setting of the person who runs the tests is read, and no notebook is changed.
    """
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", home / "root" / "notebooks")
    (home / "root" / "checkpoints").symlink_to(ROOT / "checkpoints")
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = '{"fetchNews": "false", "checkForUpdates": false}'
    (settings / "notification.jupyterlab-settings").write_text(quiet)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    with serve(home, port, token):
        yield f"http://127.0.0.1:{port}/lab/tree/notebooks/{{}}?token={token}"


@contextmanager
def serve(home: Path, port: int, token: str) -> Iterator[None]:
    """Run JupyterLab until the block ends."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    variables = {name: str(home / folder) for name, folder in folders.items()}
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyterlab",
                "--no-browser",
                "--allow-root",
                f"--ServerApp.port={port}",
                "--ServerApp.port_retries=0",
                f"--ServerApp.root_dir={home / 'root'}",
                f"--IdentityProvider.token={token}",
            ],
            env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/api?token={token}", server, home / "log")
            yield
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    """Return when the server answers."""
    for _ in range(SECONDS * 4):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            try:
                server.wait(0.25)
            except subprocess.TimeoutExpired:
                continue
            break
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


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
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []


@pytest.fixture
def screenshots(tmp_path) -> Path:
    folder = os.environ.get("SAMPLING_LAB_SCREENSHOTS")
    return ROOT / folder if folder else tmp_path


def open_and_run(page: playwright.Page, lab: str, notebook: str) -> None:
    """Open a notebook, wait for its kernel, and run all its cells."""
    page.goto(lab.format(notebook))
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


class Panel:
    """The panel on the page, as a person sees it."""

    def __init__(self, page: playwright.Page) -> None:
        self.page = page
        self.root = page.locator(".sampling-lab")
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


def test_a_person_opens_the_explorer_slides_generates_and_stops(lab, page, screenshots):
    open_and_run(page, lab, "05_explorer.ipynb")
    panel, expect = Panel(page), playwright.expect

    # A slider moves: numbers and picture change with it.
    caption, picture = panel.part("caption").inner_text(), panel.picture()
    panel.press("temperature", "ArrowRight", times=6)
    expect(panel.part("caption")).not_to_have_text(caption)
    expect(panel.root.locator("img")).not_to_have_attribute("src", picture)
    expect(panel.box("temperature")).to_have_value("1.3")
    panel.press("temperature", "ArrowLeft", times=10)
    expect(panel.box("temperature")).to_have_value("0.8")

    # A box takes what no slider has; what it refuses is said in red.
    panel.fill("top-p", "1.5")
    expect(panel.part("status").get_by_role("alert")).to_contain_text("top_p must be")
    expect(panel.box("top-p")).to_have_value("off")
    panel.fill("top-p", "0.925")
    expect(panel.part("status")).to_have_text("ready")
    expect(panel.box("top-p")).to_have_value("0.925")
    panel.fill("top-k", "12")

    if IS_FETCHED:
        stop_in_mid_run(panel)
        slide_in_mid_run(panel)
    panel.fill("seed", "7")
    panel.fill("new tokens", "20")
    panel.button("Generate").click()
    expect(panel.part("status")).to_contain_text(re.compile("reached|ended"))
    expect(panel.button("Generate")).to_be_enabled()
    expect(panel.part("status")).to_contain_text(f"of {panel.token_count()} steps")
    read_and_fork(panel, screenshots)


def read_and_fork(panel: Panel, screenshots: Path) -> None:
    """Click a token to see its step, take another one there, and go back."""
    expect, count = playwright.expect, panel.token_count()
    newest = re.compile(rf"step ({count}|{count + 1}) ·")  # or the stop token's
    expect(panel.part("title")).to_contain_text(newest)
    panel.root.locator("[role=option]:not(.sl-strip-prompt)").nth(2).click()
    expect(panel.part("title")).to_contain_text("step 3 · drew")
    panel.save(screenshots / "explorer.png")

    panel.button("Fork").click()
    branches = panel.root.get_by_role("combobox").last
    expect(branches.locator("option:checked")).to_contain_text("step 3: ")
    expect(panel.button("Generate")).to_be_enabled()


def stop_in_mid_run(panel: Panel) -> None:
    """Press Stop while tokens stream in; they stay and the panel can be used."""
    expect = playwright.expect
    panel.fill("new tokens", "2000")
    panel.button("Generate").click()
    panel.wait_for_tokens(3)
    expect(panel.button("Generate")).to_be_disabled()
    panel.button("Stop").click()
    expect(panel.part("status")).to_contain_text("stopped · ")
    expect(panel.button("Generate")).to_be_enabled()
    assert 3 <= panel.token_count() < 2000
    assert panel.tokens().count() > panel.token_count()  # the prompt's come first


def slide_in_mid_run(panel: Panel) -> None:
    """Move a slider while tokens stream in: the run ends and the picture follows."""
    expect = playwright.expect
    panel.button("Generate").click()
    panel.wait_for_tokens(2)
    panel.press("temperature", "ArrowLeft")
    expect(panel.part("status")).to_contain_text("a setting changed")
    expect(panel.part("title")).to_contain_text("next token after the prompt")
    expect(panel.box("temperature")).to_have_value("0.75")
    assert 2 <= panel.token_count() < 2000
