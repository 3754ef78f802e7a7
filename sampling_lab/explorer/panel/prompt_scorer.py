"""Score the prompt's own tokens: how likely the model finds each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from ...generation.results import Step
from ...generation.scoring import score
from ...models.base import Model
from ...sampling.params import SamplingParams
from .event_loop import EventLoop


class PromptScorer:
    """Score a prompt on the panel's event loop, or at once where there is none.

    Args:
        loop: the event loop.
        guard: runs an action and shows its error; returns whether it succeeded.
        on_change: called after every token.

    Attributes:
        scores: a step for each token so far; None for the first, which has nothing
            before it.
        is_paused: while True nothing is scored; the scores so far stay.
    """

    def __init__(
        self,
        loop: EventLoop,
        guard: Callable[[Callable[[], None]], bool],
        on_change: Callable[[], None],
    ) -> None:
        self._loop, self._guard, self._on_change = loop, guard, on_change
        self.is_paused = False
        self._asked: object = None
        self._steps: Iterator[Step | None] | None = None
        self.scores: list[Step | None] = []

    def ask(self, model: Model, ids: tuple[int, ...], params: SamplingParams) -> None:
        """Score a prompt in place of the one before, unless it is the same."""
        asked = (model, ids, params)
        if asked == self._asked:
            return
        self.stop()
        steps = score(model, ids, params)
        self._asked, self._steps = asked, steps
        self._loop.repeat(partial(self._score_next, steps))

    def stop(self) -> None:
        """Forget the prompt and its scores."""
        self._asked = self._steps = None
        self.scores = []

    def _score_next(self, steps: Iterator[Step | None]) -> bool:
        """Score a token; return False at the end of the prompt, or of its turn."""
        if steps is not self._steps:  # another prompt took its place
            return False
        if self.is_paused:
            return True
        count = len(self.scores)
        if not self._guard(lambda: self.scores.extend(islice(steps, 1))):
            return False
        self._on_change()
        return len(self.scores) > count
