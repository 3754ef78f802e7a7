"""Checkpoints of train-llm-from-scratch: a decoder-only transformer, any stage."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import CheckpointError, PromptError
from .base import CachedModel, Message, ModelCard, whole_number
from .placement import find_device, find_dtype
from .r50k import END_OF_TEXT, VOCAB_SIZE, load_r50k
from .torch_file import check_state, read_torch_file, strip_prefixes

ROLES = ("system", "user", "assistant")
HEADS = ("reward_head.", "value_head.")  # of the reward model and of PPO's critic
AUTHORS_DEFAULTS = {"temperature": 0.8, "top_p": 0.95}
AUTHORS_MAX_NEW_TOKENS = 256

_BLOCK = re.compile(r"attn_blocks\.(\d+)\.")
_HEAD = re.compile(r"attn_blocks\.\d+\.attn\.heads\.(\d+)\.")


def load(
    path: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    trust_remote_code: bool = False,
) -> ScratchLLM:
    """Load a ``.pt`` of any stage: base, SFT, reward, DPO, PPO or GRPO.

    Args:
        path: the file; it is only read.
        device: "auto" (CUDA where there is one), "cpu", "cuda", ….
        dtype: "auto" (the file's own), "float32", "bfloat16", "float16", "float64".
        trust_remote_code: has no effect, since nothing in a ``.pt`` is ever run.

    Raises:
        CheckpointError: not such a file, weights that its configuration does not
            fit, or no tokenizer; the message says what to do.
    """
    path = Path(path)
    content = read_torch_file(path)
    state = strip_prefixes(_entry(content, path, "model_state_dict"))
    sizes = _checked_sizes(_entry(content, path, "cfg", "config"), state, path)
    names = sizes.shapes()
    check_state(
        names,
        state,
        optional=sizes.buffer_shapes(),
        allowed_extra=HEADS,
        source=path,
    )
    place = find_device(device)
    precision = find_dtype(dtype, state["lm_head.weight"].dtype)
    # A copy, so that the file is left alone from here on.
    weights = {n: state[n].detach().to(place, precision, copy=True) for n in names}
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
        files=(path,),
        details=_details(content, sizes),
    )
    return ScratchLLM(card, weights, sizes)


@dataclass(frozen=True)
class Sizes:
    """The numbers of a configuration that shape the weights."""

    vocab_size: int
    context_length: int
    n_embed: int
    n_head: int
    n_blocks: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every weight."""
        v, t, c = self.vocab_size, self.context_length, self.n_embed
        shapes: dict[str, tuple[int, ...]] = {
            "token_embed.weight": (v, c),
            "position_embed.weight": (t, c),
            "layer_norm.weight": (c,),
            "layer_norm.bias": (c,),
            "lm_head.weight": (v, c),
            "lm_head.bias": (v,),
        }
        for block in range(self.n_blocks):
            for name, shape in self._block_shapes().items():
                shapes[f"attn_blocks.{block}.{name}"] = shape
        return shapes

    def _block_shapes(self) -> dict[str, tuple[int, ...]]:
        c = self.n_embed
        shapes: dict[str, tuple[int, ...]] = {
            f"attn.heads.{head}.{part}.weight": (c // self.n_head, c)
            for head in range(self.n_head)
            for part in ("key", "query", "value")
        }
        for norm in ("ln1", "ln2"):
            shapes |= {f"{norm}.weight": (c,), f"{norm}.bias": (c,)}
        linear = {
            "attn.proj": (c, c), "mlp.hidden": (4 * c, c), "mlp.proj": (c, 4 * c)
        }  # fmt: skip
        for name, (rows, columns) in linear.items():
            shapes |= {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}
        return shapes

    def buffer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return what files also hold and what follows from the sizes: the masks."""
        t = self.context_length
        masks = {
            f"attn_blocks.{block}.attn.heads.{head}.tril": (t, t)
            for block in range(self.n_blocks)
            for head in range(self.n_head)
        }
        return {"pos_idxs": (t,), **masks}


class ScratchLLM(CachedModel):
    """The transformer, with a key/value cache and fused attention.

    The heads' separate projections are concatenated once; `F.*` then does for all
    heads together what the original does one by one.
    """

    def __init__(
        self, card: ModelCard, weights: Mapping[str, Tensor], sizes: Sizes
    ) -> None:
        super().__init__(card, load_r50k())
        self._weights = weights
        self._sizes = sizes
        self._blocks = [_block(weights, sizes, n) for n in range(sizes.n_blocks)]
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
        end, context = past_length + len(new_ids), self._sizes.context_length
        if end > context:
            raise PromptError(
                f"{end} tokens do not fit the context of {context}; shorten the prompt"
            )
        weights = self._weights
        place = weights["lm_head.bias"].device
        x = F.embedding(
            torch.tensor(new_ids, device=place), weights["token_embed.weight"]
        )
        x = x + weights["position_embed.weight"][past_length:end]  # (T, C)
        cache = self._get_cache()
        for block, keys_values in zip(self._blocks, cache, strict=True):
            x = x + _attend(block, _norm(x, block.norm1), keys_values, past_length)
            hidden = F.linear(_norm(x, block.norm2), *block.hidden).relu()  # (T, 4C)
            x = x + F.linear(hidden, *block.mlp)
        last = _norm(x[-1], _pair(weights, "layer_norm"))  # (C,)
        return F.linear(last, *_pair(weights, "lm_head"))  # (V,)

    def _get_cache(self) -> Tensor:
        if self._cache is None:
            _, context, n_embed, n_head, n_blocks = astuple(self._sizes)
            shape = (n_blocks, 2, n_head, context, n_embed // n_head)
            self._cache = self._weights["lm_head.bias"].new_empty(shape)
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


def _entry(content: Mapping[str, Any], path: Path, *names: str) -> Mapping[str, Any]:
    """Return the first of some entries that is there, which must be a dictionary."""
    name = next((name for name in names if content.get(name)), None)
    if name is None:
        hint = ""
        if "format_version" in content:
            hint = "; a format_version is there, so load it with format='kimi_k3'"
        raise CheckpointError(
            f"{path} has no {' or '.join(names)}; it holds "
            f"{', '.join(map(str, content)) or 'nothing'}{hint}"
        )
    if not isinstance(content[name], Mapping):
        kind = type(content[name]).__name__
        raise CheckpointError(f"{name} in {path} must be a dictionary, got a {kind}")
    return content[name]


def _checked_sizes(
    config: Mapping[str, Any], state: Mapping[str, Any], path: Path
) -> Sizes:
    """Read the sizes, and compare them with the file's own tensors first of all.

    Only then is it safe to count up to them.
    """
    try:
        sizes = Sizes(*(_size(config, name) for name in Sizes.__annotations__))
    except ValueError as error:
        raise CheckpointError(f"{path}: in its configuration, {error}") from error
    found = _sizes_of(state)
    wrong = [
        f"{name} {asked:,} (its weights say {has:,})"
        for name, asked, has in zip(
            Sizes.__annotations__, astuple(sizes), found, strict=True
        )
        if asked != has
    ]
    if wrong:
        raise CheckpointError(f"{path}: its configuration asks for {', '.join(wrong)}")
    if sizes.n_embed % sizes.n_head:
        raise CheckpointError(
            f"{path}: n_embed {sizes.n_embed} is no multiple of n_head {sizes.n_head}"
        )
    if sizes.vocab_size < VOCAB_SIZE:
        raise CheckpointError(
            f"{path}: a vocabulary of {sizes.vocab_size:,} is too small for the "
            f"tokenizer r50k_base, which has {VOCAB_SIZE:,} tokens"
        )
    return sizes


def _size(config: Mapping[str, Any], name: str) -> int:
    if name not in config:
        raise CheckpointError(
            f"{name} is missing; it has {', '.join(map(str, config))}"
        )
    return whole_number(name, config[name])


def _sizes_of(state: Mapping[str, Any]) -> tuple[int, ...]:
    """Read the sizes off the tensors; 0 for what they do not show."""
    vocab_size, n_embed = _shape(state, "token_embed.weight")
    context_length, _ = _shape(state, "position_embed.weight")
    blocks = {match[1] for name in state if (match := _BLOCK.match(name))}
    heads = {match[1] for name in state if (match := _HEAD.match(name))}
    return vocab_size, context_length, n_embed, len(heads), len(blocks)


def _shape(state: Mapping[str, Any], name: str) -> tuple[int, ...]:
    shape = tuple(getattr(state.get(name), "shape", ()))
    return shape if len(shape) == 2 else (0, 0)


def _details(content: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Return what the trainer wrote down, as strict JSON data."""
    kept = {name: content.get(name) for name in ("stage", "step", "pytorch_version")}
    metrics = content.get("metrics")
    if isinstance(metrics, Mapping):
        kept["metrics"] = {str(name): _plain(value) for name, value in metrics.items()}
    shape = {name: getattr(sizes, name) for name in ("n_embed", "n_head", "n_blocks")}
    return {name: _plain(value) for name, value in kept.items()} | shape


def _plain(value: Any) -> Any:
    if isinstance(value, dict) or value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value)[:200]
