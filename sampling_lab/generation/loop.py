"""The loop: logits, chain, draw, append; one step at a time, or all at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, cast, overload

from torch import Tensor

from ..errors import ParameterError
from ..models.base import Model, Prompt, Prompts, are_several
from ..sampling.arguments import checked
from ..sampling.draws import GIVEN, DrawResult
from ..sampling.history import History
from ..sampling.ledger import Ledger
from ..sampling.notes import notes
from ..sampling.params import SamplingParams
from ..sampling.validation import shown, whole_number
from ..text import IncrementalDecoder, StopMatcher
from .guide import with_guide
from .results import (
    Generation,
    Step,
    first_difference,
    ledger_after,
    step_from_ledger,
)


class Run(Iterator[Step]):
    """A generation in progress: an iterator of `Step` that can be left at any time.

    `stream` makes runs.

    Attributes:
        model: the model that is asked.
        params: the parameters with the dialect and the seed that are used.
        prefix: the prompt's ids and the new ones.
        finish_reason: None until the run has ended.
    """

    def __init__(
        self,
        model: Model,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        max_new_tokens: int,
        stop: tuple[str, ...],
        stop_token_ids: tuple[int, ...],
    ) -> None:
        self.model = model
        self.params = params.resolve(model.card.dialect)
        self.prefix = model.prefix(prompt_ids)
        self.finish_reason: str | None = None
        self._prompt_length = len(prompt_ids)
        # Lists that grow with the run.
        self._surprises: list[float] = []
        history = History(
            self.prefix.ids, len(prompt_ids), stop_token_ids, self._surprises
        )
        self._history = with_guide(model, self.params, history)
        self._chain = self.params.chain(*self._history)
        self._max_new_tokens = max_new_tokens
        self._budget = model.budget(len(prompt_ids), max_new_tokens)
        self._stop = stop
        self._stop_token_ids = stop_token_ids
        self._draw = self.params.draw()
        special: dict[str, int] = getattr(model.tokenizer, "special_tokens", {})
        self._matcher = StopMatcher(stop, special)
        self._decoder = model.decoder(prompt_ids)
        self._steps: list[Step] = []
        self._stop_step: Step | None = None
        self._given: int | None = None
        if self._budget == 0:
            self.finish_reason = "context"

    def __next__(self) -> Step:
        """Draw the next token."""
        if self.finish_reason is not None:
            raise StopIteration
        if self.params.needs_history:
            self._chain = self.params.chain(*self._history)
        ledger = self._chain.ledger(self.model.logits(self.prefix))
        step = self._take(self._choose(ledger.final.logits), ledger)
        if step.is_stop:
            self._stop_step = step
        else:
            self._append(step)
        self.finish_reason = step.finish_reason
        return step

    def to_the_end(self) -> Generation:
        """Draw all remaining tokens; an interrupt (Ctrl-C) keeps those drawn so far."""
        return _to_the_end([self])[0]

    def _go_on_from(self, steps: Sequence[Step], token_id: int) -> None:
        """Begin after steps of another run, with `token_id` as the next token."""
        if len(steps) >= self._budget:
            raise ParameterError(
                f"step {len(steps)} must be one of the {self._budget} there is room "
                "for; raise max_new_tokens, or shorten the prompt"
            )
        for step in steps:
            # The last text of a finished run includes what was held back until then.
            text = self._read(step.token_id)
            self._append(replace(step, text=text, finish_reason=None))
        self._given = token_id

    def _append(self, step: Step) -> None:
        self._steps.append(step)
        self.prefix.append(step.token_id)
        self._surprises.append(step.final_surprisal)

    def _choose(self, logits: Tensor) -> DrawResult:
        if self._given is None:
            return self._draw(logits)
        drawn, self._given = DrawResult(self._given, GIVEN), None
        self._draw.skip(len(self._steps) + 1, logits)
        return drawn

    def _take(self, drawn: DrawResult, ledger: Ledger) -> Step:
        """Turn a drawn token into a step: its text, its numbers, and whether to end."""
        token_id = drawn.token_id
        is_stop = token_id in self._stop_token_ids
        text = "" if is_stop else self._read(token_id)
        reason = self._reason(is_stop)
        if reason is not None:
            text += self._held_back(self._decoder, self._matcher)
            reason = "stop" if self._matcher.stopped else reason
        n = len(self.prefix.ids)
        return step_from_ledger(
            drawn,
            ledger,
            partial(ledger_after, self.model, self.params, self._history, n),
            index=len(self._steps),
            token_text=self.model.token_text(token_id),
            text=text,
            is_stop=is_stop,
            finish_reason=reason,
        )

    def _read(self, token_id: int) -> str:
        """Return the text that is certain with one more token."""
        text = self._matcher.push(self._decoder.push(token_id))
        if not self._matcher.is_special(token_id):
            return text
        # A stop string may name it, so the text before it has to be complete.
        return text + self._matcher.push(self._decoder.flush(), token_id)

    @staticmethod
    def _held_back(decoder: IncrementalDecoder, matcher: StopMatcher) -> str:
        """Return the rest at the end: half a character, or of a stop string."""
        return matcher.push(decoder.flush()) + matcher.flush()

    def _reason(self, is_stop: bool) -> str | None:
        if is_stop or self._matcher.stopped:
            return "stop"
        if len(self._steps) + 1 < self._budget:
            return None
        return "length" if self._budget == self._max_new_tokens else "context"

    @property
    def ids(self) -> tuple[int, ...]:
        """The whole prefix so far: the prompt's ids and the new ones."""
        return tuple(self.prefix.ids)

    @property
    def generation(self) -> Generation:
        """The result so far, with `finish_reason` "cancelled" before the end."""
        ids, count = self.ids, self._prompt_length
        steps = [*self._steps, self._stop_step]
        text = "".join(step.text for step in steps if step)
        if self.finish_reason is None:
            text += self._held_back(copy(self._decoder), copy(self._matcher))
        return Generation(
            text=text,
            prompt_ids=ids[:count],
            token_ids=ids[count:],
            steps=tuple(self._steps),
            stop_step=self._stop_step,
            finish_reason=self.finish_reason or "cancelled",
            params=self.params,
            max_new_tokens=self._max_new_tokens,
            stop=self._stop,
            stop_token_ids=self._stop_token_ids,
            model=self.model.card.name,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        about = notes(self.params, self.model.card.vocab_size)
        if self._decoder.rewritten:
            about = (*about, _REWRITTEN)
        if self._budget:
            return about
        context = self.model.card.context_length
        return (
            *about,
            f"the prompt ({self._prompt_length} tokens) fills the context of "
            f"{context}: there is no room for a reply",
        )


_REWRITTEN = (
    "the tokenizer changed text that was already shown; the new version follows it"
)


@dataclass(frozen=True)
class Replay:
    """A generation run again: `same`, or the first step that differs and why."""

    generation: Generation
    same: bool
    first_difference: int | None
    why: str


@checked
def replay(generation: Generation, model: Model) -> Replay:
    """Run a generation again and compare the tokens, stop tokens included.

    Of a fork, what was drawn after the last given token is run again.
    """
    steps = reversed(generation.all_steps)
    given = next((step for step in steps if step.is_given), None)
    if given:
        run = fork(model, generation, given.index, given.token_id)
    else:
        options = generation.options
        run = stream(model, generation.prompt_ids, generation.params, **options)
    again = run.to_the_end()
    index = first_difference(generation, again)
    return Replay(again, index is None, index, _why(generation, again, index))


def _why(first: Generation, again: Generation, index: int | None) -> str:
    before, after = first.all_steps, again.all_steps
    if index is None:
        return f"the same {len(after)} tokens"
    if index == min(len(before), len(after)):
        return f"one run has {len(before)} steps and the other {len(after)}"
    old, new = before[index], after[index]
    return (
        f"step {index} drew {new.token_text!r} (final probability "
        f"{new.final_prob:.4f}) instead of {old.token_text!r} ({old.final_prob:.4f})"
    )


@checked
def stream(
    model: Model,
    prompt: Prompt,
    params: SamplingParams | None = None,
    *,
    max_new_tokens: int | None = None,
    stop: str | Sequence[str] = (),
    stop_token_ids: Sequence[int] | None = None,
) -> Run:
    """Start a generation and return it as an iterator of `Step`.

    Everything is checked before the first token is drawn.

    Args:
        model: what `load` gave.
        prompt: text to continue, token ids, or chat messages.
        params: the sampling parameters; None is `SamplingParams()`.
        max_new_tokens: >= 1; None is the model's own default. The model's context
            rule may shorten it, and the run then ends with "context".
        stop: one or more strings; the text ends before the first that appears. They
            may name special tokens, which add no text.
        stop_token_ids: ids that end the run; None is the model's own.

    Raises:
        ParameterError: a parameter outside its rule.
        PromptError: an empty prompt, or one that does not fit the context.
    """
    card = model.card
    limit = card.default_max_new_tokens if max_new_tokens is None else max_new_tokens
    ends = card.stop_token_ids if stop_token_ids is None else stop_token_ids
    return Run(
        model,
        model.prompt_ids(prompt),
        params or SamplingParams(),
        whole_number("max_new_tokens", limit),
        _stop_strings(stop),
        model.check_ids(ends, "stop_token_ids") if len(ends) else (),
    )


@overload
def generate(
    model: Model, prompt: Prompt, params: SamplingParams | None = None, **options: Any
) -> Generation: ...
@overload
def generate(
    model: Model, prompt: Prompts, params: SamplingParams | None = None, **options: Any
) -> list[Generation]: ...
def generate(
    model: Model,
    prompt: Prompt | Prompts,
    params: SamplingParams | None = None,
    **options: Any,
) -> Generation | list[Generation]:
    r"""Generate to the end and return the `Generation`; of several prompts, a list.

    Several prompts are all checked first, and each is continued as if alone. An
    interrupt (Ctrl-C) keeps the tokens so far, with `finish_reason` "cancelled".

    Args:
        model: what `load` gave.
        prompt: text to continue, token ids, or chat messages; or a list of such.
        params: the sampling parameters; None is `SamplingParams()`.
        options: `max_new_tokens`, `stop` and `stop_token_ids`, as in `stream`.

    Raises:
        ParameterError: a parameter outside its rule.
        PromptError: an empty prompt, or one that does not fit the context.

    Example:
        >>> from sampling_lab import generate, load, SamplingParams
        >>> model = load("checkpoints/xslm/model.json")
        >>> generate(model, "Q: hi\nA: ", SamplingParams(temperature=0)).finish_reason
        'stop'
    """
    several = are_several(prompt)
    prompts = cast("list[Prompt]", prompt if several else [prompt])
    ended = _to_the_end([stream(model, one, params, **options) for one in prompts])
    return ended if several else ended[0]


def _to_the_end(runs: Sequence[Run]) -> list[Generation]:
    try:
        deque(chain.from_iterable(runs), maxlen=0)
    except KeyboardInterrupt:
        pass  # the rest is left as it is
    return [run.generation for run in runs]


@checked
def fork(
    model: Model,
    parent: Generation,
    index: int,
    token_id: int,
    params: SamplingParams | None = None,
    **options: Any,
) -> Run:
    r"""Take another token at one step of a generation, and continue from there.

    The tokens before it keep their ids. Every later step uses the random numbers of
    the same step of a run with this seed, so with the same parameters only the choice
    differs: forking with the token that was drawn gives the same run.

    Args:
        model: what `load` gave.
        parent: the generation, finished or not.
        index: the step, from 0 to the number of tokens (after the last).
        token_id: any token, even one that the chain removes; its step `is_given`.
        params: None is the parent's.
        options: as in `stream`; the parent's where left out. `max_new_tokens` counts
            from the end of the prompt.

    Returns:
        A run that starts with step `index`; its `generation` has the earlier steps too.

    Raises:
        ParameterError: no such step, or no room for it.
        PromptError: a token outside the vocabulary.

    Example:
        >>> from sampling_lab import fork, generate, load, SamplingParams
        >>> model = load("checkpoints/xslm/model.json")
        >>> first = generate(model, "Q: hi\nA: ", SamplingParams(temperature=0))
        >>> again = fork(model, first, 0, first.token_ids[0]).to_the_end()
        >>> again.token_ids == first.token_ids
        True
    """
    if whole_number("index", index, minimum=0) > len(parent.token_ids):
        raise ParameterError(
            f"index must be a step from 0 to {len(parent.token_ids)}, got {index}"
        )
    *_, token_id = model.check_ids([*parent.token_ids[:index], token_id])
    options = {**parent.options, **options}
    run = stream(model, parent.prompt_ids, params or parent.params, **options)
    run._go_on_from(parent.steps[:index], token_id)
    return run


def _stop_strings(stop: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(stop, Iterable) or isinstance(stop, bytes):
        raise ParameterError(f"stop must be non-empty strings, got {shown(stop)}")
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    for text in stops:
        if not isinstance(text, str) or not text:
            raise ParameterError(f"stop must be non-empty strings, got {shown(text)}")
    return stops
