"""How engines cut a nucleus: a row for each rule of top-p."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from . import float32_sums

_REACHED = 1e-6
"""A cumulative mass this close below p counts as p: float32 cannot tell better."""


@dataclass(frozen=True)
class Nucleus:
    """One rule of top-p.

    Attributes:
        says: the rule in words.
        removed: the relation of a token's mass to the bound that removes it. For "<="
            it is the mass up to the token from the least likely one on, otherwise
            the mass before it from the most likely one on.
        compare: takes sorted logits (..., V), the same in the order in which they are
            given, and p; returns the mass (..., V) and the bound, (..., 1) or one
            number.
        ties: which of several equal logits stay where the cut goes through them:
            "lowest_id", "kept" (all of them), or what `torch.sort` leaves, "sort".
    """

    says: str
    removed: str
    compare: Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]]
    ties: str

    @property
    def descending(self) -> bool:
        """Whether the rule adds up from the most likely token."""
        return self.removed != "<="

    @property
    def quantity(self) -> str:
        """What the rule compares, in words."""
        return "mass before it" if self.descending else "mass up to it from below"


def _mass_before(ordered: Tensor) -> Tensor:
    """Return for logits in descending order the probability before each, (..., V).

    It is summed in float64 and scaled to a total of 1, which removes the rounding of
    a float32 softmax.
    """
    probs = ordered.softmax(-1).double()
    mass = probs.cumsum(-1)
    return (mass - probs) / mass[..., -1:]


def _exact(ordered: Tensor, given: Tensor, p: float) -> tuple[Tensor, Tensor]:
    return _mass_before(ordered), torch.tensor(p - _REACHED, dtype=torch.float64)


def _passing(ordered: Tensor, given: Tensor, p: float) -> tuple[Tensor, Tensor]:
    return _before(ordered.softmax(-1).cumsum(-1)), torch.tensor(p, dtype=torch.float64)


def _ascending(ordered: Tensor, given: Tensor, p: float) -> tuple[Tensor, Tensor]:
    return ordered.softmax(-1).cumsum(-1), torch.tensor(1 - p, dtype=torch.float64)


def _ascending_float32(
    ordered: Tensor, given: Tensor, p: float
) -> tuple[Tensor, Tensor]:
    return ordered.softmax(-1).cumsum(-1), 1 - torch.tensor(p)


def _one_by_one(ordered: Tensor, given: Tensor, p: float) -> tuple[Tensor, Tensor]:
    sums = float32_sums.running_sum(float32_sums.probabilities(ordered, given))
    return _before(torch.from_numpy(sums)), torch.tensor(p)


def _by_rank(ordered: Tensor, given: Tensor, p: float) -> tuple[Tensor, Tensor]:
    return _one_by_one(ordered, ordered, p)


def _mlx(ordered: Tensor, given: Tensor, p: float) -> tuple[Tensor, Tensor]:
    probs = float32_sums.mlx_probabilities(ordered, given)
    sums = torch.from_numpy(float32_sums.running_sum(probs))
    return _before(sums), p * sums[..., -1:]


def _before(sums: Tensor) -> Tensor:
    """Return for sums up to each token, (..., V), those before each."""
    before = sums.roll(1, -1)
    before[..., 0] = 0.0
    return before


NUCLEI = {
    "descending": Nucleus(
        "from the top, the token that reaches p stays", ">=", _exact, "lowest_id"
    ),
    "exceeding": Nucleus(
        "from the top, the token that passes p stays", ">", _passing, "sort"
    ),
    "ascending": Nucleus(
        "from the bottom, removed while the mass is at most 1 - p",
        "<=",
        _ascending,
        "sort",
    ),
    "ascending_float32": Nucleus(
        "from the bottom, removed while the mass is at most 1 - p in float32",
        "<=",
        _ascending_float32,
        "sort",
    ),
    "float32": Nucleus(
        "from the top in float32, the token that reaches p stays",
        ">=",
        _one_by_one,
        "lowest_id",
    ),
    "float32_exceeding": Nucleus(
        "from the top in float32, the token that passes p stays",
        ">",
        _by_rank,
        "lowest_id",
    ),
    "from_above": Nucleus(
        "from the top, the token that reaches p stays, and its equals",
        ">=",
        _mlx,
        "kept",
    ),
}
"""The rules by name: XSLM's, scratch LLM's, transformers', vLLM's, llama.cpp's,
Ollama's before 0.30, and mlx-lm's; all but XSLM's are the engine's own arithmetic."""
