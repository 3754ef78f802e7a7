"""Closing a panel: nothing of it is left, and nothing that comes late does anything."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import torch
from ipywidgets import Label
from ipywidgets.widgets.widget import _instances as live

from sampling_lab.explorer import Compare, Explorer, Toy
from sampling_lab.explorer.panel.event_loop import EventLoop, Throttle
from sampling_lab.explorer.panel.lab_widget import LabWidget
from tests.fakes import TableModel

PIECES = [bytes([97 + at]) for at in range(8)]
MODEL = TableModel(torch.eye(8), PIECES)
PANELS: dict[str, Callable[[], LabWidget]] = {
    "explorer": lambda: Explorer(MODEL, prompt="ab", max_new_tokens=5),
    "compare": lambda: Compare(MODEL, prompt="ab", max_new_tokens=5),
    "toy": Toy,
}


def use(panel: LabWidget) -> None:
    """Have a panel make all that it makes only when it is used."""
    if isinstance(panel, Explorer):
        panel.generate()
        panel.strip.selected = 2
    elif isinstance(panel, Compare):
        panel.compare()
    else:
        panel.draw_many()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario on a loop where an exception that nobody sees is a failure."""
    troubles: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: troubles.append(context)
        )
        await scenario
        await asyncio.sleep(0.05)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(watched())
    assert troubles == []


@pytest.mark.parametrize("name", PANELS)
def test_closing_leaves_no_widget_behind(name):
    before = dict(live)
    panel = PANELS[name]()
    use(panel)
    assert len(live) > len(before) + 50
    panel.close()
    assert live == before
    assert panel.is_closed


@pytest.mark.parametrize("name", PANELS)
def test_twenty_panels_one_after_another_leave_nothing(name):
    counts = set()
    for _ in range(20):
        panel = PANELS[name]()
        counts.add(len(live))
        panel.close()
    assert len(counts) == 1


@pytest.mark.parametrize("name", PANELS)
def test_a_closed_panel_can_be_forgotten(name):
    panel = PANELS[name]()
    use(panel)
    gone = weakref.ref(panel)
    panel.close()
    del panel
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", PANELS)
def test_a_second_closing_does_nothing(name):
    panel, other = PANELS[name](), PANELS[name]()
    panel.close()
    left = dict(live)
    panel.close()
    assert live == left
    assert not other.is_closed
    use(other)
    other.close()


def test_a_board_that_was_never_made_can_be_thrown_away():
    class Broken(LabWidget):
        def __init__(self) -> None:
            raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        Broken()
    gc.collect()  # an exception in `__del__` would be a warning, which is an error


def test_a_part_that_is_on_no_page_is_closed_too():
    class Hiding(Compare):
        def __init__(self) -> None:
            super().__init__(MODEL)
            self.hidden = {"one": Label("one"), "more": [(Compare(MODEL),)]}
            self.hidden["one"].holder = self  # a ring ends too

    before = dict(live)
    Hiding().close()
    assert live == before


# What comes late


def test_late_events_change_nothing_and_raise_nothing():
    async def scenario() -> None:
        explorer = PANELS["explorer"]()
        explorer.refresh.request()
        explorer.close()
        picture, status = explorer.picture.value, explorer.status.value
        slider = explorer.controls.dials["temperature"].slider
        slider.value = 0.25
        explorer.controls.dials["top_p"].box.value = "nonsense"
        explorer.prompt.value = "b"
        explorer.generate_button.click()
        explorer.refresh.request()
        await asyncio.sleep(0.1)
        explorer.refresh.request()
        explorer.panel.draw_now()  # a call that was posted long ago
        explorer.generate()
        explorer.step()
        await asyncio.sleep(0.05)
        assert explorer.picture.value == picture
        assert explorer.status.value == status
        assert explorer.generation is None

    run(scenario())


def test_without_a_loop_late_calls_do_nothing_either():
    compare, toy = PANELS["compare"](), PANELS["toy"]()
    compare.close()
    toy.close()
    compare.compare()
    assert compare.grid is None
    toy.draw_many()
    assert toy.drawn == []
    toy.refresh.request()
    toy.reset_button.click()


@pytest.mark.parametrize("name", ["explorer", "compare"])
def test_closing_ends_a_run(name):
    async def scenario() -> None:
        panel = PANELS[name]()
        panel.max_new_tokens.value = 10_000
        panel.generate() if name == "explorer" else panel.compare()
        while not panel.status.value.startswith("generating"):
            await asyncio.sleep(0.01)
        panel.close()
        await asyncio.sleep(0.05)
        count = panel.model.forward_passes
        await asyncio.sleep(0.05)
        assert panel.model.forward_passes == count
        assert not panel.player.is_playing

    run(scenario())


def test_a_closed_loop_drops_what_waits_and_what_comes():
    calls: list[str] = []

    async def scenario() -> None:
        loop = EventLoop()
        throttle = Throttle(loop, lambda: calls.append("throttled"), interval=0.02)
        throttle.request()
        await asyncio.sleep(0.05)
        throttle.request()
        loop.post(lambda: calls.append("posted"))
        loop.post(lambda: calls.append("later"), 0.03)
        loop.repeat(lambda: True)
        closing = threading.Thread(target=loop.close)
        closing.start()
        closing.join()
        loop.post(lambda: calls.append("late"))
        loop.repeat(lambda: True)
        throttle.request()
        await asyncio.sleep(0.05)

    run(scenario())
    assert calls == ["throttled"]
