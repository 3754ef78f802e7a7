"""Compare in JupyterLab, in a real browser: two settings by three seeds, side by side.

Served as in `tests.browser`, which also says where the picture goes.
"""

from __future__ import annotations

from tests.browser import (
    browser,
    lab,
    open_and_run,
    page,
    playwright,
    pytestmark,
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

CODE = """
from sampling_lab import SamplingParams
from sampling_lab.explorer import Compare

settings = [SamplingParams(temperature=0), SamplingParams(temperature=4)]
Compare("../checkpoints/xslm/model.json", settings=settings, seeds=[1, 2, 3])
"""


def test_a_person_compares_two_settings_by_three_seeds(lab, page, screenshots):
    expect = playwright.expect
    write_notebook(page, lab, "compare.ipynb", CODE)
    open_and_run(page, lab, "compare.ipynb")
    board = page.locator(".sampling-lab-compare")
    status = board.locator(".sampling-lab-status")
    expect(status).to_have_text("ready")

    # Six runs come in; the first of them is the reference.
    board.get_by_role("button", name="Compare").click()
    expect(status).to_contain_text("all have ended")
    cells = board.locator(".sampling-lab-grid td")
    expect(cells).to_have_count(6)
    expect(cells.nth(0)).to_contain_text("reference")
    expect(cells.nth(1)).to_contain_text("= reference")
    expect(cells.nth(0).locator("mark")).to_have_count(0)
    expect(cells.nth(3).locator("mark")).to_have_count(1)
    sign = "element => getComputedStyle(element, '::before').content"
    assert "≠" in cells.nth(3).locator("mark").evaluate(sign)
    expect(board.locator(".sampling-lab-answers")).to_contain_text("in 6 runs")
    board.screenshot(path=screenshots / "compare.png")

    # Another run is the reference; a slip is said in red, and what there is stays.
    board.locator("select").select_option(index=3)
    expect(cells.nth(3)).to_contain_text("reference")
    expect(cells.nth(0).locator("mark")).to_have_count(1)
    board.locator("textarea").nth(1).fill("temperature 1\ntop-p 7")
    board.get_by_role("button", name="Compare").click()
    expect(status.get_by_role("alert")).to_contain_text("line 2: top_p must be")
    expect(cells).to_have_count(6)
