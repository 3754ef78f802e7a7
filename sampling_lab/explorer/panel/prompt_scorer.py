"""The prompt's own tokens: how likely the model finds each, found one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...generation.results import Step
from ...generation.scoring import score
from ...models.base import Model
from ...sampling.params import SamplingParams
from .event_loop import EventLoop, yield_to_loop


class PromptScorer:
    """Score a prompt on the panel's loop, or at once where there is none.

    Args:
        home: the loop.
        guard: does something and shows its error; returns whether it went well.
        on_change: called after every token.

    Attributes:
        scores: a step for each token so far; None for the first, which has nothing
            before it.
    """

    def __init__(
        self,
        home: EventLoop,
        guard: Callable[[Callable[[], None]], bool],
        on_change: Callable[[], None],
    ) -> None:
        self._home, self._guard, self._on_change = home, guard, on_change
        self._asked: object = None
        self._is_paused = False
        self._steps: Iterator[Step | None] | None = None
        self.scores: list[Step | None] = []

    def ask(self, model: Model, ids: tuple[int, ...], params: SamplingParams) -> None:
        """Score a prompt, unless that is what was asked before; a newer one counts."""
        asked = (model, ids, params)
        if asked == self._asked:
            return
        self.stop()
        self._asked, self._steps = asked, score(model, ids, params)
        if self._home.is_running:
            self._home.start(self._play(self._steps))
        else:
            while self._goes_on(self._steps):
                pass

    def pause(self, paused: bool) -> None:
        """Score nothing for a while; what was found stays."""
        self._is_paused = paused

    def stop(self) -> None:
        """Forget what was asked and found."""
        self._asked = self._steps = None
        self.scores = []

    async def _play(self, steps: Iterator[Step | None]) -> None:
        while self._goes_on(steps):
            await yield_to_loop()

    def _goes_on(self, steps: Iterator[Step | None]) -> bool:
        """Score a token, and return whether to go on."""
        if steps is not self._steps:  # a newer prompt is scored by now
            return False
        if self._is_paused:
            return True
        count = len(self.scores)
        if not self._guard(lambda: self.scores.extend(_next(steps))):
            return False
        self._on_change()
        return len(self.scores) > count


def _next(steps: Iterator[Step | None]) -> list[Step | None]:
    """Return the next step in a list; an empty one at the end."""
    for step in steps:
        return [step]
    return []
