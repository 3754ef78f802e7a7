"""The same logits and settings under the rules of every engine.

Only the rules differ: all dialects draw with the same random numbers at every step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..models.base import Model, Prompt
from ..sampling.arguments import checked
from ..sampling.dialects import DIALECTS
from ..sampling.ledger import Ledger
from ..sampling.params import SamplingParams
from .loop import generate
from .results import Generation, first_difference


class Distance(NamedTuple):
    """The distance between the final distributions of two dialects.

    Attributes:
        first: a dialect.
        second: another one.
        total_variation: the probability mass that would have to move, in [0, 1].
        jensen_shannon: the square root of the Jensen-Shannon divergence, in [0, 1]
            (base 2; Endres and Schindelin 2003).
        only_first: tokens that only the first keeps.
        only_second: tokens that only the second keeps.
    """

    first: str
    second: str
    total_variation: float
    jensen_shannon: float
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]


@dataclass(frozen=True)
class DialectComparison:
    """One row of logits under several dialects.

    Attributes:
        params: the settings; their own dialect is not used.
        ledgers: a ledger for each dialect.
    """

    params: SamplingParams
    ledgers: Mapping[str, Ledger]

    @property
    def kept(self) -> dict[str, tuple[int, ...]]:
        """The tokens that each dialect keeps, by id."""
        return {name: _ids(ledger.kept) for name, ledger in self.ledgers.items()}

    @cached_property
    def distances(self) -> tuple[Distance, ...]:
        """The distance of each pair, in the order of the dialects."""
        return tuple(
            _distance(first, second, self.ledgers[first], self.ledgers[second])
            for first, second in combinations(self.ledgers, 2)
        )

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The dialects in groups that keep the same tokens."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for name, ids in self.kept.items():
            groups.setdefault(ids, []).append(name)
        return tuple(map(tuple, groups.values()))

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each dialect: the tokens it keeps, and their entropy."""
        return [
            {
                "dialect": name,
                "kept": ledger.kept_count,
                "raw mass": ledger.kept_mass,
                "entropy": ledger.entropy,
                "top": ledger.top(1)[0],
                "top final": ledger.final_probs.max().item(),
                "checked": DIALECTS[name].checked,
            }
            for name, ledger in self.ledgers.items()
        ]


@checked
def compare_dialects(
    logits: Tensor,
    params: SamplingParams,
    dialects: Sequence[str] = tuple(DIALECTS),
    *,
    token_ids: Sequence[int] = (),
    prompt_length: int = 0,
) -> DialectComparison:
    """Return the ledgers of the same logits and settings under several dialects.

    Args:
        logits: the model's logits of one step, shape (V,).
        params: the settings; their own dialect is not used.
        dialects: the dialects to compare.
        token_ids: the prompt and what was generated, for penalties.
        prompt_length: how many of them are the prompt.

    Example:
        >>> logits = torch.tensor([2.0, 1.0, 0.2, -1.0])
        >>> compared = compare_dialects(logits, SamplingParams(0.5, top_p=0.8))
        >>> compared.kept["transformers"], compared.kept["llama.cpp"]
        ((0,), (0, 1))
    """
    chains = {
        name: params.replace(dialect=name).chain(token_ids, prompt_length)
        for name in dialects
    }
    return DialectComparison(
        params, {name: c.ledger(logits) for name, c in chains.items()}
    )


@dataclass(frozen=True)
class DialectRuns:
    """One prompt, one seed and the same noise under several dialects.

    Attributes:
        generations: a generation for each dialect.
    """

    generations: Mapping[str, Generation]

    def first_difference(self, first: str, second: str) -> int | None:
        """Return the first step at which two dialects drew different tokens, or None.

        After it their contexts differ too, so later steps do not compare the rules.
        """
        return first_difference(self.generations[first], self.generations[second])

    def table(self, reference: str | None = None) -> list[dict[str, Any]]:
        """Return a row for each dialect, compared with one: the first by default."""
        reference = reference or next(iter(self.generations))
        return [
            {
                "dialect": name,
                "first difference": self.first_difference(reference, name),
                "text": generation.text,
                "checked": DIALECTS[name].checked,
            }
            for name, generation in self.generations.items()
        ]


@checked
def run_dialects(
    model: Model,
    prompt: Prompt,
    params: SamplingParams,
    dialects: Sequence[str] = tuple(DIALECTS),
    *,
    draw_method: str = "race",
    **options: Any,
) -> DialectRuns:
    """Generate under every dialect with the same noise.

    Args:
        model: what `load` gave.
        prompt: text, token ids or chat messages.
        params: the settings; their own dialect and draw are not used.
        dialects: the dialects to compare.
        draw_method: the draw that all of them use. In a race each token has its own
            random number, so a choice changes only where a rule changes it.
        options: `max_new_tokens`, `stop` and `stop_token_ids`, as in `generate`.
    """
    params = params.resolve(dialects[0]).replace(draw_method=draw_method)
    return DialectRuns(
        {
            name: generate(model, prompt, params.replace(dialect=name), **options)
            for name in dialects
        }
    )


def _ids(mask: Tensor) -> tuple[int, ...]:
    return tuple(mask.nonzero().squeeze(-1).tolist())


def _distance(first: str, second: str, one: Ledger, other: Ledger) -> Distance:
    p, q = one.final_probs.double(), other.final_probs.double()
    return Distance(
        first,
        second,
        total_variation=(p - q).abs().sum().item() / 2,
        jensen_shannon=_jensen_shannon(p, q),
        only_first=_ids(one.kept & ~other.kept),
        only_second=_ids(other.kept & ~one.kept),
    )


def _jensen_shannon(p: Tensor, q: Tensor) -> float:
    """Return the square root of the Jensen-Shannon divergence in bits."""
    middle, *ends = (
        torch.special.entr(x).sum().item() / math.log(2) for x in ((p + q) / 2, p, q)
    )
    return math.sqrt(max(0.0, middle - sum(ends) / 2))
