"""Several prefixes of one length in one forward pass, with their own cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from transformers import DynamicCache

from ...text import common_prefix

Ids = tuple[int, ...]
Runner = Callable[[Tensor, DynamicCache], Tensor]
"""Run input ids (B, new) after a cache; return the last position's logits (B, V)."""


class BatchCache:
    """A key/value cache over rows of token ids that grow by the same number of tokens.

    Args:
        run: the network's forward pass.
        new_cache: makes an empty cache.
    """

    def __init__(self, run: Runner, new_cache: Callable[[], DynamicCache]) -> None:
        self._run, self._new_cache = run, new_cache
        self.clear()

    def clear(self) -> None:
        """Drop the cache."""
        self._cache = self._new_cache()
        self._rows: list[Ids] = []

    def logits(self, rows: Sequence[Ids]) -> list[Tensor] | None:
        """Return the logits (V,) after each row; None unless the lengths are equal.

        Rows that extend rows of the last call by one token use their cache, in any
        order and number. Otherwise the prefix that all rows share is run once.
        """
        if len({len(row) for row in rows}) > 1:
            return None
        try:
            start = self._select(rows) or self._begin(rows)
            new_ids = torch.tensor([row[start:] for row in rows])  # (B, new)
            computed = self._run(new_ids, self._cache)  # (B, V)
        except BaseException:
            self.clear()
            raise
        self._rows = list(rows)
        return [row.clone() for row in computed]

    def _select(self, rows: Sequence[Ids]) -> int:
        """Keep the cached rows that these extend; return their length, or 0."""
        places = {row: at for at, row in enumerate(self._rows)}
        parents = [places.get(row[:-1]) for row in rows]
        if None in parents:
            return 0
        if parents != list(range(len(self._rows))):
            self._cache.batch_select_indices(torch.tensor(parents))
        return len(rows[0]) - 1

    def _begin(self, rows: Sequence[Ids]) -> int:
        """Run what all rows share, once; return its length."""
        self.clear()
        shared = common_prefix(min(rows), max(rows))
        if shared:
            self._run(torch.tensor([rows[0][:shared]]), self._cache)
            self._cache.batch_repeat_interleave(len(rows))
        return shared
