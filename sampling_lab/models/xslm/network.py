"""The toy GPT itself: one causal block between embeddings and an output layer."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import linear, relu

Weights = Mapping[str, Tensor]
"""Weight name -> matrix; a layer's matrix holds one row for each of its outputs."""

_EMBEDDING_SPREAD = 0.2
# Nearly equal first logits, so that training starts at a loss of ln V.
_OUTPUT_SPREAD = 0.02


def weight_shapes(
    width: int, context: int, vocab_size: int
) -> dict[str, tuple[int, int]]:
    """Return the shape of every weight, in the order in which files hold them."""
    return {
        "tokens": (vocab_size, width),
        "positions": (context, width),
        "query": (width, width),
        "key": (width, width),
        "value": (width, width),
        "mix": (width, width),
        "up": (4 * width, width),
        "down": (width, 4 * width),
        "output": (vocab_size, width),
    }


def initial_weights(
    shapes: Mapping[str, tuple[int, int]], generator: torch.Generator
) -> dict[str, Tensor]:
    """Draw float64 weights that keep a layer's output about as large as its input."""
    spreads = {
        "tokens": _EMBEDDING_SPREAD,
        "positions": _EMBEDDING_SPREAD,
        "output": _OUTPUT_SPREAD,
    }
    return {
        name: torch.randn(rows, columns, generator=generator, dtype=torch.float64)
        * spreads.get(name, 1 / math.sqrt(columns))
        for name, (rows, columns) in shapes.items()
    }


def forward(weights: Weights, ids: Tensor, last: int | None = None) -> Tensor:
    """Return the logits after the last positions of a window.

    Args:
        weights: as `weight_shapes` lists them (W = width, V = vocabulary).
        ids: integer tensor, shape (..., T), T at most the context.
        last: after how many of the last positions, A <= T; None is all, A = T.

    Returns:
        Float tensor, shape (..., A, V), in the weights' dtype.
    """
    length = ids.shape[-1]
    first = 0 if last is None else length - last
    x = weights["tokens"][ids] + weights["positions"][:length]  # (..., T, W)
    key, value = linear(x, weights["key"]), linear(x, weights["value"])
    x = x[..., first:, :]  # (..., A, W)
    query = linear(x, weights["query"])
    scores = query @ key.transpose(-1, -2) / math.sqrt(x.shape[-1])  # (..., A, T)
    place = torch.arange(length, device=ids.device)
    is_future = place > place[first:, None]  # (A, T)
    attention = scores.masked_fill(is_future, -math.inf).softmax(dim=-1)
    x = x + linear(attention @ value, weights["mix"])  # (..., A, W)
    x = x + linear(relu(linear(x, weights["up"])), weights["down"])
    return linear(x, weights["output"])  # (..., A, V)
