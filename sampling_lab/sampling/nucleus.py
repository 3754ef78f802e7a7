"""How engines add up probabilities, and so cut a nucleus: a row for each rule of top-p.

llama.cpp, Ollama and MLX add float32 probabilities one after another. Over a large
vocabulary the rounding of such a sum decides what is kept; a more exact one keeps more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]
Compared = tuple[Tensor, Tensor | float]

_REACHED = 1e-6
"""A cumulative mass this close below p counts as p: float32 cannot tell better."""

_MLX_EXP = "1.5353362e-4 1.3398874e-3 9.618437e-3 0.055503324 0.24022648 0.6931472 1"
"""The polynomial of 2**x for x in [-0.5, 0.5) in MLX, the highest power first."""

_INSERTED = 16
"""`std::sort` of libstdc++ leaves parts of this length to an insertion sort."""


class Nucleus(NamedTuple):
    """One rule of top-p.

    Attributes:
        removed: how a removed token's mass relates to the bound: "<=" for the mass up
            to it from the bottom; for the mass before it from the top ">=", so that the
            token that reaches p stays, or ">", so that the one that passes p does.
        compare: takes sorted logits (..., V), the same as they were given, and p;
            returns the mass (..., V) and the bound.
        ties: which equal logits stay at the cut: "lowest_id", "kept" (all), or "sort",
            what `torch.sort` leaves.
    """

    removed: str
    compare: Callable[[Tensor, Tensor, float], Compared]
    ties: str


def typical_masses(logits: Tensor, length: int) -> Tensor:
    """Return the mass before each token in llama.cpp's order of typical-p, (..., V).

    A candidate of probability 0 makes the entropy NaN, and with it all distances; its
    sort then leaves the candidates in an order that depends on their number alone.

    Args:
        logits: shape (..., V).
        length: how many candidates the engine has, from the highest on, those that an
            earlier stage set to minus infinity included; others get infinite mass.
    """
    ordered, ids = torch.sort(logits.float(), descending=True, stable=True)
    probs = _probabilities(ordered[..., :length], ordered[..., :length])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(probs.astype(np.float64)).astype(np.float32)
        entropy = _running_sum(-probs * logs)[..., -1:]
        order = np.abs(-logs - entropy).argsort(axis=-1, kind="stable")
    if np.isnan(entropy).any():
        order = np.where(np.isnan(entropy), _order_of_equals(probs.shape[-1]), order)
    before = _before(_running_sum(np.take_along_axis(probs, order, axis=-1)))
    ids = ids.gather(-1, torch.from_numpy(order).to(ids.device))
    return torch.full_like(logits, torch.inf).scatter(-1, ids, before.to(logits))


def _order_of_equals(count: int) -> NDArray[np.intp]:
    """Return where libstdc++'s `std::sort` leaves elements that compare as equal.

    Each partition swaps the first one with the middle and reverses the others.
    """
    order, parts = np.arange(count), [(0, count)]
    while parts:
        first, last = parts.pop()
        while last - first > _INSERTED:
            middle, cut = (first + last) // 2, first + 1 + (last - first - 1) // 2
            order[[first, middle]] = order[[middle, first]]
            order[first + 1 : last] = order[first + 1 : last][::-1].copy()
            parts.append((cut, last))
            last = cut
    return order


def _running_sum(values: Floats) -> Floats:
    """Return the float32 sums up to each value, added from left to right."""
    return np.cumsum(values, axis=-1, dtype=np.float32)


def _before(sums: Any) -> Tensor:
    """Return for sums up to each token, (..., V), those before each."""
    before = torch.as_tensor(sums).roll(1, -1)
    before[..., 0] = 0.0
    return before


def _probabilities(ordered: Tensor, given: Tensor) -> Floats:
    """Return float32 probabilities of sorted logits, their total added up as given.

    Each exp is rounded once, as that of C and that of Go are.
    """
    below = [(x - ordered[..., :1]).double().cpu().numpy() for x in (ordered, given)]
    weights, added = (np.exp(x).astype(np.float32) for x in below)
    probs: Floats = weights / _running_sum(added)[..., -1:]
    return probs


def _mlx_exp(exponents: Floats) -> Floats:
    """Return exp as MLX computes it on a CPU: a power of 2 times a polynomial."""
    binary = exponents.clip(-88.0) * np.float32(1.442695)
    whole = np.floor(binary + np.float32(0.5))
    rest, result = (binary - whole).astype(np.float64), np.zeros_like(binary)
    for term in np.array(_MLX_EXP.split(), np.float32):  # one rounding for both
        result = (result * rest + term).astype(np.float32)
    exps: Floats = np.ldexp(result, whole.astype(np.int32)) * (exponents >= -88.0)
    return exps


def _exact(ordered: Tensor, given: Tensor, p: float) -> Compared:
    mass = ordered.softmax(-1).double().cumsum(-1)
    return _before(mass / mass[..., -1:]), p - _REACHED  # less a softmax's rounding


def _passing(ordered: Tensor, given: Tensor, p: float) -> Compared:
    return _before(ordered.softmax(-1).cumsum(-1)), p


def _ascending(ordered: Tensor, given: Tensor, p: float) -> Compared:
    return ordered.softmax(-1).cumsum(-1), 1 - p


def _ascending_float32(ordered: Tensor, given: Tensor, p: float) -> Compared:
    return _ascending(ordered, given, float(np.float32(p)))


def _float32(ordered: Tensor, given: Tensor, p: float) -> Compared:
    sums = _running_sum(_probabilities(ordered.float(), given.float()))
    return _before(sums).to(ordered.device), p


def _mlx(ordered: Tensor, given: Tensor, p: float) -> Compared:
    logits, added = (x.float().cpu().numpy() for x in (ordered, given))
    highest = logits[..., :1]
    total = np.log(_running_sum(_mlx_exp(added - highest))[..., -1:]) + highest
    sums = torch.from_numpy(_running_sum(_mlx_exp(logits - total))).to(ordered.device)
    return _before(sums), p * sums[..., -1:]


NUCLEI = {
    "descending": Nucleus(">=", _exact, "lowest_id"),  # XSLM, from the top
    "exceeding": Nucleus(">", _passing, "sort"),  # train-llm-from-scratch
    "ascending": Nucleus("<=", _ascending, "sort"),  # transformers, from the bottom
    "ascending_float32": Nucleus("<=", _ascending_float32, "sort"),  # vLLM
    "float32": Nucleus(">=", _float32, "lowest_id"),  # llama.cpp
    "float32_exceeding": Nucleus(">", _float32, "lowest_id"),  # Ollama before 0.30
    "from_above": Nucleus(">=", _mlx, "kept"),  # mlx-lm
}
"""The rules by name; all but XSLM's are the engine's own arithmetic."""
