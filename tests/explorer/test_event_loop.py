"""The event loop of a panel: threads, bursts, interrupts, and no loop at all."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest
import torch

from sampling_lab.explorer.panel.event_loop import EventLoop, Interrupts, Throttle
from sampling_lab.explorer.pictures.tabs import Pictures
from tests.explorer.panels import dial, make_explorer
from tests.helpers import until


def test_interrupts_are_heard_again_after_a_message_took_its_own_handler():
    heard = []
    outer = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupts = Interrupts(lambda: heard.append("stop"))
        saved = signal.signal(signal.SIGINT, signal.default_int_handler)  # a message
        interrupts.listen()
        signal.signal(signal.SIGINT, saved)  # its end
        signal.raise_signal(signal.SIGINT)
        assert heard == []
        interrupts.listen()
        signal.raise_signal(signal.SIGINT)
        assert heard == ["stop"]
        interrupts.release()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        interrupts.release()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, outer)


def test_interrupts_are_left_alone_on_other_threads():
    interrupts = Interrupts(lambda: None)
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=interrupts.listen)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.fixture
def drawn(monkeypatch):
    """Return a list of the views that are drawn, each with the thread that drew it."""
    views, original = [], Pictures.draw

    def noted(self, tab, view):
        views.append((view, threading.current_thread()))
        return original(self, tab, view)

    monkeypatch.setattr(Pictures, "draw", noted)
    return views


def test_a_burst_on_the_loop_draws_only_the_last_and_queues_nothing(drawn):
    async def scenario():
        explorer = make_explorer()
        await asyncio.sleep(0.05)
        drawn.clear()
        slider = dial(explorer, "temperature").slider
        for step in range(100):
            slider.value = 0.1 + step * 0.02
            if step % 10 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        count = len(drawn)
        await asyncio.sleep(0.1)
        assert len(drawn) == count <= 10
        ledger = drawn[-1][0].ledger
        final = explorer.params.chain().ledger(ledger.raw_logits)
        assert torch.equal(ledger.final_probs, final.final_probs)
        assert explorer.params.temperature == 2.08

    asyncio.run(scenario())


def test_handlers_on_other_threads_are_served_on_the_panels_own_loop(drawn):
    async def scenario():
        explorer = make_explorer()

        def elsewhere():
            dial(explorer, "temperature").slider.value = 0.5
            explorer.generate_button.click()

        await asyncio.to_thread(elsewhere)
        await until(lambda: explorer.generation is not None)
        await until(lambda: not explorer.player.is_playing)
        assert len(explorer.generation.steps) == 12

    asyncio.run(scenario())
    assert {thread for _, thread in drawn} == {threading.main_thread()}


def test_a_panel_survives_its_loop():
    async def make():
        return make_explorer()

    explorer = asyncio.run(make())
    dial(explorer, "temperature").slider.value = 0.5
    assert "kept 8 of 8" in explorer.caption.value
    explorer.generate()
    assert len(explorer.generation.steps) == 12


def test_without_a_loop_a_throttle_calls_at_once():
    calls = []
    throttle = Throttle(EventLoop(), lambda: calls.append(1), interval=1.0)
    throttle.request()
    throttle.request()
    assert calls == [1, 1]


def test_without_a_loop_repeating_ends_at_false_and_is_done_after_an_error():
    calls, done = [], []
    loop = EventLoop()
    loop.repeat(lambda: len(calls) < 3 and not calls.append(1), lambda: done.append(1))
    assert (len(calls), done) == (3, [1])
    with pytest.raises(ZeroDivisionError):
        loop.repeat(lambda: bool(1 / 0), lambda: done.append(2))
    assert done == [1, 2]
