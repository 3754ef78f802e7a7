"""Structured output: which tokens can go on with a text that a grammar allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from ..errors import ParameterError
from ..models.base import Model
from ..sampling.history import History
from ..sampling.params import SamplingParams

_TOKENIZERS: WeakKeyDictionary[Model, Any] = WeakKeyDictionary()
"""Each model's vocabulary as the library holds it."""

_MOST_ERROR = 200
"""So many characters of what the library says of a grammar."""


class Guide:
    """The tokens that a grammar allows, by the library `llguidance`.

    Text that a grammar forces, such as a key, is spelled with the longest tokens.

    Args:
        grammar: "regex:", "json:" (a JSON schema) or "lark:", and the grammar.
        model: whose tokens they are; it must have a tokenizer.
        stop_token_ids: allowed where the text may end; there must be one.

    Raises:
        ParameterError: no grammar of these kinds, or one that is wrong; no stop token;
            no tokenizer; the library is not installed.
    """

    def __init__(
        self, grammar: str, model: Model, stop_token_ids: Sequence[int]
    ) -> None:
        library = _library()
        if model.tokenizer is None or not stop_token_ids:
            lacks = "a tokenizer" if model.tokenizer is None else "a stop token"
            raise ParameterError(
                f"grammar needs {lacks}, and {model.card.name} has none; give one"
            )
        kind, _, text = grammar.partition(":")
        self._size, self._stops = model.card.vocab_size, list(stop_token_ids)
        tokenizer = _TOKENIZERS.get(model)
        if tokenizer is None:
            tokenizer = library.LLTokenizer(library.TokenizerWrapper(_Tokens(model)))
            _TOKENIZERS[model] = tokenizer
        source = getattr(library.LLMatcher, f"grammar_from_{_KINDS[kind]}")(text)
        self._matcher = library.LLMatcher(tokenizer, source, log_level=0)
        self._taken: tuple[int, ...] = ()
        if self._matcher.is_error():
            said = " ".join(self._matcher.get_error().split())[:_MOST_ERROR]
            raise ParameterError(f"grammar must be a {kind} that works, got: {said}")

    def allowed(self, new_ids: Sequence[int]) -> Tensor:
        """Return which tokens can follow, bool (V,), after the new tokens of a text.

        A text that the grammar does not allow, as after a fork, allows every token.
        """
        new_ids = tuple(new_ids)
        if self._taken != new_ids[: len(self._taken)]:
            self._matcher.reset()
            self._taken = ()
        more = [i for i in new_ids[len(self._taken) :] if i not in self._stops]
        self._taken = new_ids
        if self._matcher.try_consume_tokens(more) < len(more):
            self._taken = (-1,)  # begin anew next time
            return torch.ones(self._size, dtype=torch.bool)
        packed = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        bits = np.unpackbits(packed, bitorder="little").astype(bool)
        allowed = torch.from_numpy(bits[: self._size].copy())
        allowed[self._stops] = bool(bits[self._size])  # the token after the last
        return allowed


class _Tokens:
    """A model's tokens as llguidance takes them, with an end token after the last."""

    def __init__(self, model: Model) -> None:
        size, tokenizer = model.card.vocab_size, model.tokenizer
        assert tokenizer is not None
        special = set(getattr(tokenizer, "special_tokens", {}).values())
        names = range(size)
        tokens = [b"" if i in special else tokenizer.token_bytes(i) for i in names]
        self.tokens = [*tokens, b"\xff[end]"]
        self.eos_token_id, self.bos_token_id = size, None
        self.special_token_ids = [size]
        self._by_bytes = {token: i for i, token in enumerate(tokens) if token}
        self._longest = max(map(len, tokens))

    def __call__(self, text: bytes) -> list[int]:
        """Return tokens whose bytes are this text, the longest first."""
        ids: list[int] = []
        while text:
            ends = range(min(len(text), self._longest), 0, -1)
            found = (self._by_bytes.get(text[:end]) for end in ends)
            token_id = next((i for i in found if i is not None), None)
            if token_id is None:  # no token can be this text
                return ids
            ids.append(token_id)
            text = text[len(self.tokens[token_id]) :]
        return ids


_KINDS = {"regex": "regex", "json": "json_schema", "lark": "lark"}


def _library() -> Any:
    try:
        import llguidance
    except ImportError:
        raise ParameterError(
            "grammar needs the package llguidance; pip install 'sampling-lab[grammar]'"
        ) from None
    return llguidance


def with_guide(model: Model, params: SamplingParams, history: History) -> History:
    """Return a history that knows what the parameters' grammar allows, if there is one.

    Raises:
        ParameterError: as in `Guide`.
    """
    if not params.grammar:
        return history
    guide = Guide(params.grammar, model, history.stop_token_ids)
    return history._replace(guide=guide)
