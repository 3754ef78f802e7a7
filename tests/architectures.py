"""Tiny random models of every causal architecture that `transformers` knows."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from sampling_lab.models.huggingface.quiet import quiet

NAMES = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
"""Every model_type with a causal form."""

_SMALL = {
    32: "attention_hidden_size d_embed d_model dim emb_dim embedding_size hidden_size "
    "lru_width n_embd project_dim word_embed_proj_dim hidden_size_per_layer",
    48: "d_ff d_inner decoder_ffn_dim dff encoder_ffn_dim ffn_dim ffn_hidden_size "
    "hidden_dim intermediate_size n_inner",
    4: "encoder_attention_heads decoder_attention_heads n_head n_heads "
    "num_attention_heads num_heads n_layer n_layers num_blocks num_hidden_layers "
    "num_layers num_experts num_local_experts moe_num_experts n_routed_experts "
    "mamba_d_state mamba_dt_rank mamba_n_heads mamba_num_heads ssm_state_size "
    "state_size time_step_rank linear_num_value_heads laurel_rank rotary_dim "
    "hidden_size_per_layer_input qk_nope_head_dim qk_rope_head_dim",
    2: "decoder_layers encoder_layers num_key_value_heads num_experts_per_tok moe_k "
    "moe_topk mamba_expand linear_num_key_heads altup_num_inputs type_vocab_size "
    "num_global_key_value_heads",
    8: "attention_head_size attention_window_size chunk_size d_head d_kv "
    "global_head_dim head_dim kv_channels kv_lora_rank linear_key_head_dim "
    "linear_value_head_dim local_attention_window mamba_chunk_size q_lora_rank "
    "qk_head_dim sliding_window v_head_dim window_size",
    1: "first_k_dense_replace mamba_n_groups n_group n_groups n_shared_experts "
    "topk_group",
    16: "expert_ffn_hidden_size mamba_d_head mamba_head_dim moe_intermediate_size "
    "shared_expert_intermediate_size",
    64: "context_length max_position_embeddings max_seq_len max_sequence_length n_ctx "
    "n_positions",
    61: "encoder_hash_byte_group_vocab unpadded_vocab_size vocab_size "
    "vocab_size_per_layer_input",
}
_SIZES = {name: size for size, names in _SMALL.items() for name in names.split()}
_MAY_BE_NONE = {"num_key_value_heads", "sliding_window"}
_IDS = {"bos": 1, "eos": 2, "pad": 0}

_MLA = {"num_key_value_heads": 4}
_SPARSE_MLA = {"num_key_value_heads": 4, "head_dim": 4}
_DOUBLE = {  # attention over the states and the first layer's, side by side
    "attention_head_dim": 16,
    "attention_hidden_size": 64,
    "num_key_value_heads": 4,
}
_HALF_LINEAR = {"layer_types": ["linear_attention", "full_attention"] * 2}
_OWN: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        "deepseek_v2 dots3_note_text glm4_moe_lite minicpm3 sarvam_mla".split(), _MLA
    ),
    **dict.fromkeys(
        "axk1 axk2 deepseek_v3 deepseek_v32 glm_moe_dsa longcat_flash youtu".split(),
        _SPARSE_MLA,
    ),
    **dict.fromkeys(("bailing_hybrid", "kimi_linear", "minimax"), _HALF_LINEAR),
    "bamba": {"attn_layer_indices": [1, 3]},
    "cpmant": {"prompt_types": 4, "prompt_length": 4, "segment_types": 4},
    "falcon_h1": {"mamba_d_ssm": 64},
    "gemma3n_text": {
        "num_kv_shared_layers": 0,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "activation_sparsity_pattern": [0.0] * 4,
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "jamba": {"attn_layer_offset": 1, "attn_layer_period": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"head_dim": 16},
    "nemotron": {"num_key_value_heads": 4},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 8]},
    "roc_bert": {"pronunciation_vocab_size": 20, "shape_vocab_size": 20},
    "xlstm": {
        "hidden_size": 64,
        "embedding_dim": 64,
        "qk_dim_factor": 1.0,
        "v_dim_factor": 1.0,
    },
    "xmod": {"default_language": "en_XX", "languages": ["en_XX"]},
    "zamba": {**_DOUBLE, "layers_block_type": ["mamba", "hybrid"] * 2},
    "zamba2": {
        **_DOUBLE,
        "layer_types": ["mamba", "hybrid"] * 2,
        "n_mamba_heads": 4,
        "mamba_headdim": 16,
    },
    "zaya": {"num_experts_per_tok": 1},
}
_MOST_WEIGHTS = 10_000_000


def build(model_type: str) -> PreTrainedModel:
    """Return a random model, each weight matrix far from flat.

    Raises:
        Exception: of any kind where these sizes do not fit the architecture.
    """
    config = _shrunk(CONFIG_MAPPING[model_type])
    with quiet(), torch.random.fork_rng():
        with torch.device("meta"):
            outline = AutoModelForCausalLM.from_config(config)
        count = sum(weight.numel() for weight in outline.parameters())
        if count > _MOST_WEIGHTS:
            raise ValueError(f"{count:,} weights are left")
        torch.manual_seed(0)
        network = AutoModelForCausalLM.from_config(config).float().eval()
        for weight in network.parameters():
            if weight.ndim > 1 and weight.is_floating_point():
                torch.nn.init.normal_(weight, 0, 0.2)
    return network


def _shrunk(kind: type[PreTrainedConfig]) -> PreTrainedConfig:
    """Return a configuration with every size that is known by name made small."""
    usual = kind()
    names, aliases = usual.to_dict(), usual.attribute_map
    small = {}
    for name, size in _SIZES.items():
        own = names.get(aliases.get(name, name), "absent")
        if isinstance(own, int) or (own is None and name not in _MAY_BE_NONE):
            small[aliases.get(name, name)] = size
    for name, value in names.items():
        if name.endswith("_token_id") and value is not None:
            token_id = _IDS.get(name[:3], 3)
            small[name] = [token_id] if isinstance(value, list) else token_id
        if name.startswith("forced_"):
            small[name] = None
    both = kind.model_type in {*MODEL_FOR_MASKED_LM_MAPPING_NAMES, "bert-generation"}
    if both and names.get("is_decoder") is False:
        small["is_decoder"] = True
    for name in kind.sub_configs:
        own = getattr(usual, name, None)
        if own is not None:
            small[name] = _shrunk(type(own)).to_dict()
    return kind(**{**small, **_OWN.get(kind.model_type, {})})
