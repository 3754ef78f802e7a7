"""One run at a time: started, played token by token, stopped, timed."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...generation.loop import Run
from ...models.base import Model
from .event_loop import EventLoop, Interrupts, yield_to_loop

_ENDINGS = {
    "stop": "the model ended it",
    "length": "max new tokens reached",
    "context": "the context is full",
}


class Player:
    """Play a run on the panel's event loop, or at once where there is none.

    Args:
        model: whose forward passes are counted.
        home: the loop.
        guard: does something and shows its error; returns whether it went well.
        on_change: called after every token, and when playing begins or ends.

    Attributes:
        run: the run under way, or the last one.
        is_playing: whether tokens are coming in.
    """

    def __init__(
        self,
        model: Model,
        home: EventLoop,
        guard: Callable[[Callable[[], None]], bool],
        on_change: Callable[[], None],
    ) -> None:
        self._model, self._home = model, home
        self._guard, self._on_change = guard, on_change
        self._interrupts = Interrupts(self.stop)
        self.is_playing, self._clock = False, 0.0
        self.clear()

    def clear(self) -> None:
        """Forget the run; one that plays ends."""
        self.run: Run | None = None
        self._stopped: str | None = "nothing to play"
        self._seconds, self._passes, self._drawn = 0.0, 0, 0

    @property
    def is_open(self) -> bool:
        """Whether the run can go on."""
        return self.run is not None and self.run.finish_reason is None

    def start(self, run: Run) -> None:
        """Take up a new run, without drawing a token yet."""
        self.clear()
        self.run, self._stopped = run, None

    def play(self) -> None:
        """Draw tokens until the run ends; on a loop, this returns at once."""
        self._set_playing(True)
        if self._home.is_running:
            self._home.start(self._play())
            return
        try:
            while self._goes_on():
                pass
        finally:
            self._set_playing(False)

    def advance(self) -> None:
        """Draw one token."""
        run, passes = self.run, self._model.forward_passes
        if run is None:
            return
        if not self.is_playing:
            self._clock = time.perf_counter()
        step = next(run, None)
        if run is self.run:  # it may have been cleared by a handler meanwhile
            self._drawn += step is not None
            self._seconds += self._lap()
            self._passes += self._model.forward_passes - passes
        self._on_change()

    def stop(self, because: str = "stopped") -> None:
        """End after the token that is being drawn; what there is stays."""
        self._stopped = self._stopped or because

    async def finished(self) -> None:
        """Wait until nothing plays."""
        while self.is_playing:
            await yield_to_loop()

    def status(self) -> str:
        """Return how the run went so far: tokens, speed, what was recomputed."""
        if self.run is None:
            return ""
        result = self.run.generation
        count, drawn = len(result.token_ids), self._drawn
        ending = _ENDINGS.get(self.run.finish_reason or "", self._stopped)
        parts = [
            ("generating" if self.is_playing else ending) or "one step at a time",
            f"{count} token{'' if count == 1 else 's'}",
        ]
        if drawn:
            speed = drawn / self._seconds if self._seconds else 0.0
            parts.append(f"{speed:,.1f} tok/s")
            parts.append(f"{self._passes} of {drawn} steps recomputed")
        return " · ".join([*parts, *result.notes])

    async def _play(self) -> None:
        try:
            while self._goes_on():
                await yield_to_loop()
        finally:
            self._set_playing(False)

    def _goes_on(self) -> bool:
        """Draw a token, and return whether there is one more to draw."""
        self._interrupts.listen()
        if self._stopped is not None or not self.is_open:
            return False
        if not self._guard(self.advance):
            self.stop("stopped by the error")
        return True

    def _lap(self) -> float:
        """Return the seconds since the last token, or since playing began."""
        before, self._clock = self._clock, time.perf_counter()
        return self._clock - before

    def _set_playing(self, playing: bool) -> None:
        self.is_playing, self._clock = playing, time.perf_counter()
        if not playing:
            self._interrupts.release()
        self._on_change()
