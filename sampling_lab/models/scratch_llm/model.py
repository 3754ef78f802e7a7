"""Checkpoints of train-llm-from-scratch: a decoder-only transformer, any stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import PromptError
from ..base import CachedModel, Message, ModelCard
from ..device import find_device, find_dtype
from .checkpoint import Sizes, details, read_checkpoint
from .tokenizer import END_OF_TEXT, load_r50k

ROLES = ("system", "user", "assistant")
AUTHORS_DEFAULTS = {"temperature": 0.8, "top_p": 0.95}
AUTHORS_MAX_NEW_TOKENS = 256


def load(
    path: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    overrides: Mapping[str, int] | None = None,
) -> ScratchLLM:
    """Load a ``.pt`` of any stage: base, SFT, reward, DPO, PPO or GRPO.

    The arguments are those of `sampling_lab.load`. The file is only read, and nothing
    in it is ever run. `overrides` are sizes, such as ``{"n_head": 4}``, that go before
    those of the file's ``cfg``, or stand in for a lost one; what is in neither is read
    from the weights.

    Raises:
        CheckpointError: not such a file, weights that its configuration does not
            fit, or no tokenizer; the message says what to do.
        ParameterError: an override that is no size.
    """
    path = Path(path)
    content, state, sizes = read_checkpoint(path, overrides or {})
    place = find_device(device)
    precision = find_dtype(dtype, state["lm_head.weight"].dtype)
    # A copy, so that the file is left alone from here on.
    weights = {
        name: weight.detach().to(place, precision, copy=True)
        for name, weight in state.items()
    }
    card = ModelCard(
        name=path.stem,
        format="scratch_llm",
        parameters=sum(weight.numel() for weight in weights.values()),
        vocab_size=sizes.vocab_size,
        context_length=sizes.context_length,
        dtype=str(precision).removeprefix("torch."),
        device=str(place),
        dialect="scratch_llm",
        stop_token_ids=(END_OF_TEXT,),
        chat=True,
        default_max_new_tokens=AUTHORS_MAX_NEW_TOKENS,
        defaults=AUTHORS_DEFAULTS,
        chat_params=AUTHORS_DEFAULTS,
        files=(path,),
        details=details(content, sizes),
    )
    return ScratchLLM(card, weights, sizes)


class ScratchLLM(CachedModel):
    """The transformer, with a key/value cache and fused attention.

    The heads' separate projections are concatenated once; `F.*` then does for all
    heads together what the original does one by one.
    """

    def __init__(
        self, card: ModelCard, weights: Mapping[str, Tensor], sizes: Sizes
    ) -> None:
        super().__init__(card, load_r50k())
        self._sizes = sizes
        self._token_embed = weights["token_embed.weight"]
        self._position_embed = weights["position_embed.weight"]
        self._blocks = [_block(weights, sizes, n) for n in range(sizes.n_blocks)]
        self._final_norm = _pair(weights, "layer_norm")
        self._head = _pair(weights, "lm_head")
        self._cache: Tensor | None = None

    def budget(self, prompt_length: int, max_new_tokens: int) -> int:
        """Return what fits: ``min(max_new_tokens, context - prompt_length)``.

        Positions are absolute, so nothing slides. A prompt that fills the context,
        or is longer, leaves 0: the reply is empty.
        """
        return max(0, min(max_new_tokens, self._sizes.context_length - prompt_length))

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a conversation, ending with the assistant's header.

        A turn is ``<|role|>`` and a newline as ordinary text, the content, and id
        50256, which no text can contain.
        """
        ids: list[int] = []
        for message in messages:
            role, content = message.get("role"), message.get("content")
            if role not in ROLES or not isinstance(content, str):
                raise PromptError(
                    f"a chat message must have a role of {', '.join(ROLES)} and text "
                    f"as content, got {dict(message)!r}"
                )
            ids += [*self._header(role), *self._text_ids(content), END_OF_TEXT]
        return ids + self._header("assistant")

    def _header(self, role: str) -> list[int]:
        return self._text_ids(f"<|{role}|>\n")

    def _extend(self, new_ids: tuple[int, ...], past_length: int) -> Tensor:
        end = self._end(new_ids, past_length)
        embed = self._token_embed
        x = F.embedding(torch.tensor(new_ids, device=embed.device), embed)
        x = x + self._position_embed[past_length:end]  # (T, C)
        cache = self._get_cache()
        for block, keys_values in zip(self._blocks, cache, strict=True):
            x = x + _attend(block, _norm(x, block.norm1), keys_values, past_length)
            hidden = F.linear(_norm(x, block.norm2), *block.hidden).relu()  # (T, 4C)
            x = x + F.linear(hidden, *block.mlp)
        last = _norm(x[-1], self._final_norm)  # (C,)
        return F.linear(last, *self._head)  # (V,)

    def _get_cache(self) -> Tensor:
        if self._cache is None:
            _, context, n_embed, n_head, n_blocks = astuple(self._sizes)
            shape = (n_blocks, 2, n_head, context, n_embed // n_head)
            self._cache = self._token_embed.new_empty(shape)
        return self._cache

    def _truncate(self, length: int) -> bool:
        return True  # what lies after `past_length` is never read

    def _clear(self) -> None:
        self._cache = None


Pair = tuple[Tensor, Tensor]  # weight and bias


@dataclass(frozen=True)
class _Block:
    norm1: Pair
    query_key_value: Tensor  # (3C, C)
    projection: Pair
    norm2: Pair
    hidden: Pair
    mlp: Pair


def _block(weights: Mapping[str, Tensor], sizes: Sizes, number: int) -> _Block:
    """Gather one block's weights, its heads' projections stacked."""
    name = f"attn_blocks.{number}"
    stacked = torch.cat(
        [
            weights[f"{name}.attn.heads.{head}.{part}.weight"]
            for part in ("query", "key", "value")
            for head in range(sizes.n_head)
        ]
    )
    return _Block(
        norm1=_pair(weights, f"{name}.ln1"),
        query_key_value=stacked,
        projection=_pair(weights, f"{name}.attn.proj"),
        norm2=_pair(weights, f"{name}.ln2"),
        hidden=_pair(weights, f"{name}.mlp.hidden"),
        mlp=_pair(weights, f"{name}.mlp.proj"),
    )


def _pair(weights: Mapping[str, Tensor], name: str) -> Pair:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _norm(x: Tensor, pair: Pair) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], *pair)


def _attend(block: _Block, x: Tensor, cache: Tensor, past: int) -> Tensor:
    """Attend from new positions to all, and write their keys and values down.

    Args:
        block: the weights.
        x: normed states of the new positions, shape (T, C).
        cache: keys and values of this block, shape (2, H, context, D).
        past: how many positions are in the cache already.
    """
    new, heads, size = x.shape[0], cache.shape[1], cache.shape[3]
    projected = F.linear(x, block.query_key_value)  # (T, 3C)
    projected = projected.view(new, 3, heads, size).permute(1, 2, 0, 3)  # (3, H, T, D)
    cache[:, :, past : past + new] = projected[1:]
    keys, values = cache[:, :, : past + new]  # each (H, past + T, D)
    seen = torch.ones(new, past + new, dtype=torch.bool, device=x.device).tril(past)
    out = F.scaled_dot_product_attention(
        projected[0][None], keys[None], values[None], attn_mask=seen
    )  # (1, H, T, D), scaled by 1 / sqrt(D)
    return F.linear(out[0].transpose(0, 1).reshape(new, -1), *block.projection)
