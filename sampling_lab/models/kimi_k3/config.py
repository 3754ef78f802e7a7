"""The configuration in a Kimi K3 checkpoint, checked before anything is built."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import KimiLinearConfig, PreTrainedConfig
from transformers.activations import ACT2FN

from ...errors import CheckpointError
from ..checks import RENAME_HINT, first_sentence, listed

CHUNK_SIZE = 64
"""How many tokens KDA's chunked form handles at once, unless told otherwise."""

_OWN_KEYS = {
    *KimiLinearConfig.__annotations__,
    *KimiLinearConfig.attribute_map,
    *KimiLinearConfig.attribute_map.values(),
    "linear_attn_config",
    "first_k_dense_replace",
    "chunk_size",
}
# Written by the library's own `to_dict`; they do not change the logits.
_UNUSED_KEYS = {
    *(field.name for field in dataclasses.fields(PreTrainedConfig)),
    *("model_type", "head_dim", "qk_head_dim"),
    *("_name_or_path", "output_attentions", "torch_dtype"),
}
_LINEAR_KEYS = {
    *("head_dim", "num_heads", "short_conv_kernel_size"),
    *("full_attn_layers", "kda_layers"),
}
# Special tokens are the tokenizer's; the library's own lie outside a small vocabulary.
_NO_PART = ("pad_token_id", "bos_token_id", "eos_token_id")
_SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "moe_intermediate_size"),
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"),
    *("n_shared_experts", "num_local_experts", "num_experts_per_tok"),
    *("n_group", "topk_group", "max_position_embeddings"),
    *("linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim", "chunk_size"),
)
_LAYER = re.compile(r"model\.layers\.(\d+)\.")

_Rule = tuple[str, str, Callable[[Any], bool]]
# Rules that no tensor's shape reveals, and that the library checks only while running.
_RULES: tuple[_Rule, ...] = (
    (
        "layer_types",
        "hold only linear_attention and full_attention, at least one of them full",
        lambda c: (
            "full_attention"
            in set(c.layer_types)
            <= {"linear_attention", "full_attention"}
        ),
    ),
    (
        "mlp_layer_types",
        "hold only dense and sparse",
        lambda c: set(c.mlp_layer_types) <= {"dense", "sparse"},
    ),
    (
        "num_key_value_heads",
        "equal num_attention_heads, since MLA expands its latents to every head",
        lambda c: c.num_key_value_heads == c.num_attention_heads,
    ),
    (
        "n_group",
        "split num_local_experts into equal groups of two or more",
        lambda c: (
            c.num_local_experts % c.n_group == 0
            and c.num_local_experts >= 2 * c.n_group
        ),
    ),
    ("topk_group", "be at most n_group", lambda c: c.topk_group <= c.n_group),
    (
        "num_experts_per_tok",
        "be at most the experts in topk_group groups",
        lambda c: (
            c.num_experts_per_tok <= c.num_local_experts // c.n_group * c.topk_group
        ),
    ),
    (
        "hidden_act",
        "be an activation of transformers",
        lambda c: c.hidden_act in ACT2FN,
    ),
)


def read_config(given: Mapping[Any, Any], weights: Sequence[str]) -> KimiLinearConfig:
    """Return the library's configuration for the settings in a checkpoint.

    The number of layers is compared with the names of the weights first, so that no
    claim makes the library build more than the file holds. Dropout is off and no
    special token is set, since neither affects the logits.

    Args:
        given: the settings: those of `KimiLinearConfig` under any of its names, and
            `max_seq_len` (the context; wins over `max_position_embeddings`) and
            `chunk_size` (64; any integer >= 1).
        weights: names of the weights, prefixes stripped.

    Raises:
        CheckpointError: an unknown setting, or one against its rule.
    """
    _check_keys(given)
    settings = {key: given[key] for key in given if key in _OWN_KEYS}
    settings.setdefault("chunk_size", CHUNK_SIZE)
    layers = settings.get("num_hidden_layers", KimiLinearConfig.num_hidden_layers)
    found = {match[1] for name in weights if (match := _LAYER.match(name))}
    if layers != len(found):
        hint = f"; {RENAME_HINT}" if not found else ""
        raise CheckpointError(
            f"num_hidden_layers is {layers!r}, but the weights are those of "
            f"{len(found)} layers (model.layers.N. …): {listed(weights, 3)}{hint}"
        )
    if "max_seq_len" in given:
        settings.pop("model_max_length", None)
        settings["max_position_embeddings"] = given["max_seq_len"]
    settings |= dict.fromkeys(_NO_PART)
    settings["attention_dropout"] = 0.0
    config = _library_config(settings)
    _check_rules(config)
    config._experts_implementation = "eager"
    return config


def _check_keys(given: Mapping[Any, Any]) -> None:
    known = _OWN_KEYS | _UNUSED_KEYS | {"max_seq_len"}
    _refuse_unknown(given, known, "the configuration")
    linear = given.get("linear_attn_config")
    if isinstance(linear, Mapping):
        _refuse_unknown(linear, _LINEAR_KEYS, "linear_attn_config")
    model_type = given.get("model_type", "kimi_linear")
    if model_type != "kimi_linear":
        raise CheckpointError(f"model_type must be 'kimi_linear', got {model_type!r}")


def _refuse_unknown(given: Mapping[Any, Any], known: set[str], where: str) -> None:
    unknown = sorted(str(key) for key in given if key not in known)
    if unknown:
        raise CheckpointError(
            f"{where} has settings that kimi_linear does not know: " + listed(unknown)
        )


def _library_config(settings: dict[str, Any]) -> KimiLinearConfig:
    try:
        return KimiLinearConfig(**settings)
    except Exception as error:  # of any kind: the values come from a stranger's file
        raise CheckpointError(
            f"the configuration is refused: {first_sentence(error)}"
        ) from error


def _check_rules(config: KimiLinearConfig) -> None:
    for name in _SIZES:
        value = getattr(config, name)
        if type(value) is not int or value < 1:
            raise CheckpointError(f"{name} must be an integer >= 1, got {value!r}")
    for name, rule, holds in _RULES:
        if not holds(config):
            raise CheckpointError(f"{name} must {rule}, got {getattr(config, name)!r}")
