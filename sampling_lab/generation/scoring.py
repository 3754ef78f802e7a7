"""The probability that a model gives to tokens it did not choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..models.base import Model, Prompt
from ..sampling.arguments import checked
from ..sampling.draws import GIVEN, DrawResult
from ..sampling.history import History
from ..sampling.params import SamplingParams
from .guide import with_guide
from .results import Step, ledger_after, step_from_ledger


@checked
def score(
    model: Model, prompt: Prompt, params: SamplingParams | None = None
) -> Iterator[Step | None]:
    r"""Return a step for every token of a prompt, each given and none drawn.

    The steps come one at a time, because each costs a forward pass unless the model
    remembers its logits. The first token has nothing before it: its step is None.

    Args:
        model: what `load` gave.
        prompt: text, token ids, or chat messages.
        params: for the final probabilities and kept counts; all tokens before a step
            count as the prompt.

    Raises:
        PromptError: an empty prompt.

    Example:
        >>> from sampling_lab import load, score
        >>> model = load("checkpoints/xslm/model.json")
        >>> none, *steps = score(model, "Q: hi\nA: ")
        >>> none is None, steps[0].index, 0 < steps[0].raw_prob < 1
        (True, 1, True)
    """
    params = (params or SamplingParams()).resolve(model.card.dialect)
    return _scored(model, model.prompt_ids(prompt), params)


def _scored(
    model: Model, ids: Sequence[int], params: SamplingParams
) -> Iterator[Step | None]:
    prefix, decoder = model.prefix(ids[:1]), model.decoder()
    decoder.push(ids[0])
    history = History(ids, stop_token_ids=model.card.stop_token_ids)
    history = with_guide(model, params, history)
    yield None
    for index, token_id in enumerate(ids[1:], 1):
        chain = params.chain(*history._replace(prompt_length=index).first(index))
        yield step_from_ledger(
            DrawResult(token_id, GIVEN),
            chain.ledger(model.logits(prefix)),
            partial(
                ledger_after,
                model,
                params,
                history._replace(prompt_length=index),
                index,
            ),
            index=index,
            token_text=model.token_text(token_id),
            text=decoder.push(token_id),
        )
        prefix.append(token_id)
