"""Several settings and seeds over one prompt, run together and held side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as joined
from itertools import zip_longest
from typing import Any

from ..errors import ParameterError
from ..models.base import Model, Prompt
from ..sampling.params import SamplingParams
from .loop import Run, stream
from .results import Generation


@dataclass(frozen=True)
class Cell:
    """One run of a grid, held beside the reference.

    Attributes:
        params: its settings, with its seed.
        generation: what it gave so far.
        first_difference: the first step whose token is not the reference's, counting
            from 0; None while there is none.
    """

    params: SamplingParams
    generation: Generation
    first_difference: int | None


class Grid(Iterator[int]):
    r"""A run for each setting (a row) and seed (a column), everything else the same.

    Iterating advances every run that is not finished by one token, all in one
    forward pass where the model's format can, and gives how many still go on. Each
    run draws what it would draw alone.

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
        >>> settings = [SamplingParams(temperature=t) for t in (0.5, 3.0)]
        >>> Grid(model, "Q: hi\nA: ", settings, seeds=[1, 2]).to_the_end().answers()
        {'hello.': 2, 'heis blue.': 1, ':�arg can run.': 1}
    """

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
        self.model.logits_batch([run.ids for run in going])  # remembered now
        for run in going:
            next(run)
        return sum(run.finish_reason is None for run in going)

    def to_the_end(self) -> Grid:
        """Advance until every run has ended; an interrupt keeps what there is."""
        try:
            for _ in self:
                pass
        except KeyboardInterrupt:
            return self
        return self

    def cells(self, reference: tuple[int, int] = (0, 0)) -> list[list[Cell]]:
        """Return the runs as rows of cells, beside the one at (row, column)."""
        row, column = reference
        first = self.runs[row][column].generation
        return [[_cell(run.generation, first) for run in row] for row in self.runs]

    def answers(self) -> dict[str, int]:
        """Return the distinct texts with how often each came, most frequent first."""
        texts = Counter(run.generation.text for run in self._all())
        return dict(texts.most_common())

    def _all(self) -> Iterator[Run]:
        return joined.from_iterable(self.runs)


def _cell(generation: Generation, reference: Generation) -> Cell:
    return Cell(generation.params, generation, _first_difference(generation, reference))


def _first_difference(one: Generation, other: Generation) -> int | None:
    pairs = enumerate(zip_longest(_drawn(one), _drawn(other)))
    return next((at for at, (mine, yours) in pairs if mine != yours), None)


def _drawn(generation: Generation) -> list[int]:
    return [step.token_id for step in generation.all_steps]
