"""When things happen: on one event loop, not too often, and interruptible."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any


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
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_running(self) -> bool:
        """Whether there is a loop that will do what is posted."""
        return self._loop is not None and self._loop.is_running()

    def post(self, callback: Callable[[], None], delay: float = 0.0) -> None:
        """Call `callback` on the loop, some seconds later; from any thread."""
        if not self.is_running:
            callback()
        elif delay > 0.0:
            later = self._loop.call_later
            self._loop.call_soon_threadsafe(later, delay, callback)
        else:
            self._loop.call_soon_threadsafe(callback)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine on the loop; call this on the loop."""
        task = self._loop.create_task(work)
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)


class Throttle:
    """Call back once for any number of requests; the state of the end counts.

    Args:
        home: the loop to call back on.
        callback: reads the state there is when it is called.
        interval: at least so many seconds from one call's end to the next one, so
            that what else waits for the loop has its turn.
    """

    def __init__(
        self, home: EventLoop, callback: Callable[[], None], interval: float = 0.0
    ) -> None:
        self.interval = interval
        self._home, self._callback = home, callback
        self._due: float | None = None
        self._is_held = False
        self._ended = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Call once, at the end, for everything that is requested meanwhile."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.request()

    def request(self) -> None:
        """Ask for a call; from any thread."""
        if self._is_held:
            return
        now = time.monotonic()
        # A call overdue for a second was lost with its loop: ask again.
        if self._due is not None and now < self._due + 1.0:
            return
        self._due = max(now, self._ended + self.interval)
        self._home.post(self._call, self._due - now)

    def _call(self) -> None:
        self._due = None
        try:
            self._callback()
        finally:
            self._ended = time.monotonic()


async def yield_to_loop() -> None:
    """Let the loop do everything that waits for it.

    A message takes several turns of the loop from its socket to a widget's handler;
    a turn alone would let it advance only one of them.
    """
    await asyncio.sleep(0.001)


class Interrupts:
    """Hear interrupts (Ctrl-C, "interrupt the kernel") while a run goes on.

    A kernel ignores them between two messages, which is when a run goes on, and puts
    its own handler in place for each message; so a run listens anew at every token.

    Args:
        on_interrupt: called instead of raising `KeyboardInterrupt`.
    """

    def __init__(self, on_interrupt: Callable[[], None]) -> None:
        self._handler = lambda *_: on_interrupt()
        self._before: Any = None

    def listen(self) -> None:
        """Begin to listen, or make sure of it; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        before = signal.signal(signal.SIGINT, self._handler)
        # A message's own handler will be gone by the time this one is taken away.
        if before is not self._handler and self._before in (None, _RAISE):
            self._before = before

    def release(self) -> None:
        """Put back the handler that was there before, if this one still is."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, self._before or _RAISE)
        self._before = None


_RAISE = signal.default_int_handler
