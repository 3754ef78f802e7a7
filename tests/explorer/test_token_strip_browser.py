"""The token strip's page in a real browser, with a model object made for the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from sampling_lab import SamplingParams, fork, generate, score
from sampling_lab.explorer.controls.token_strip import MEASURES, TokenStrip, chips
from tests.browser import browser, pytestmark, screenshots
from tests.fakes import TableModel

# Found by name:
__all__ = ["browser", "pytestmark", "screenshots"]

LIGHT = {
    "--jp-ui-font-color1": "rgba(0, 0, 0, 0.87)",
    "--jp-ui-font-color2": "rgba(0, 0, 0, 0.54)",
    "--jp-border-color1": "#bdbdbd",
    "--jp-layout-color1": "#ffffff",
}
DARK = {
    "--jp-ui-font-color1": "rgba(255, 255, 255, 1)",
    "--jp-ui-font-color2": "rgba(255, 255, 255, 0.7)",
    "--jp-border-color1": "#616161",
    "--jp-layout-color1": "#111111",
}
"""JupyterLab's own values."""

HOSTILE = [b"<img/src=x/onerror=alert(1)>", b"</script>", b"<b>x", b"&lt;", b"\x1b[2J"]

# A stand-in for the model that anywidget passes: it keeps what is set and sent.
OPEN = """async ([source, css, state, variables]) => {
  window.alert = () => { window.wasObeyed = true; };
  document.body.style.background = variables["--jp-layout-color1"];
  document.body.dataset.jpThemeLight = String(
    variables["--jp-layout-color1"] === "#ffffff");
  for (const [name, value] of Object.entries(variables))
    document.body.style.setProperty(name, value);
  const style = document.createElement("style");
  style.textContent = css;
  document.head.append(style);
  const listeners = {};
  const tell = (name, value) => (listeners[name] ?? []).forEach((hear) => hear(value));
  const model = {
    saves: 0,
    sent: [],
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; tell(`change:${name}`); },
    save_changes: () => { model.saves += 1; },
    send: (message) => model.sent.push(message),
    on: (name, hear) => (listeners[name] ??= []).push(hear),
    receive: (message) => tell("msg:custom", message),
  };
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const widget = await (await import(url)).default();
  await widget.initialize({ model });
  const el = document.createElement("div");
  document.body.append(el);
  const close = await widget.render({ model, el });
  Object.assign(window, { model, widget, close });
}"""

Open = Callable[..., Any]
OPTIONS = "[role=option]"


@pytest.fixture
def open_strip(browser) -> Iterator[Open]:
    """Return what opens a strip; at the end, no page may have had an error."""
    troubles: list[str] = []
    pages = []

    def opens(tokens: list[dict], variables: dict = LIGHT, **state: Any) -> Any:
        page = browser.new_page(viewport={"width": 900, "height": 560})
        pages.append(page)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda said: troubles.append(said.text))
        page.on("request", lambda request: troubles.append(request.url))
        before = {"tokens": [], "selected": -1, "measure": "surprisal", "forks": []}
        strip = TokenStrip()
        arguments = [strip._esm, strip._css, {**before, "tokens": tokens, **state}]
        page.evaluate(OPEN, [*arguments, variables])
        return page

    yield opens
    for page in pages:
        page.close()
    assert [text for text in troubles if not text.startswith("blob:")] == []


def state(page: Any, name: str) -> Any:
    return page.evaluate(f"model.get({name!r})")


def option(page: Any, index: int) -> Any:
    return page.locator(OPTIONS).nth(index)


def focused(page: Any) -> int:
    return page.evaluate(
        "[...document.querySelectorAll('[role=option]')].indexOf(document.activeElement)"
    )


WORDS = (
    "Once upon a time , there was little girl named Lily who lived in the forest"
).split()
PIECES = [b"<|im_end|>", b".\n", "é".encode(), b"\xf0\x9f", *HOSTILE]
PIECES += [f" {word}".encode() for word in WORDS]


@pytest.fixture(scope="module")
def model() -> TableModel:
    count = len(PIECES)
    table = torch.randn(count, count, generator=torch.Generator().manual_seed(2)) * 2
    table[:, 0] = -9.0
    return TableModel(table, PIECES, stop_token_ids=(0,))


def story(model: TableModel, count: int = 60) -> list[dict]:
    prompt = [9, 10, 11, 12]
    parent = generate(
        model, prompt, SamplingParams(temperature=1.6, seed=2), max_new_tokens=count
    )
    child = fork(model, parent, 9, 20).to_the_end()
    child = fork(model, child, count - 1, 0).to_the_end()
    return chips(model, child.all_steps, prompt, [*score(model, prompt)])


def test_a_click_selects_a_step_and_says_so(open_strip, model):
    page = open_strip(story(model))
    assert page.get_by_role("listbox").get_attribute("aria-label") == "Tokens"
    option(page, 7).click()
    assert (state(page, "selected"), page.evaluate("model.saves")) == (3, 1)
    assert option(page, 7).get_attribute("aria-selected") == "true"
    option(page, 8).click()
    assert page.locator("[aria-selected=true]").count() == 1
    option(page, 1).click(force=True)  # the prompt is no step
    assert state(page, "selected") == 4
    assert option(page, 1).get_attribute("aria-disabled") == "true"


def test_the_kernel_selects_too(open_strip, model):
    page = open_strip(story(model), selected=2)
    assert option(page, 6).get_attribute("aria-selected") == "true"
    assert option(page, 6).get_attribute("tabindex") == "0"
    page.evaluate("model.set('selected', -1)")
    assert page.locator("[aria-selected=true]").count() == 0
    assert page.evaluate("model.saves") == 0


def test_the_keyboard_reaches_everything(open_strip, model):
    tokens = story(model)
    page = open_strip(tokens)
    page.keyboard.press("Tab")  # the choice of measures
    page.keyboard.press("Tab")  # what is shown of the prompt
    page.keyboard.press("Tab")
    assert focused(page) == 0
    for keys, index in [
        ("ArrowRight ArrowRight", 2),
        ("ArrowLeft", 1),
        ("ArrowLeft ArrowLeft", 0),
        ("End", len(tokens) - 1),
        ("ArrowRight", len(tokens) - 1),
        ("Home ArrowRight ArrowRight ArrowRight ArrowRight ArrowRight", 5),
    ]:
        for key in keys.split():
            page.keyboard.press(key)
        assert focused(page) == index
    assert page.locator("[role=option][tabindex='0']").count() == 1
    assert "step 2" in page.locator(".sl-strip-readout").inner_text()
    page.keyboard.press("Enter")
    assert state(page, "selected") == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    assert state(page, "selected") == 2
    page.keyboard.press("Escape")
    assert state(page, "selected") == -1
    page.keyboard.press("Tab")
    assert focused(page) == -1  # one Tab leaves


def test_plain_keys_stay_in_the_strip_and_commands_pass(open_strip, model):
    """In a notebook's command mode x cuts a cell, and Control-S saves."""
    page = open_strip(story(model))
    page.evaluate(
        "() => { window.heard = []; document.addEventListener('keydown', "
        "(event) => heard.push(event.key)); }"
    )
    option(page, 5).click()
    for key in ("x", "a", "ArrowDown", "Enter", "Shift+M", "Control+s", "Escape"):
        page.keyboard.press(key)
    page.get_by_label("shade").press("d")
    assert page.evaluate("heard") == ["Control", "s"]


def test_up_and_down_go_to_the_nearest_chip_of_the_next_line(open_strip, model):
    page = open_strip(story(model))
    option(page, 5).click()
    before = option(page, 5).bounding_box()
    page.keyboard.press("ArrowDown")
    below = focused(page)
    box = option(page, below).bounding_box()
    assert before["y"] < box["y"] < before["y"] + 60
    assert below > 5
    page.keyboard.press("ArrowUp")
    assert option(page, focused(page)).bounding_box()["y"] == before["y"]


def test_hovering_tells_all_numbers_and_leaving_goes_back(open_strip, model):
    tokens = story(model)
    page = open_strip(tokens, selected=1)
    readout = page.locator(".sl-strip-readout")
    token = tokens[12]
    option(page, 12).hover()
    text = " ".join(readout.inner_text().split())
    for fact in (
        "step 9",
        token["text"],
        f"id {token['id']}",
        f"bytes {token['bytes']}",
        f"rank {token['rank']}",
        f"surprisal {token['surprisal']:.2f} bits",
        f"entropy {token['entropy']:.2f} bits",
        f"kept {token['kept']}",
    ):
        assert fact in text
    page.mouse.move(890, 550)
    assert "step 2" in readout.inner_text()
    option(page, 2).hover()
    assert "prompt" in readout.inner_text()
    assert "surprisal" in readout.inner_text()


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_shades_and_states_its_unit(open_strip, model, measure):
    tokens = story(model)
    page = open_strip(tokens)
    page.get_by_label("shade").select_option(measure)
    assert state(page, "measure") == measure
    assert page.evaluate("model.saves") == 1
    shares = page.eval_on_selector_all(
        "[role=option]",
        "all => all.map((a) => +a.style.getPropertyValue('--sl-share'))",
    )
    values = [token.get(measure, 0.0) for token in tokens]
    pairs = sorted(zip(values[1:], shares[1:], strict=True))
    assert [share for _, share in pairs] == sorted(shares[1:])
    assert shares[0] == 0.0  # the first token of a prompt has no numbers
    assert all(0.0 <= share <= 1.0 for share in shares)
    low, high = page.locator(".sl-strip-legend > span:not(.sl-strip-ramp)").all()
    assert low.inner_text()[0] in "01"
    assert any(digit in high.inner_text() for digit in "18")


def test_an_infinite_surprisal_has_the_deepest_shade(open_strip, model):
    token = {**story(model)[5], "surprisal": None, "raw": 0.0, "step": 0}
    page = open_strip([token], selected=0)
    share = "document.querySelector('[role=option]').style.cssText"
    assert "--sl-share: 1.000" in page.evaluate(share)
    assert "∞ bits" in page.locator(".sl-strip-readout").inner_text()


def test_hostile_tokens_are_text(open_strip, model):
    ids = list(range(len(PIECES)))
    tokens = chips(model, (), ids)
    page = open_strip(tokens)
    readout = page.locator(".sl-strip-token")
    for index, token in enumerate(tokens):
        assert option(page, index).inner_text() == token["text"]
        option(page, index).hover()
        assert readout.inner_text() == token["text"]
        assert page.locator("img, b b, body script").count() == 0
    assert page.evaluate("window.wasObeyed") is None


def test_a_line_ends_after_a_token_with_a_newline(open_strip, model):
    tokens = chips(model, (), [10, 1, 11, 12])
    page = open_strip(tokens)
    tops = [option(page, index).bounding_box()["y"] for index in range(4)]
    assert tops[0] == tops[1] < tops[2] == tops[3]


def test_tokens_are_appended_without_touching_the_others(open_strip, model):
    tokens = story(model)
    page = open_strip(tokens[:20], selected=3)
    page.evaluate("window.first = document.querySelector('[role=option]')")
    page.evaluate(
        "() => { window.append = (at, tokens) => "
        "model.receive({ kind: 'append', at, tokens }); }"
    )
    page.evaluate("([a, t]) => append(a, t)", [20, tokens[20:30]])
    page.evaluate("([a, t]) => append(a, t)", [25, tokens[25:40]])  # half known
    page.evaluate("([a, t]) => append(a, t)", [10, tokens[10:20]])  # all known
    shown = page.locator(OPTIONS).all_inner_texts()
    assert shown == [token["text"] for token in tokens[:40]]
    assert page.evaluate("first === document.querySelector('[role=option]')")
    assert option(page, 7).get_attribute("aria-selected") == "true"
    assert page.evaluate("model.sent") == []
    page.evaluate("([a, t]) => append(a, t)", [50, tokens[50:]])
    assert page.evaluate("model.sent") == [{"kind": "resend"}]
    page.evaluate("(t) => model.set('tokens', t)", tokens)
    assert page.locator(OPTIONS).count() == len(tokens)


def test_a_view_that_opens_later_has_the_appended_tokens_too(open_strip, model):
    tokens = story(model)
    page = open_strip(tokens[:5])
    page.evaluate(
        "(t) => model.receive({kind: 'append', at: 5, tokens: t})", tokens[5:]
    )
    page.evaluate("""async () => {
      const el = document.createElement("section");
      document.body.append(el);
      await widget.render({ model, el });
      close();
    }""")
    assert page.get_by_role("listbox").count() == 1
    assert page.locator(OPTIONS).count() == len(tokens)


def test_focus_outlives_a_new_text(open_strip, model):
    tokens = story(model)
    page = open_strip(tokens)
    option(page, 30).click()
    page.evaluate("(t) => model.set('tokens', t)", tokens[:40])
    assert focused(page) == 30
    page.keyboard.press("ArrowRight")
    assert focused(page) == 31
    page.evaluate("(t) => model.set('tokens', t)", [])
    assert page.locator(".sl-strip-readout").inner_text().startswith("Point at a token")


def test_forks_and_given_tokens_are_marked_and_said(open_strip, model):
    page = open_strip(story(model), forks=[9])
    label = option(page, 13).get_attribute("aria-label")
    assert "chosen by hand" in label
    assert "forked here" in label
    page.evaluate("model.set('forks', [2])")
    assert "forked here" in option(page, 6).get_attribute("aria-label")
    assert "forked here" not in option(page, 13).get_attribute("aria-label")
    assert "stop token" in option(page, 63).get_attribute("aria-label")


CONTRASTS = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], below) =>
    [r, g, b].map((value, at) => value * a + below[at] * (1 - a));
  const light = (rgb) => rgb.map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = channels(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll("[role=option]")].map((chip) => {
    const style = getComputedStyle(chip);
    const back = over(channels(style.backgroundColor), ground);
    const ink = over(channels(style.color), back);
    const faded = (rgb) => over([...rgb, Number(style.opacity)], ground);
    const [low, high] = [faded(back), faded(ink)].map(light).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  });
}"""


@pytest.mark.parametrize("measure", ["surprisal", "raw"])
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_legible_on_every_shade(open_strip, model, theme, measure):
    """WCAG asks for a contrast of 4.5 for text."""
    sample = story(model)[10]
    share = {"surprisal": 10.0, "raw": 1.0}[measure]
    shades = [{**sample, measure: share * n / 10, "step": n} for n in range(11)]
    prompt = [{**chip, "step": None} for chip in shades]
    for chip in prompt:
        del chip["step"]
    page = open_strip(prompt + shades, theme, measure=measure)
    assert min(page.evaluate(CONTRASTS)) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_pictures(open_strip, model, theme, screenshots):
    page = open_strip(story(model, 90), theme, forks=[9, 20], selected=14)
    option(page, 13).hover()
    name = "light" if theme is LIGHT else "dark"
    page.screenshot(path=screenshots / f"strip_{name}.png")
    assert (screenshots / f"strip_{name}.png").stat().st_size > 10_000
