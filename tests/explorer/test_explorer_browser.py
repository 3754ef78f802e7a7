"""The explorer as an instrument, in JupyterLab and a real browser.

Read, ask what if, fork, walk back, hold beside, take code away and run it.
"""

from __future__ import annotations

import re

import pytest

from tests.browser import (
    IS_FETCHED,
    PicturePanel,
    browser,
    lab,
    open_and_run,
    page,
    playwright,
    pytestmark,
    screenshots,
    write_notebook,
)

__all__ = ["browser", "lab", "page", "pytestmark", "screenshots"]

EXPLORER = """
from pathlib import Path
from sampling_lab import SamplingParams
from sampling_lab.explorer import Explorer

checkpoint = Path("../checkpoints/smollm2-135m-instruct")
if not (checkpoint / "config.json").exists():
    checkpoint = Path("../checkpoints/xslm/model.json")
params = SamplingParams(temperature=0.8, top_p=0.9, seed=7)
explorer = Explorer(checkpoint, params=params, max_new_tokens=12)
explorer.generate()
await explorer.finished()
explorer
"""
HOSTILE = """
import torch
from sampling_lab.explorer import Explorer
from tests.fakes import walk

pieces = [b"a", b"<img src=x onerror=hacked()>", b"</script><script>hacked()</script>",
          b"&lt;b&gt;", b"<|im_end|>", b"\\x1b[31m"]
explorer = Explorer(walk(pieces, [0, 1, 2, 3, 4, 5, 1]), prompt="a", max_new_tokens=6)
explorer.generate()
await explorer.finished()
explorer
"""
needs_smollm2 = pytest.mark.skipif(
    not IS_FETCHED, reason="the toy model is too sure of itself: SmolLM2 is not fetched"
)
NEW = "[role=option]:not(.sl-strip-prompt)"
"""The chips of the text; the prompt's come before them."""

WATCH = """element => {
    window.painted = 0
    window.watcher = new MutationObserver(() => { window.painted += 1 })
    window.watcher.observe(element, { attributes: true, attributeFilter: ['src'] })
}"""


def opened(page: playwright.Page, lab: str, name: str, code: str) -> PicturePanel:
    """Open a notebook of one cell, run it, and return its panel."""
    page.set_viewport_size({"width": 1400, "height": 1700})  # all of it on a picture
    write_notebook(page, lab, name, code)
    open_and_run(page, lab, name)
    panel = PicturePanel(page)
    playwright.expect(panel.button("Generate")).to_be_enabled()
    return panel


def choose(panel: PicturePanel, name: str, **option: object) -> None:
    """Choose in the drop-down behind a label."""
    label = panel.root.get_by_text(name, exact=True)
    label.locator("xpath=following::select[1]").select_option(**option)


def chips(panel: PicturePanel) -> list[str]:
    return panel.root.locator(NEW).all_inner_texts()


def wait_for_chips(panel: PicturePanel, texts: list[str]) -> None:
    """Return when the strip begins with these tokens."""
    for at, text in enumerate(texts):
        playwright.expect(panel.root.locator(NEW).nth(at)).to_have_text(text)


@needs_smollm2
def test_every_slider_and_tab_changes_what_is_shown(lab, page, screenshots):
    panel, expect = opened(page, lab, "tabs.ipynb", EXPLORER), playwright.expect
    moves = {
        "temperature": "ArrowRight",
        "top-p": "ArrowLeft",
        "min-p": "ArrowRight",
        "top-k": "Home",
    }
    for name, key in moves.items():
        before, picture = panel.box(name).input_value(), panel.picture()
        panel.press(name, key, times=3)
        expect(panel.box(name)).not_to_have_value(before)
        expect(panel.root.locator("img")).not_to_have_attribute("src", picture)
        expect(panel.part("summary")).to_contain_text(name)
    panel.press("top-k", "End")
    panel.root.locator(NEW).nth(2).click()
    expect(panel.part("title")).to_contain_text("step 3 · drew")
    panel.fill("min-p", "0.02")
    expect(panel.part("title")).to_contain_text("step 3 with these settings · seed 7")

    told = {
        "Stages": "stages.png",
        "Draw": "draw.png",
        "Temperature map": "temperature_map.png",
        "Steps": "steps.png",
    }
    for tab, name in told.items():
        caption, picture = panel.part("caption").inner_text(), panel.picture()
        panel.root.get_by_role("button", name=tab, exact=True).click()
        expect(panel.root.locator("img")).not_to_have_attribute("src", picture)
        expect(panel.part("caption")).not_to_have_text(caption)
        panel.part("right").evaluate("element => element.style.minHeight = 'auto'")
        panel.part("right").screenshot(path=screenshots / name)

    # What cannot matter is greyed and says why; Neutralise turns everything off.
    panel.fill("temperature", "0")
    expect(panel.part("summary")).to_contain_text(
        "no effect: top-k, top-p, min-p, seed"
    )
    expect(panel.part("idle")).to_have_count(4)
    panel.button("Neutralise").click()
    expect(panel.part("summary")).to_have_text("neutral: the model's own distribution")
    expect(panel.part("idle")).to_have_count(0)
    choose(panel, "preset", label="creativity")
    expect(panel.box("temperature")).to_have_value("1.1")


@needs_smollm2
def test_a_person_reads_forks_walks_back_and_runs_the_code(lab, page, screenshots):
    panel, expect = opened(page, lab, "forks.ipynb", EXPLORER), playwright.expect
    first = chips(panel)
    assert len(first) >= 4
    panel.root.locator(NEW).nth(2).click()
    expect(panel.part("title")).to_contain_text("step 3 · drew")
    panel.save(screenshots / "read.png")

    # Another token at the third step: the two before it stay as they are.
    options = panel.root.get_by_text("instead", exact=True).locator(
        "xpath=following::select[1]/option"
    )
    taken = options.first.inner_text().replace("\xa0", " ").split(" · ")[0]
    panel.button("Explain").click()
    expect(panel.part("why")).to_contain_text(re.compile("chosen|never"))
    panel.button("Fork").click()
    expect(panel.button("Generate")).to_be_enabled()
    wait_for_chips(panel, [*first[:2], taken])
    branch = panel.root.get_by_text("branch", exact=True).locator(
        "xpath=following::select[1]"
    )
    expect(branch.locator("option:checked")).to_have_text(f"run 1 → step 3: {taken}")
    expect(panel.root.locator(".sl-strip-forked")).to_have_count(1)
    forked = chips(panel)

    # Both beside each other, and back to the first, and again to the fork.
    choose(panel, "beside", label="run 1")
    expect(panel.part("comparison")).to_contain_text("≠ at token 3")
    expect(panel.part("comparison").locator("mark")).to_have_count(1)
    panel.save(screenshots / "fork.png")
    branch.select_option(label="run 1")
    wait_for_chips(panel, first)
    assert chips(panel) == first
    branch.select_option(index=1)
    wait_for_chips(panel, forked)

    # Any token of the vocabulary can be searched for.
    panel.root.locator(NEW).nth(1).click()
    search = panel.root.get_by_placeholder("search the vocabulary, or #id")
    search.fill("e")
    search.press("Enter")
    expect(options.first).to_contain_text("e · raw")

    # The code of the fork, pasted into the next cell, gives the fork's text.
    panel.button("Copy code").click()
    box = panel.part("code").locator("textarea")
    expect(box).to_have_value(re.compile(r"fork\("))
    code = box.input_value()
    assert run_below(page, f"{code}print(text.token_ids)") == run_below(
        page,
        "print(explorer.state['text'], tuple(explorer.state['token_ids']), sep='\\n')",
    )


@needs_smollm2
def test_each_run_from_one_prompt_is_shown_whole(lab, page):
    panel, expect = opened(page, lab, "runs.ipynb", EXPLORER), playwright.expect
    texts = set()
    for seed in ("8", "9", "10"):
        panel.fill("seed", seed)
        expect(panel.part("title")).to_contain_text("next token after the prompt")
        panel.button("Generate").click()
        expect(panel.part("title")).to_contain_text("· drew")
        expect(panel.button("Generate")).to_be_enabled()
        shown = "[chip['text'] for chip in explorer.strip.tokens if 'step' in chip]"
        expected = run_below(page, f"print(*{shown}, sep='|')").strip().split("|")
        wait_for_chips(panel, expected)
        assert chips(panel) == expected
        texts.add(tuple(expected))
    assert len(texts) == 3


def run_below(page: playwright.Page, code: str) -> str:
    """Run code in a new cell at the end of the notebook; return what it printed."""
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    count = cells.count()
    cells.last.locator(".jp-InputPrompt").click()
    page.locator("[data-command='notebook:insert-cell-below']").first.click()
    playwright.expect(cells).to_have_count(count + 1)
    cells.last.locator(".cm-content").click()
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")
    printed = cells.last.locator(".jp-OutputArea-output pre")
    printed.wait_for()
    return printed.inner_text()


def test_a_hundred_slider_events_leave_the_last_one_drawn(lab, page):
    panel, expect = opened(page, lab, "burst.ipynb", EXPLORER), playwright.expect
    panel.press("temperature", "Home")
    expect(panel.box("temperature")).to_have_value("0")
    panel.root.locator("img").evaluate(WATCH)
    panel.row("temperature").locator(".noUi-handle").evaluate(
        """async handle => {
            for (let at = 0; at < 100; at++) {
                const key = at % 4 === 3 ? 'ArrowLeft' : 'ArrowRight'
                const event = new KeyboardEvent('keydown', { key, bubbles: true })
                handle.dispatchEvent(event)
                if (at % 10 === 0) await new Promise(done => setTimeout(done, 10))
            }
        }"""
    )
    expect(panel.box("temperature")).to_have_value("2.5")
    expect(panel.part("summary")).to_contain_text("temperature 2.5")
    page.wait_for_timeout(500)
    painted = page.evaluate("window.painted")
    page.wait_for_timeout(700)
    assert page.evaluate("window.painted") == painted  # nothing was queued
    assert 1 <= painted <= 60
    expect(panel.part("status")).not_to_contain_text("Error")


def test_hostile_tokens_are_inert_text(lab, page):
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.add_init_script("window.hacked = () => { window.was_hacked = true }")
    panel, expect = opened(page, lab, "hostile.ipynb", HOSTILE), playwright.expect
    texts = chips(panel)
    assert texts[:2] == [
        "<img␣src=x␣onerror=hacked()>",
        "</script><script>hacked()</script>",
    ]
    panel.root.locator(NEW).nth(0).click()
    expect(panel.part("title")).to_contain_text("drew <img␣src=x␣onerror=hacked()>")
    for tab in ("Stages", "Draw", "Temperature map", "Steps"):
        panel.root.get_by_role("button", name=tab, exact=True).click()
    panel.button("Explain").click()
    panel.button("Fork").click()
    expect(panel.button("Generate")).to_be_enabled()
    choose(panel, "beside", index=1)
    expect(panel.part("comparison")).to_contain_text("<img␣src=x")
    panel.button("Copy code").click()
    expect(panel.part("code").locator("textarea")).to_be_visible()
    assert page.evaluate("window.was_hacked") is None and said == []
    assert panel.root.locator("img").count() == 1
