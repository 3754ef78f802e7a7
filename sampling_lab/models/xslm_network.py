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


def forward(weights: Weights, ids: Tensor) -> Tensor:
    """Return the logits after every position of a window.

    Args:
        weights: as `weight_shapes` lists them (W = width, V = vocabulary).
        ids: integer tensor, shape (..., T), T at most the context.

    Returns:
        Float tensor, shape (..., T, V), in the weights' dtype.
    """
    length = ids.shape[-1]
    x = weights["tokens"][ids] + weights["positions"][:length]  # (..., T, W)
    query, key, value = (linear(x, weights[n]) for n in ("query", "key", "value"))
    scores = query @ key.transpose(-1, -2) / math.sqrt(x.shape[-1])  # (..., T, T)
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    attention = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    x = x + linear(attention @ value, weights["mix"])  # (..., T, W)
    x = x + linear(relu(linear(x, weights["up"])), weights["down"])
    return linear(x, weights["output"])  # (..., T, V)
