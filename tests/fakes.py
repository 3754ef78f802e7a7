"""A small model with a known table of logits, for tests of everything above it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from sampling_lab.models.base import Model, ModelCard
from sampling_lab.text import visible_bytes


class PieceTokenizer:
    """A tokenizer over given byte pieces; text is encoded longest piece first."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = list(pieces)
        self.vocab_size = len(self.pieces)

    def encode(self, text: str) -> list[int]:
        data, ids = text.encode(), []
        longest_first = sorted(self.pieces, key=len, reverse=True)
        while data:
            piece = next(p for p in longest_first if p and data.startswith(p))
            ids.append(self.pieces.index(piece))
            data = data[len(piece) :]
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        return self.pieces[token_id] if token_id < self.vocab_size else b""

    def token_text(self, token_id: int) -> str:
        if token_id >= self.vocab_size:
            return f"⟨{token_id}⟩"
        return visible_bytes(self.pieces[token_id])


class TableModel(Model):
    """The next token's logits are the row of the last token in a (V, V) table."""

    def __init__(
        self,
        table: Tensor,
        pieces: Sequence[bytes] | None = None,
        **card: object,
    ) -> None:
        vocab_size = table.shape[-1]
        fields = {
            "name": "table",
            "format": "fake",
            "parameters": table.numel(),
            "vocab_size": vocab_size,
            "context_length": None,
            "dtype": str(table.dtype).removeprefix("torch."),
            "device": "cpu",
            "dialect": "transformers",
        }
        tokenizer = PieceTokenizer(pieces) if pieces is not None else None
        super().__init__(ModelCard(**{**fields, **card}), tokenizer)
        self.table = table

    def _forward(self, ids: tuple[int, ...]) -> Tensor:
        return self.table[ids[-1]].clone()  # (V,)


LETTERS = [bytes([97 + i]) for i in range(26)]


def letters() -> TableModel:
    """Return a model of the letters a to z, with random logits."""
    table = torch.randn(26, 26, generator=torch.Generator().manual_seed(1)) * 2
    return TableModel(table, LETTERS)


def walk(pieces: Sequence[bytes], path: Sequence[int], **card: object) -> TableModel:
    """Return a model that follows `path` for certain, from its first id on."""
    table = torch.full((len(pieces), len(pieces)), -30.0)
    for here, there in pairwise(path):
        table[here, there] = 30.0
    return TableModel(table, pieces, **card)
