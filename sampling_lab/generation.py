"""The loop: logits, chain, draw, append; one step at a time, or all at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .chain import Chain, Ledger
from .draws import Drawn
from .errors import ParameterError
from .models.base import Model, Prompt, whole_number
from .params import SamplingParams
from .text import IncrementalDecoder, StopMatcher


@dataclass(frozen=True)
class Step:
    """One token drawn.

    Attributes:
        index: 0 for the first new token.
        token_id: the chosen token.
        token_text: it alone, made visible.
        text: the text that became certain with it; joined, the whole text.
        raw_prob: softmax of the model's logits, at this token.
        final_prob: its probability after the whole chain, the one drawn from.
        rank: by raw logit, 1 for the highest.
        entropy: of the final distribution, in bits.
        kept_count: tokens the draw could choose from.
        drawn: the random number that decided.
        is_stop: whether it is a stop token, which is no part of the result.
        finish_reason: set on the last step.
    """

    index: int
    token_id: int
    token_text: str
    text: str
    raw_prob: float
    final_prob: float
    rank: int
    entropy: float
    kept_count: int
    drawn: Drawn
    is_stop: bool = False
    finish_reason: str | None = None
    _ledger: Callable[[], Ledger] | None = field(
        default=None, repr=False, compare=False
    )

    def ledger(self) -> Ledger:
        """Return what the chain did to every token here.

        Raises:
            ParameterError: the step was read from a file, without its model.
        """
        if self._ledger is None:
            raise ParameterError(
                "this step has no model to ask; replay the generation with one first"
            )
        return self._ledger()

    def to_dict(self) -> dict[str, Any]:
        """Return the step as strict JSON data."""
        public = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return {**public, "drawn": self.drawn.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Step:
        """Return the step that `to_dict` gave."""
        drawn = dict(data["drawn"])
        if drawn.get("segment"):
            drawn["segment"] = tuple(drawn["segment"])
        return cls(**{**data, "drawn": Drawn(data["token_id"], **drawn)})


@dataclass(frozen=True)
class Generation:
    """What one run gave, with everything that is needed to run it again.

    Attributes:
        text: only the new text, without a stop string or stop token.
        prompt_ids: the ids that were continued.
        token_ids: the new ids, without a stop token.
        steps: a `Step` for each new token.
        stop_step: the step that drew the stop token, if one did.
        finish_reason: "stop", "length", "context" or "cancelled".
        params: the parameters with the dialect and the seed that were used.
        max_new_tokens: what was asked for.
        stop: the stop strings.
        stop_token_ids: the ids that end a run.
        model: the model's name.
        notes: a sentence for each setting that could not matter.
    """

    text: str
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    steps: tuple[Step, ...]
    stop_step: Step | None
    finish_reason: str
    params: SamplingParams
    max_new_tokens: int
    stop: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    model: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the text with how it ended; short, for a notebook's output."""
        count = len(self.token_ids)
        return f"Generation({self.text!r}, {count} tokens, {self.finish_reason})"

    def _repr_html_(self) -> str:
        from .display import generation_html

        return generation_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON data, from which `from_dict` gives an equal value."""
        data = dict(vars(self))
        data["params"] = self.params.to_dict()
        data["steps"] = [step.to_dict() for step in self.steps]
        data["stop_step"] = self.stop_step.to_dict() if self.stop_step else None
        # One trip through JSON: tuples become lists, and NaN could not pass.
        return json.loads(json.dumps(data, allow_nan=False))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Generation:
        """Return the generation that `to_dict` gave."""
        lists = ("prompt_ids", "token_ids", "stop", "stop_token_ids", "notes")
        values = {**data, **{name: tuple(data[name]) for name in lists}}
        values["params"] = SamplingParams(**data["params"])
        values["steps"] = tuple(map(Step.from_dict, data["steps"]))
        stop_step = data["stop_step"]
        values["stop_step"] = Step.from_dict(stop_step) if stop_step else None
        return cls(**values)

    def replay(self, model: Model) -> Replay:
        """Run it again and say whether the tokens are the same."""
        again = generate(
            model,
            self.prompt_ids,
            self.params,
            max_new_tokens=self.max_new_tokens,
            stop=self.stop,
            stop_token_ids=self.stop_token_ids,
        )
        return Replay.compare(self, again)


@dataclass(frozen=True)
class Replay:
    """A generation run again: `same`, or the first step that differs and why."""

    generation: Generation
    same: bool
    first_difference: int | None
    why: str

    @classmethod
    def compare(cls, first: Generation, again: Generation) -> Replay:
        """Compare two generations token by token, stop tokens included."""
        before, after = _all_steps(first), _all_steps(again)
        pairs = zip(before, after, strict=False)
        for index, (old, new) in enumerate(pairs):
            if old.token_id != new.token_id:
                why = (
                    f"step {index} drew {new.token_text!r} (final probability "
                    f"{new.final_prob:.4f}) instead of {old.token_text!r} "
                    f"({old.final_prob:.4f})"
                )
                return cls(again, False, index, why)
        if len(before) == len(after):
            return cls(again, True, None, f"the same {len(after)} tokens")
        shorter = min(len(before), len(after))
        why = f"one run has {len(before)} steps and the other {len(after)}"
        return cls(again, False, shorter, why)


def _all_steps(generation: Generation) -> tuple[Step, ...]:
    last = (generation.stop_step,) if generation.stop_step else ()
    return generation.steps + last


class Run(Iterator[Step]):
    """A generation under way: an iterator of `Step` that can be left at any time.

    `generation` is what there is so far; it counts as cancelled until the run has
    come to its end. `stream` makes runs.
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
        self.finish_reason: str | None = None
        self._prompt_ids = tuple(prompt_ids)
        self._max_new_tokens = max_new_tokens
        self._budget = model.budget(len(prompt_ids), max_new_tokens)
        self._stop = stop
        self._stop_token_ids = stop_token_ids
        self._chain = self.params.chain()
        self._draw = self.params.draw()
        self._matcher = StopMatcher(stop)
        decode = model.tokenizer.decode if model.tokenizer else lambda ids: ""
        self._decoder = IncrementalDecoder(decode)
        self._ids = list(prompt_ids)
        self._steps: list[Step] = []
        self._stop_step: Step | None = None
        if self._budget == 0:
            self.finish_reason = "context"

    def __next__(self) -> Step:
        """Draw the next token."""
        if self.finish_reason is not None:
            raise StopIteration
        logits = self.model.logits(self._ids)
        ledger = self._chain.ledger(logits)
        drawn = self._draw(ledger.final.logits)
        step = self._take(drawn, ledger)
        if step.is_stop:
            self._stop_step = step
        else:
            self._steps.append(step)
            self._ids.append(step.token_id)
        self.finish_reason = step.finish_reason
        return step

    def _take(self, drawn: Drawn, ledger: Ledger) -> Step:
        """Turn a drawn token into a step: its text, its numbers, and whether to end."""
        token_id = drawn.token_id
        is_stop = token_id in self._stop_token_ids
        text = "" if is_stop else self._matcher.push(self._decoder.push(token_id))
        reason = self._reason(is_stop)
        if reason is not None:
            text += self._held_back()
        return Step(
            index=len(self._steps),
            token_id=token_id,
            token_text=self.model.token_text(token_id),
            text=text,
            raw_prob=ledger.raw_probs[token_id].item(),
            final_prob=ledger.final_probs[token_id].item(),
            rank=ledger.rank(token_id),
            entropy=ledger.entropy,
            kept_count=ledger.kept_count,
            drawn=drawn,
            is_stop=is_stop,
            finish_reason=reason,
            _ledger=partial(_recall, self.model, tuple(self._ids), self._chain),
        )

    def _reason(self, is_stop: bool) -> str | None:
        if is_stop or self._matcher.stopped:
            return "stop"
        if len(self._steps) + 1 < self._budget:
            return None
        return "length" if self._budget == self._max_new_tokens else "context"

    def _held_back(self) -> str:
        """Return the text that waited for more: half a character or a stop string."""
        return self._matcher.push(self._decoder.flush()) + self._matcher.flush()

    @property
    def generation(self) -> Generation:
        """What there is so far, with `finish_reason` "cancelled" before the end."""
        text = "".join(step.text for step in self._steps)
        if self._stop_step:
            text += self._stop_step.text
        return Generation(
            text=text if self.finish_reason else self._text_so_far(),
            prompt_ids=self._prompt_ids,
            token_ids=tuple(self._ids[len(self._prompt_ids) :]),
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
        notes = self.params.notes(self.model.card.vocab_size)
        if self._budget:
            return notes
        length, context = len(self._prompt_ids), self.model.card.context_length
        return (
            *notes,
            f"the prompt ({length} tokens) fills the context of {context}: "
            "there is no room for a reply",
        )

    def _text_so_far(self) -> str:
        """Return all text that the tokens so far stand for, held back or not."""
        if self.model.tokenizer is None:
            return ""
        return self.model.tokenizer.decode(self._ids[len(self._prompt_ids) :])


def _recall(model: Model, ids: tuple[int, ...], chain: Chain) -> Ledger:
    return chain.ledger(model.logits(ids))


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
        stop: one or more strings; the text ends before the first that appears.
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
        model.check_ids(ends) if len(ends) else (),
    )


def generate(
    model: Model,
    prompt: Prompt,
    params: SamplingParams | None = None,
    **options: Any,
) -> Generation:
    """Generate to the end and return the `Generation`.

    An interrupt (Ctrl-C) keeps what there is, with `finish_reason` "cancelled".

    Args:
        model: what `load` gave.
        prompt: text to continue, token ids, or chat messages.
        params: the sampling parameters; None is `SamplingParams()`.
        options: `max_new_tokens`, `stop` and `stop_token_ids`, as in `stream`.

    Raises:
        ParameterError: a parameter outside its rule.
        PromptError: an empty prompt, or one that does not fit the context.

    Example:
        >>> from sampling_lab import generate, load, SamplingParams
        >>> model = load("checkpoints/xslm/model.json")
        >>> generate(model, "Q: hi\\nA: ", SamplingParams(temperature=0)).finish_reason
        'stop'
    """
    run = stream(model, prompt, params, **options)
    try:
        for _ in run:
            pass
    except KeyboardInterrupt:
        return run.generation
    return run.generation


def _stop_strings(stop: str | Sequence[str]) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    for text in stops:
        if not isinstance(text, str) or not text:
            raise ParameterError(f"stop must be non-empty strings, got {text!r}")
    return stops
