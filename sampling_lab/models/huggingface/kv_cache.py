"""A key/value cache that grows in place and can be cut back."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer

_FIRST_ROOM = 256  # positions


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # the library
    """A layer that writes new keys and values into spare room after the old ones.

    The library's layer copies all keys and values for each new token; here that happens
    only when the room has to double. `keys` and `values` are as in the library, shape
    (B, H, positions, D), but views of the front of the room, so cutting back is the
    library's `crop`.
    """

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Begin without any room."""
        super().lazy_initialization(key_states, value_states)
        self.keys = self._key_room = key_states[..., :0, :]
        self.values = self._value_room = value_states[..., :0, :]

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values, shape (B, H, new, D), and return all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held, new = self.get_seq_length(), key_states.shape[-2]
        if held + new > self._key_room.shape[-2]:
            room = max(_FIRST_ROOM, 2 * (held + new))
            self._key_room = _moved(self._key_room, held, room)
            self._value_room = _moved(self._value_room, held, room)
        self._key_room.narrow(-2, held, new).copy_(key_states)
        self._value_room.narrow(-2, held, new).copy_(value_states)
        self.keys = self._key_room.narrow(-2, 0, held + new)
        self.values = self._value_room.narrow(-2, 0, held + new)
        return self.keys, self.values

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row."""
        super().batch_repeat_interleave(repeats)
        self._leave_no_room()

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows of these indices, in their order."""
        super().batch_select_indices(indices)
        self._leave_no_room()

    def _leave_no_room(self) -> None:
        if self.keys is not None and self.values is not None:
            self._key_room, self._value_room = self.keys, self.values


def _moved(old: Tensor, held: int, room: int) -> Tensor:
    """Return room for so many positions, beginning with the `held` first ones."""
    larger = old.new_empty(*old.shape[:-2], room, old.shape[-1])  # (B, H, room, D)
    larger.narrow(-2, 0, held).copy_(old.narrow(-2, 0, held))
    return larger


def new_cache(config: PreTrainedConfig) -> DynamicCache:
    """Return an empty cache of the kinds of layer that a model asks for."""
    cache = DynamicCache(config=config)
    cache.layers = [
        GrowingLayer() if type(layer) is DynamicLayer else layer  # type: ignore[no-untyped-call]  # the library
        for layer in cache.layers
    ]
    return cache


def crop(cache: DynamicCache, length: int) -> bool:
    """Cut a cache back to `length` positions; False where a layer cannot be.

    Only layers that keep every position can: a sliding window or a recurrent state
    has lost the earlier positions.
    """
    if is_plain(cache):
        cache.crop(length - cache.get_seq_length())
    return is_plain(cache)


def is_plain(cache: DynamicCache) -> bool:
    """Tell whether every layer keeps every position, and nothing else."""
    return all(type(layer) in (GrowingLayer, DynamicLayer) for layer in cache.layers)


def is_recurrent(cache: DynamicCache) -> bool:
    """Tell whether some layer keeps a state in place of all positions."""
    return any(cache.is_linear)
