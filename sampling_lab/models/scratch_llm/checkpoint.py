"""The file of a scratch-LLM checkpoint: sizes, weights and trainer's notes.

Every size is compared with the file's own tensors before it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ...errors import CheckpointError, ParameterError
from ...sampling.validation import whole_number
from ..checks import dictionary_in, is_plain
from ..pickle_values import short
from ..torch_file import check_state, read_torch_file, strip_prefixes
from .tokenizer import VOCAB_SIZE

HEADS = ("reward_head.", "value_head.")  # of the reward model and of PPO's critic

_BLOCK = re.compile(r"attn_blocks\.(\d+)\.")
_HEAD = re.compile(r"attn_blocks\.\d+\.attn\.heads\.(\d+)\.")


def read_checkpoint(
    path: Path, overrides: Mapping[str, int]
) -> tuple[dict[str, Any], dict[str, Tensor], Sizes]:
    """Read and check a ``.pt`` of any stage; `overrides` go before its own sizes.

    Returns:
        The whole content; the weights that `Sizes.shapes` lists, as views of the
        file; and the sizes.

    Raises:
        CheckpointError: not such a file, or its configuration and weights differ.
        ParameterError: an override that is no size.
    """
    known = {name: whole_number(name, size) for name, size in overrides.items()}
    if unknown := known.keys() - Sizes.__annotations__:
        raise ParameterError(
            f"overrides must be of {', '.join(Sizes.__annotations__)}, got "
            f"{', '.join(sorted(unknown))}"
        )
    content = read_torch_file(path)
    hint = ""
    if "format_version" in content:
        hint = "; it has a format_version, so load it with format='kimi_k3'"
    weights = dictionary_in(path, content, ["model_state_dict"], hint)
    names = [name for name in ("cfg", "config") if content.get(name) is not None]
    config = dictionary_in(path, content, names) if names else {}
    state = strip_prefixes(weights)
    if config.get("arch") == "modern" or "final_norm.weight" in state:
        raise CheckpointError(
            f"{path} has the trainer's newer arch='modern', which the lab does not "
            "compute; give a checkpoint that was trained without it"
        )
    sizes = _checked_sizes({**config, **known}, state, path)
    expected = sizes.shapes()
    check_state(
        expected,
        state,
        optional=sizes.buffer_shapes(),
        allowed_extra=HEADS,
        source=path,
    )
    return content, {name: state[name] for name in expected}, sizes


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
        """Return the name and shape of the masks, which a file may also hold."""
        t = self.context_length
        masks = {
            f"attn_blocks.{block}.attn.heads.{head}.tril": (t, t)
            for block in range(self.n_blocks)
            for head in range(self.n_head)
        }
        return {"pos_idxs": (t,), **masks}


def _checked_sizes(
    config: Mapping[str, Any], state: Mapping[str, Any], path: Path
) -> Sizes:
    """Read the sizes and compare them with the file's own tensors.

    Nothing counts up to a size before it is known to be true.
    """
    shown = dict(zip(Sizes.__annotations__, _sizes_of(state), strict=True))
    if "n_head" not in config:
        raise CheckpointError(
            f"{path} has no n_head in its cfg or config; give overrides={{'n_head': N}}"
            f", or --override n_head=N (its weights have {shown['n_head']} heads)"
        )
    asked = {name: _plain(config.get(name, size)) for name, size in shown.items()}
    try:
        sizes = Sizes(*(whole_number(name, size) for name, size in asked.items()))
    except ValueError as error:
        raise CheckpointError(f"{path}: in its configuration, {error}") from error
    wrong = [
        f"{name} {size:,} (its weights say {shown[name]:,})"
        for name, size in vars(sizes).items()
        if size != shown[name]
    ]
    if wrong:
        raise CheckpointError(f"{path}: its configuration asks for {', '.join(wrong)}")
    if sizes.n_embed % sizes.n_head:
        raise CheckpointError(
            f"{path}: n_embed must be a multiple of n_head ({sizes.n_head}), got "
            f"{sizes.n_embed}"
        )
    if sizes.vocab_size < VOCAB_SIZE:
        raise CheckpointError(
            f"{path}: a vocabulary of {sizes.vocab_size:,} is too small for the "
            f"tokenizer r50k_base, which has {VOCAB_SIZE:,} tokens"
        )
    return sizes


def _sizes_of(state: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the sizes that the tensors show; 0 for those that they do not."""
    vocab_size, n_embed = _shape(state, "token_embed.weight")
    context_length, _ = _shape(state, "position_embed.weight")
    blocks = {match[1] for name in state if (match := _BLOCK.match(name))}
    heads = {match[1] for name in state if (match := _HEAD.match(name))}
    return vocab_size, context_length, n_embed, len(heads), len(blocks)


def _shape(state: Mapping[str, Any], name: str) -> tuple[int, ...]:
    shape = tuple(getattr(state.get(name), "shape", ()))
    return shape if len(shape) == 2 else (0, 0)


def details(content: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Return the trainer's notes, as strict JSON data."""
    kept = {name: content.get(name) for name in ("stage", "step", "pytorch_version")}
    noted = {name: _plain(value) for name, value in kept.items()}
    metrics = content.get("metrics")
    if isinstance(metrics, Mapping):
        noted["metrics"] = {str(name): _plain(v) for name, v in metrics.items()}
    shape = ("n_embed", "n_head", "n_blocks")
    return noted | {name: getattr(sizes, name) for name in shape}


def _plain(value: Any) -> Any:
    """Return a plain scalar unchanged, and anything else as short text."""
    if is_plain(value):
        return value
    nested = isinstance(value, list | tuple | dict | set | frozenset)
    return (short(value) if nested else str(value))[:200]
