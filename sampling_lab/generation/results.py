"""The result of a run: its steps, its text, and the settings to run it again."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from ..errors import ParameterError, SamplingLabError
from ..models.base import Model
from ..sampling.draws import GIVEN, DrawResult
from ..sampling.history import History
from ..sampling.ledger import Ledger
from ..sampling.params import SamplingParams

_FULL_SHADE_BITS = 10.0
_MARKS = ("␣", "⏎", "⇥")


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
    drawn: DrawResult
    is_stop: bool = False
    finish_reason: str | None = None
    _ledger: Callable[[], Ledger] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def is_given(self) -> bool:
        """Whether a person chose this token instead of the draw."""
        return self.drawn.method == GIVEN

    @property
    def surprisal(self) -> float:
        """-log2 of `raw_prob` in bits: 0 if certain, inf if impossible."""
        return abs(math.log2(self.raw_prob)) if self.raw_prob > 0 else math.inf

    @property
    def final_surprisal(self) -> float:
        """-log2 of `final_prob` in bits; `surprisal` if given though removed."""
        return abs(math.log2(self.final_prob)) if self.final_prob else self.surprisal

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
        with from_saved():
            drawn = dict(data["drawn"])
            if drawn.get("segment"):
                drawn["segment"] = tuple(drawn["segment"])
            return cls(**{**data, "drawn": DrawResult(data["token_id"], **drawn)})


@contextmanager
def from_saved() -> Iterator[None]:
    """Say what saved data must be, where it is something else."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, SamplingLabError):
            raise
        raise ParameterError(
            "data of a generation must have the fields that to_dict writes; save it "
            f"again (a fault at {str(error)!r:.80})"
        ) from None


def step_from_ledger(
    drawn: DrawResult, ledger: Ledger, again: Callable[[], Ledger], **fields: Any
) -> Step:
    """Return a step with its ledger's numbers; `again` returns that ledger later."""
    token_id = drawn.token_id
    return Step(
        token_id=token_id,
        raw_prob=ledger.raw_probs[token_id].item(),
        final_prob=ledger.final_probs[token_id].item(),
        rank=ledger.rank(token_id),
        entropy=ledger.entropy,
        kept_count=ledger.kept_count,
        drawn=drawn,
        _ledger=again,
        **fields,
    )


def ledger_after(
    model: Model, params: SamplingParams, history: History, n: int
) -> Ledger:
    """Return the ledger after the first `n` ids of a whole run's history.

    A step holds the list of its whole run, not a copy of the ids before it, so memory
    grows with the text only. Logits that the model remembers cost no forward pass.
    """
    history = history.first(n)
    return params.chain(*history).ledger(model.logits(history.token_ids))


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

    def history(self, index: int | None = None) -> History:
        """Return what came before a step; None is the end of the text."""
        steps = self.all_steps[:index]
        return History(
            (*self.prompt_ids, *(step.token_id for step in steps)),
            len(self.prompt_ids),
            self.stop_token_ids,
            tuple(step.final_surprisal for step in steps),
        )

    def __repr__(self) -> str:
        """Return the text with how it ended; short, for a notebook's output."""
        count = len(self.token_ids)
        return f"Generation({self.text!r}, {count} tokens, {self.finish_reason})"

    def _repr_html_(self) -> str:
        """Return the new text, a chip for each token; their text is escaped.

        The shade is a translucent orange, so that the page's own text colour stays
        legible on it in light and dark themes; its depth is surprisal up to 10 bits.
        """
        tokens = "<wbr>".join(map(_shaded_chip, self.steps)) or "<i>empty</i>"
        count = f"{len(self.token_ids)} tokens"
        details = [count, self.finish_reason, self.params.describe(), *self.notes]
        return (
            '<div style="line-height:1.9">'
            '<div style="white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;'
            f'font-family:monospace;font-size:14px">{tokens}</div>'
            f"<small>{html.escape(' · '.join(details))}</small></div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON data, from which `from_dict` gives an equal value."""
        data = dict(vars(self))
        data["params"] = self.params.to_dict()
        data["steps"] = [step.to_dict() for step in self.steps]
        data["stop_step"] = self.stop_step.to_dict() if self.stop_step else None
        # Through JSON and back: tuples become lists, and NaN is refused.
        plain: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Generation:
        """Return the generation that `to_dict` gave."""
        with from_saved():
            return cls._from_dict(data)

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Generation:
        lists = ("prompt_ids", "token_ids", "stop", "stop_token_ids", "notes")
        values = {**data, **{name: tuple(data[name]) for name in lists}}
        values["params"] = SamplingParams(**data["params"])
        values["steps"] = tuple(map(Step.from_dict, data["steps"]))
        stop_step = data["stop_step"]
        values["stop_step"] = Step.from_dict(stop_step) if stop_step else None
        return cls(**values)

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps, and the one that drew the stop token if one did."""
        return self.steps + ((self.stop_step,) if self.stop_step else ())

    @property
    def options(self) -> dict[str, Any]:
        """The options of `stream`, without the prompt and the parameters."""
        names = ("max_new_tokens", "stop", "stop_token_ids")
        return {name: getattr(self, name) for name in names}


def first_difference(first: Generation, second: Generation) -> int | None:
    """Return the first step at which two generations have different tokens.

    A stop token counts as a token, and the end of only one of them as a difference.
    None means that they are the same to the end.
    """
    ids = ([step.token_id for step in text.all_steps] for text in (first, second))
    pairs = enumerate(zip_longest(*ids))
    return next((index for index, (a, b) in pairs if a != b), None)


def token_chip(step: Step, attributes: str, faint: str = "s") -> str:
    """Return a token as a `<span>`; its text is escaped.

    A tooltip has its id, probabilities, rank and surprisal.

    Args:
        step: the step that drew it.
        attributes: the span's other attributes.
        faint: the tag (with attributes) around signs for white space.
    """
    facts = (
        f"id {step.token_id} · raw {step.raw_prob:.3f} · final {step.final_prob:.3f} "
        f"· rank {step.rank} · {step.surprisal:.1f} bits"
    )
    return _chip(step.token_text, facts, attributes, faint, "\n" in step.text)


def _shaded_chip(step: Step) -> str:
    shade = 0.08 + 0.62 * min(step.surprisal, _FULL_SHADE_BITS) / _FULL_SHADE_BITS
    style = (
        f'style="background:rgba(230,126,34,{shade:.2f});'
        'border-radius:3px;padding:2px 0;margin-right:1px"'
    )
    return token_chip(step, style, 'span style="opacity:.4"')


@lru_cache(20_000)  # a table of runs shows all its chips again at every token
def _chip(text: str, title: str, attributes: str, faint: str, breaks: bool) -> str:
    shown, end = html.escape(text), faint.partition(" ")[0]
    for mark in _MARKS:
        shown = shown.replace(mark, f"<{faint}>{mark}</{end}>")
    return f'<span title="{title}" {attributes}>{shown}</span>' + "<br>" * breaks
