"""A key/value cache that grows in place and can be cut back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer

_FIRST_ROOM = 256  # positions


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # the library
    """A layer that writes new keys and values into spare room after the old ones.

    The library's layer copies all keys and values, shape (B, H, positions, D), for each
    new token. Here they are views of a larger tensor, copied only when that is full.
    """

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values, shape (B, H, new, D), and return all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held = self.get_seq_length()
        self.keys = _appended(self.keys, held, key_states)
        self.values = _appended(self.values, held, value_states)
        return self.keys, self.values


def _appended(old: Tensor | None, held: int, new: Tensor) -> Tensor:
    """Return `old`, which has `held` positions, and `new` after it."""
    assert old is not None  # the layer is initialized
    *rows, count, width = new.shape
    # From one head to the next in `old` is as far as there is room for positions.
    if not held or (held + count) * old.stride(-2) > old.stride(-3):
        room = new.new_empty(*rows, max(_FIRST_ROOM, held + count), width)
        return torch.cat([old, new, room], dim=-2)[..., : held + count, :]
    grown = old.as_strided((*rows, held + count, width), old.stride())
    grown[..., held:, :] = new
    return grown


def new_cache(config: PreTrainedConfig) -> DynamicCache:
    """Return an empty cache of the kinds of layer that a model asks for."""
    cache = DynamicCache(config=config)
    cache.layers = [
        GrowingLayer() if type(layer) is DynamicLayer else layer  # type: ignore[no-untyped-call]  # the library
        for layer in cache.layers
    ]
    return cache


def crop(cache: DynamicCache, length: int) -> bool:
    """Cut a cache back to `length` positions; False where a layer has lost them."""
    if is_plain(cache):
        cache.crop(length - cache.get_seq_length())
    return is_plain(cache)


def is_plain(cache: DynamicCache) -> bool:
    """Tell whether every layer keeps every position, and nothing else."""
    return all(type(layer) in (GrowingLayer, DynamicLayer) for layer in cache.layers)
