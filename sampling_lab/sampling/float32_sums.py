"""Probabilities as llama.cpp, Ollama and MLX add them up: float32, one after another.

Over a large vocabulary the rounding of such a sum decides which tokens a nucleus
keeps, so a more exact sum keeps others.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]

_MLX_EXP = np.array(
    "1.5353362e-4 1.3398874e-3 9.618437e-3 0.055503324 0.24022648 0.6931472 1".split(),
    dtype=np.float32,
)
"""The coefficients of 2**x for x in [-0.5, 0.5) in MLX, the highest power first."""

_INSERTED = 16
"""`std::sort` of libstdc++ leaves parts of this length to an insertion sort."""


def running_sum(values: Floats) -> Floats:
    """Return the float32 sums up to each value, added from left to right."""
    return np.cumsum(values, axis=-1, dtype=np.float32)


def probabilities(ordered: Tensor, given: Tensor) -> Floats:
    """Return float32 probabilities of logits in descending order, (..., V).

    Args:
        ordered: logits (..., V), the highest first.
        given: the same logits in the order in which the engine adds them up.
    """
    highest = ordered[..., :1]
    return _weights(ordered, highest) / running_sum(_weights(given, highest))[..., -1:]


def mlx_probabilities(ordered: Tensor, given: Tensor) -> Floats:
    """Return the exp of mlx-lm's log-probabilities; arguments as in `probabilities`."""
    logits, highest = (x.float().cpu().numpy() for x in (ordered, ordered[..., :1]))
    total = running_sum(_mlx_exp(given.float().cpu().numpy() - highest))[..., -1:]
    return _mlx_exp(logits - (np.log(total) + highest))


def typical_order(logits: Tensor, p: float, length: int) -> tuple[Tensor, int]:
    """Return the ids in llama.cpp's order of typical-p, and how many of them it keeps.

    A candidate of probability 0 makes the entropy NaN, and with it all distances; its
    sort then leaves the candidates in an order that depends on their number alone.

    Args:
        logits: shape (V,).
        p: in (0, 1); the candidate whose sum is above it is the last one kept.
        length: how many candidates the engine has, from the highest on; those that an
            earlier stage set to minus infinity count.
    """
    ordered, ids = torch.sort(logits.float(), descending=True, stable=True)
    probs = probabilities(ordered[:length], ordered[:length])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(probs.astype(np.float64)).astype(np.float32)
        distance = np.abs(-logs - running_sum(-probs * logs)[-1])
    if np.isnan(distance).any():
        order = _order_of_equals(len(probs))
    else:
        order = np.argsort(distance, kind="stable")
    above = running_sum(probs[order]) > np.float32(p)
    count = int(above.argmax()) + 1 if above.any() else len(probs)
    return ids[torch.from_numpy(order)], count


def _weights(logits: Tensor, highest: Tensor) -> Floats:
    """Return exp(logit - highest), rounded once as C's `expf` and Go's exp do."""
    below = (logits.float() - highest.float()).double().cpu().numpy()
    weights: Floats = np.exp(below).astype(np.float32)
    return weights


def _mlx_exp(exponents: Floats) -> Floats:
    """Return exp as MLX computes it on a CPU: a power of 2 times a polynomial."""
    binary = exponents.clip(-88.0) * np.float32(1.442695)
    whole = np.floor(binary + np.float32(0.5))
    rest = (binary - whole).astype(np.float64)
    result = np.full_like(binary, _MLX_EXP[0])
    for term in _MLX_EXP[1:]:  # one rounding for both operations
        result = (result * rest + term).astype(np.float32)
    exps: Floats = np.ldexp(result, whole.astype(np.int32))
    return np.where(exponents < -88.0, np.float32(0.0), exps)


def _order_of_equals(count: int) -> NDArray[np.intp]:
    """Return where libstdc++'s `std::sort` leaves elements that compare as equal.

    Each partition swaps the first one with the middle and reverses the others.
    """
    order, parts = np.arange(count), [(0, count)]
    while parts:
        first, last = parts.pop()
        while last - first > _INSERTED:
            middle = first + (last - first) // 2
            order[[first, middle]] = order[[middle, first]]
            order[first + 1 : last] = order[first + 1 : last][::-1].copy()
            cut = first + 1 + (last - first - 1) // 2
            parts.append((cut, last))
            last = cut
    return order
