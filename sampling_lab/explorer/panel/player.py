"""Draw the tokens of a run or of a grid of runs, and score those of a prompt."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain as joined
from itertools import islice
from typing import Generic, TypeVar

from ...generation.grid import Grid
from ...generation.loop import Run
from ...generation.results import Step
from ...generation.scoring import score
from ...models.base import Model
from ...sampling.params import SamplingParams
from ...text import counted
from .event_loop import PAUSE, EventLoop, Interrupts

_ENDINGS = {
    "stop": "the model ended it",
    "length": "max new tokens reached",
    "context": "the context is full",
}

Guard = Callable[[Callable[[], None]], bool]
"""Runs an action and shows its error; returns whether it succeeded."""

Source = TypeVar("Source", Run, Grid)
"""What is played: each `next` of it draws a token, or a token of every run."""


class Player(Generic[Source]):
    """Draw tokens on the panel's event loop, or at once where there is none.

    Args:
        loop: the event loop.
        guard: runs what may go wrong.
        on_change: called after every token, and when playing begins or ends.

    Attributes:
        run: what is played, or was played last.
        is_playing: whether tokens are being drawn.
    """

    def __init__(
        self, loop: EventLoop, guard: Guard, on_change: Callable[[], None]
    ) -> None:
        self._loop, self._guard, self._on_change = loop, guard, on_change
        self._interrupts = Interrupts(self.stop)
        self.is_playing, self._clock = False, 0.0
        self.clear()

    @property
    def is_open(self) -> bool:
        """Whether there are more tokens to draw."""
        return any(run.finish_reason is None for run in self._runs())

    @abstractmethod
    def _runs(self) -> list[Run]:
        """Return every run that is played."""

    @abstractmethod
    def status(self) -> str:
        """Return how it went so far: tokens, speed and forward passes."""

    def clear(self) -> None:
        """Forget what is played; if it is playing, it ends."""
        self.run: Source | None = None
        self._stopped: str | None = "nothing to play"
        self._seconds, self._passes, self._drawn = 0.0, 0, 0

    def start(self, run: Source) -> None:
        """Take a new run, without drawing a token yet."""
        self.clear()
        self.run, self._stopped = run, None

    def play(self) -> None:
        """Draw tokens until the run ends; on a loop, this returns at once."""
        self._set_playing(True)
        self._loop.repeat(self._draw_next, lambda: self._set_playing(False))

    def advance(self) -> None:
        """Draw one token."""
        run = self.run
        if run is None:
            return
        passes = run.model.forward_passes
        if not self.is_playing:
            self._clock = time.perf_counter()
        drawn = next(run, None)
        if run is self.run:  # a handler may have cleared it meanwhile
            self._drawn += drawn is not None
            self._seconds += self._lap()
            self._passes += run.model.forward_passes - passes
        self._on_change()

    def stop(self, because: str = "stopped") -> None:
        """End after the token that is being drawn; the tokens so far stay."""
        self._stopped = self._stopped or because

    async def finished(self) -> None:
        """Wait until nothing plays."""
        while self.is_playing:
            await asyncio.sleep(PAUSE)

    def _draw_next(self) -> bool:
        """Draw a token; return False once there is none to draw."""
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

    def _speed(self, count: int) -> str:
        return f"{count / self._seconds if self._seconds else 0.0:,.1f} tok/s"


class RunPlayer(Player[Run]):
    """Draw the tokens of one run."""

    def status(self) -> str:
        """Return how the run went so far: tokens, speed, what was recomputed."""
        if self.run is None:
            return ""
        result, drawn = self.run.generation, self._drawn
        ending = _ENDINGS.get(self.run.finish_reason or "", self._stopped)
        parts = [
            ("generating" if self.is_playing else ending) or "one step at a time",
            counted(len(result.token_ids), "token"),
        ]
        if drawn:
            parts.append(self._speed(drawn))
            parts.append(f"{self._passes} of {drawn} steps recomputed")
        return " · ".join([*parts, *result.notes])

    def _runs(self) -> list[Run]:
        return [self.run] if self.run else []


class GridPlayer(Player[Grid]):
    """Draw the tokens of all runs of a grid together."""

    def status(self) -> str:
        """Return how the runs went so far: tokens, speed, and how they were run."""
        if self.run is None:
            return ""
        counts = [len(run.generation.all_steps) for run in self._runs()]
        total, rows = sum(counts), len(counts)
        together = self._passes <= max(counts)
        return " · ".join(
            [
                "generating" if self.is_playing else self._stopped or "all have ended",
                counted(total, "token"),
                self._speed(total),
                f"{rows} rows in one batch" if together else "one row after another",
                counted(self._passes, "forward pass", "es"),
            ]
        )

    def _runs(self) -> list[Run]:
        return list(joined.from_iterable(self.run.runs if self.run else ()))


class PromptScorer:
    """Score the prompt's own tokens: how likely the model finds each of them.

    Args:
        loop: the event loop; where there is none, all tokens are scored at once.
        guard: runs what may go wrong.
        on_change: called after every token.

    Attributes:
        scores: a step for each token so far; None for the first, which has nothing
            before it.
        is_paused: while True nothing is scored; the scores so far stay.
    """

    def __init__(
        self, loop: EventLoop, guard: Guard, on_change: Callable[[], None]
    ) -> None:
        self._loop, self._guard, self._on_change = loop, guard, on_change
        self.is_paused = False
        self._asked: object = None
        self.scores: list[Step | None] = []

    def ask(self, model: Model, ids: tuple[int, ...], params: SamplingParams) -> None:
        """Score a prompt in place of the one before, unless it is the same."""
        asked = (model, ids, params)
        if asked != self._asked:
            steps = score(model, ids, params)
            self.stop()
            self._asked = asked
            self._loop.repeat(partial(self._score_next, steps, self.scores))

    def stop(self) -> None:
        """Forget the prompt and its scores."""
        self._asked, self.scores = None, []

    def _score_next(
        self, steps: Iterator[Step | None], scores: list[Step | None]
    ) -> bool:
        """Score a token; return False at the end of the prompt, or of its turn."""
        if scores is not self.scores:  # another prompt took its place
            return False
        if self.is_paused:
            return True
        count = len(scores)
        if not self._guard(lambda: scores.extend(islice(steps, 1))):
            return False
        self._on_change()
        return len(scores) > count
