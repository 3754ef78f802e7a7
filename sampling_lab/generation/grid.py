"""Several settings and seeds over one prompt, run together and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as joined
from typing import Any

from ..errors import ParameterError
from ..models.base import Model, Prompt
from ..sampling.arguments import checked
from ..sampling.params import SamplingParams
from .loop import Run, stream
from .results import Generation, first_difference


@dataclass(frozen=True)
class Cell:
    """One run of a grid, compared with the reference.

    Attributes:
        params: its settings, with its seed.
        generation: its result so far.
        first_difference: the first step whose token is not the reference's, counting
            from 0; None if all are the same.
    """

    params: SamplingParams
    generation: Generation
    first_difference: int | None


class Grid(Iterator[int]):
    r"""A run for each setting (a row) and seed (a column), everything else the same.

    Each iteration advances every unfinished run by one token, in one forward pass
    where the model's format can, and yields how many are still unfinished. Each run
    draws what it would draw alone.

    Args:
        model: what `load` gave.
        prompt: text to continue, token ids, or chat messages.
        settings: one or more sampling parameters; their own seeds are not used.
        seeds: one or more seeds.
        options: `max_new_tokens`, `stop` and `stop_token_ids`, as in `stream`.

    Raises:
        ParameterError: no settings, no seeds, or one outside its rule.

    Example:
        >>> from sampling_lab import Grid, SamplingParams, load
        >>> model = load("checkpoints/xslm/model.json")
        >>> settings = [SamplingParams(temperature=t) for t in (0.5, 2.0)]
        >>> Grid(model, "Q: hi\nA: ", settings, seeds=[1, 2]).to_the_end().answers()
        {'hello.': 2, 'heA: the sky is blue.': 1, 'iy is warm.': 1}
    """

    @checked
    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        settings: Sequence[SamplingParams],
        seeds: Sequence[int],
        **options: Any,
    ) -> None:
        for name, given in (("settings", settings), ("seeds", seeds)):
            if not len(given):
                raise ParameterError(f"{name} must hold at least one, got none")
        ids = model.prompt_ids(prompt)
        self.model = model
        self.runs: list[list[Run]] = [
            [stream(model, ids, row.replace(seed=seed), **options) for seed in seeds]
            for row in settings
        ]

    def __next__(self) -> int:
        """Advance every open run by one token."""
        going = [run for run in self._all() if run.finish_reason is None]
        if not going:
            raise StopIteration
        self.model.logits_batch([run.prefix for run in going])  # remembered now
        for run in going:
            next(run)
        return sum(run.finish_reason is None for run in going)

    def to_the_end(self) -> Grid:
        """Advance until every run has ended; an interrupt keeps the tokens so far."""
        try:
            for _ in self:
                pass
        except KeyboardInterrupt:
            return self
        return self

    def cells(self, reference: tuple[int, int] = (0, 0)) -> list[list[Cell]]:
        """Return rows of cells, compared with the run at (row, column)."""
        row, column = reference
        first = self.runs[row][column].generation
        results = [[run.generation for run in row] for row in self.runs]
        return [
            [Cell(one.params, one, first_difference(one, first)) for one in row]
            for row in results
        ]

    def answers(self) -> dict[str, int]:
        """Return how often each text came, the most frequent first."""
        texts = Counter(run.generation.text for run in self._all())
        return dict(texts.most_common())

    def _all(self) -> Iterator[Run]:
        return joined.from_iterable(self.runs)
