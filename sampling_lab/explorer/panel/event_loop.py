"""Run work on the kernel's event loop, throttle redraws, handle Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

PAUSE = 0.001
"""Seconds between two steps, in which the loop handles the events that are waiting.

A message takes several iterations of the loop to get from its socket to a widget's
handler; without a pause there would be only one of them.
"""


class EventLoop:
    """The event loop that a panel was made on, where all its work is done.

    A notebook may deliver widget messages on other threads (JupyterLab sends them to
    subshells of the kernel), and one model cannot serve two threads. Without a loop,
    as in a script, everything happens at once, in the caller.
    """

    def __init__(self) -> None:
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._is_closed = False

    def post(self, callback: Callable[[], None], delay: float = 0.0) -> None:
        """Call `callback` on the loop, some seconds later; from any thread."""
        loop, call = self._running(), partial(self._call, callback)
        if loop is None:
            call()
        elif delay > 0.0:
            loop.call_soon_threadsafe(loop.call_later, delay, call)
        else:
            loop.call_soon_threadsafe(call)

    def posted(self, action: Callable[..., None]) -> Callable[..., None]:
        """Return a function that posts a call of `action`, and has its docstring."""
        return wraps(action)(lambda *args: self.post(partial(action, *args)))

    def repeat(
        self, step: Callable[[], bool], done: Callable[[], None] = lambda: None
    ) -> None:
        """Call `step` until it returns False, then `done`; call this on the loop.

        On a running loop this returns at once, and other events are handled between
        two steps. `done` is called after an exception or `close` too.
        """
        if loop := self._running():
            loop.call_soon(self._repeat, step, done)
            return
        try:
            while not self._is_closed and step():
                pass
        finally:
            done()

    def close(self) -> None:
        """End what repeats, and ignore posted and later work; from any thread."""
        self._is_closed = True

    def _repeat(self, step: Callable[[], bool], done: Callable[[], None]) -> None:
        goes_on = False
        try:
            goes_on = not self._is_closed and step()
        finally:
            if goes_on:
                loop = asyncio.get_running_loop()
                loop.call_later(PAUSE, self._repeat, step, done)
            else:
                done()

    def _running(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop; None where it will never do what is posted."""
        return self._loop if self._loop and self._loop.is_running() else None

    def _call(self, callback: Callable[[], None]) -> None:
        if not self._is_closed:
            callback()


class Throttle:
    """Merge any number of requests into one call, which reads the latest state.

    Args:
        loop: the loop to call back on.
        callback: called without arguments.
        interval: the minimum number of seconds between the end of one call and the
            next one, in which other events are handled.
    """

    def __init__(
        self, loop: EventLoop, callback: Callable[[], object], interval: float = 0.0
    ) -> None:
        self.interval = interval
        self._loop, self._callback = loop, callback
        self._due: float | None = None
        self._is_held = False
        self._ended = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Merge all requests made inside the `with` block into one call at its end."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.request()

    def request(self, change: object = None) -> None:
        """Ask for a call, also as a handler of any `change`; from any thread."""
        if self._is_held:
            return
        now = time.monotonic()
        # A call that is a second late was lost with its loop: post another.
        if self._due is not None and now < self._due + 1.0:
            return
        self._due = max(now, self._ended + self.interval)
        self._loop.post(self._call, self._due - now)

    def _call(self) -> None:
        self._due = None
        try:
            self._callback()
        finally:
            self._ended = time.monotonic()


class Interrupts:
    """Catch interrupts (Ctrl-C, "interrupt the kernel") during a run.

    A kernel ignores interrupts between two messages, which is when a run draws its
    tokens, and installs its own handler for each message; so call `listen` again at
    every token.

    Args:
        on_interrupt: called instead of raising `KeyboardInterrupt`.
    """

    def __init__(self, on_interrupt: Callable[[], None]) -> None:
        self._handler = lambda *_: on_interrupt()
        self._before: Any = None

    def listen(self) -> None:
        """Install the handler unless it is installed; only on the main thread."""
        if not _is_main_thread():
            return
        before = signal.signal(signal.SIGINT, self._handler)
        # A message's handler will be gone by the time this one is removed.
        if before is not self._handler and self._before in (None, _RAISE):
            self._before = before

    def release(self) -> None:
        """Restore the previous handler, if this one is still installed."""
        is_installed = signal.getsignal(signal.SIGINT) is self._handler
        if _is_main_thread() and is_installed:
            signal.signal(signal.SIGINT, self._before or _RAISE)
        self._before = None


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


_RAISE = signal.default_int_handler
