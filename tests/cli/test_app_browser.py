"""The explorer outside JupyterLab, in a real browser: in Voila and in Notebook 7."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tests.browser import (
    PicturePanel,
    app,
    browser,
    notebook7,
    page,
    playwright,
    pytestmark,
    run_all_cells,
    screenshots,
)

# Found by name:
__all__ = ["app", "browser", "notebook7", "page", "pytestmark", "screenshots"]

expect = playwright.expect


def test_a_person_uses_the_explorer_alone(app, page, screenshots):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.goto(app)
    panel = PicturePanel(page)
    expect(page).to_have_title("Sampling Lab")
    expect(page.get_by_role("heading", name="Sampling Lab")).to_be_visible()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", "true")
    expect(page.get_by_text("import Path")).to_have_count(0)  # the cell's source

    move_a_slider(panel)
    generate_and_read(panel)
    page.screenshot(path=screenshots / "app.png")

    hosts = {urlsplit(url).hostname for url in asked if ":/" in url[:6]}
    assert hosts == {"127.0.0.1"}, asked
    assert any(url.startswith("ws://") for url in asked)


def test_the_panel_fits_a_narrow_window_too(app, page):
    page.set_viewport_size({"width": 420, "height": 900})
    page.goto(app)
    panel = PicturePanel(page)
    width = "document.scrollingElement.scrollWidth"
    assert page.evaluate(width) <= 420
    assert panel.root.bounding_box()["width"] <= 420


def test_a_page_that_is_left_ends_its_kernel(app, page):
    page.goto(app)
    PicturePanel(page)
    kernel = page.evaluate(
        "JSON.parse(document.getElementById('jupyter-config-data').text).kernelId"
    )
    address = urlsplit(app)
    place = f"http://{address.netloc}/api/kernels/{kernel}?{address.query}"
    assert page.request.get(place).ok
    page.goto("about:blank")
    for _ in range(100):
        if page.request.get(place).status == 404:
            return
        page.wait_for_timeout(100)
    raise AssertionError("the kernel runs on")


def test_a_person_uses_the_explorer_in_notebook_7(notebook7, page, screenshots):
    page.goto(notebook7.format("05_explorer.ipynb"))
    page.locator(".jp-Toolbar-kernelName", has_text="Python 3").wait_for()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
    run_all_cells(page)
    panel = PicturePanel(page)
    panel.button("Neutralise").click()
    expect(panel.part("title")).to_contain_text("next token after the prompt")
    move_a_slider(panel)
    panel.save(screenshots / "notebook7.png")
    panel.fill("seed", "0")
    panel.use_the_keyboard()


def move_a_slider(panel: PicturePanel) -> None:
    """Move a slider: the numbers, the picture and the box follow."""
    caption, picture = panel.part("caption").inner_text(), panel.picture()
    before = float(panel.box("temperature").input_value())
    panel.press("temperature", "ArrowRight", times=6)
    expect(panel.part("caption")).not_to_have_text(caption)
    expect(panel.root.locator("img")).not_to_have_attribute("src", picture)
    expect(panel.box("temperature")).to_have_value(f"{before + 0.3:.12g}")


def generate_and_read(panel: PicturePanel) -> None:
    """Generate a few tokens, and click the third of them to see its step."""
    panel.fill("temperature", "0.7")
    panel.fill("new tokens", "12")
    panel.button("Generate").click()
    expect(panel.part("status")).to_contain_text(re.compile("reached|ended"))
    expect(panel.button("Generate")).to_be_enabled()
    assert 3 <= panel.token_count() <= 12
    panel.new_tokens().nth(2).click()
    expect(panel.part("title")).to_contain_text("step 3 · drew")
