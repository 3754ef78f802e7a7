"""The explorer in JupyterLab, in a real browser: open, slide, generate, stop."""

from __future__ import annotations

import re
from pathlib import Path

from tests.browser import (
    IS_FETCHED,
    PicturePanel,
    browser,
    lab,
    open_and_run,
    page,
    playwright,
    pytestmark,
    run_all_cells,
    screenshots,
    write_notebook,
)

__all__ = [
    "browser",
    "lab",
    "page",
    "pytestmark",
    "screenshots",
]  # found by name


MAKE = """
from sampling_lab.explorer import Explorer
explorer = Explorer("../checkpoints/xslm/model.json")
"""


def test_a_person_opens_the_explorer_slides_generates_and_stops(lab, page, screenshots):
    open_and_run(page, lab, "app.ipynb")
    panel, expect = PicturePanel(page), playwright.expect

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
    count = panel.token_count()
    steps = re.compile(rf"of ({count}|{count + 1}) steps")  # a stop token is one too
    expect(panel.part("status")).to_contain_text(steps)
    read_and_fork(panel, screenshots)


def read_and_fork(panel: PicturePanel, screenshots: Path) -> None:
    """Click a token to see its step, take another one there, and go back."""
    expect, count = playwright.expect, panel.token_count()
    newest = re.compile(rf"step ({count}|{count + 1}) ·")  # or the stop token's
    expect(panel.part("title")).to_contain_text(newest)
    panel.new_tokens().nth(2).click()
    expect(panel.part("title")).to_contain_text("step 3 · drew")
    panel.save(screenshots / "explorer.png")

    panel.button("Fork").click()
    branch = panel.row("branch").locator("select").first
    expect(branch.locator("option:checked")).to_contain_text("step 3: ")
    expect(panel.button("Generate")).to_be_enabled()


def stop_in_mid_run(panel: PicturePanel) -> None:
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


def slide_in_mid_run(panel: PicturePanel) -> None:
    """Move a slider while tokens stream in: the run ends and the picture follows."""
    expect = playwright.expect
    panel.button("Generate").click()
    panel.wait_for_tokens(2)
    panel.press("temperature", "ArrowLeft")
    expect(panel.part("status")).to_contain_text("a setting changed")
    expect(panel.part("title")).to_contain_text("next token after the prompt")
    expect(panel.box("temperature")).to_have_value("0.75")
    assert 2 <= panel.token_count() < 2000


def test_a_person_without_a_mouse_can_use_the_explorer(lab, page):
    write_notebook(page, lab, "keys.ipynb", MAKE + "explorer")
    open_and_run(page, lab, "keys.ipynb")
    PicturePanel(page).use_the_keyboard()


# A cell that runs again, and the square that interrupts


COUNT = """
from ipywidgets.widgets.widget import _instances
from sampling_lab.explorer.panel.lab_widget import LabWidget
print("panels:", sum(isinstance(made, LabWidget) for made in _instances.values()))
"""


def test_a_cell_that_runs_again_leaves_one_panel(lab, page):
    expect = playwright.expect
    write_notebook(page, lab, "again.ipynb", "\n".join([MAKE, COUNT, "explorer"]))
    open_and_run(page, lab, "again.ipynb")
    for count in (2, 3):
        run_all_cells(page)
        expect(page.locator(".jp-InputArea-prompt").last).to_have_text(f"[{count}]:")
        expect(page.get_by_text("panels: 1", exact=True)).to_be_visible()
        expect(page.locator(".sampling-lab")).to_have_count(1)
    panel = PicturePanel(page)
    panel.button("Generate").click()
    expect(panel.part("status")).to_contain_text("the model ended it")


SLOW = """
import time, torch
from sampling_lab.explorer import Compare, Explorer
from tests.fakes import TableModel

class Slow(TableModel):
    def _forward(self, ids):
        time.sleep(0.02)
        return super()._forward(ids)

model = Slow(torch.zeros(8, 8), [bytes([97 + at]) for at in range(8)])
"""
LONG = 'Explorer(model, prompt="a", max_new_tokens=100_000)'
MANY = 'Compare(model, prompt="a", max_new_tokens=100_000)'


def test_the_square_interrupts_and_the_panels_go_on(lab, page):
    expect = playwright.expect
    write_notebook(page, lab, "slow.ipynb", SLOW, LONG, MANY)
    open_and_run(page, lab, "slow.ipynb")
    panels = (
        (page.locator(".sampling-lab:not(.sampling-lab-compare)"), "Generate"),
        (page.locator(".sampling-lab-compare"), "Compare"),
    )
    for panel, name in panels:
        status = panel.locator(".sampling-lab-status")
        for _ in range(2):
            panel.get_by_role("button", name=name).click()
            expect(status).to_contain_text(re.compile("generating · [1-9]"))
            page.locator("[data-command='notebook:interrupt-kernel']").first.click()
            expect(status).to_contain_text(re.compile("^stopped · "))
