"""How likely a model finds tokens that it did not choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..models.base import Model, Prompt
from ..sampling.draws import GIVEN, DrawResult
from ..sampling.params import SamplingParams
from ..text import IncrementalDecoder
from .loop import ledger_after, step_from_ledger
from .results import Step


def score(
    model: Model, prompt: Prompt, params: SamplingParams | None = None
) -> Iterator[Step | None]:
    r"""Return a step for every token of a prompt, each given and none drawn.

    The steps come one at a time, for each costs a forward pass where the model does
    not remember what comes after the tokens before it. The first token has nothing
    before it, and its step is None.

    Args:
        model: what `load` gave.
        prompt: text, token ids, or chat messages.
        params: what the final probabilities and the kept counts are about; all
            tokens before one count as the prompt.

    Raises:
        PromptError: an empty prompt.

    Example:
        >>> from sampling_lab import load, score
        >>> model = load("checkpoints/xslm/model.json")
        >>> none, *steps = score(model, "Q: hi\nA: ")
        >>> none is None, steps[0].index, 0 < steps[0].raw_prob < 1
        (True, 1, True)
    """
    ids = tuple(model.prompt_ids(prompt))
    params = (params or SamplingParams()).resolve(model.card.dialect)
    return _scored(model, ids, params)


def _scored(
    model: Model, ids: tuple[int, ...], params: SamplingParams
) -> Iterator[Step | None]:
    decoder = IncrementalDecoder(
        model.tokenizer.decode if model.tokenizer else _no_text
    )
    decoder.push(ids[0])
    yield None
    for index, token_id in enumerate(ids[1:], 1):
        before = ids[:index]
        again = partial(ledger_after, model, before, params.chain(before, index))
        yield step_from_ledger(
            DrawResult(token_id, GIVEN),
            again(),
            again,
            index=index,
            token_text=model.token_text(token_id),
            text=decoder.push(token_id),
        )


def _no_text(token_ids: Sequence[int]) -> str:
    return ""
