"""Tiny random Hugging Face models and tokenizers, made where a test needs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' "
    "+ message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEXT = [
    "the sun is warm and the sky is blue",
    "hello world, hello 你好 👋",
    "a b c",
] * 3


def byte_level(**options: object) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE with three special tokens and a chat template."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=300,
        special_tokens=SPECIALS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(TEXT, trainer)
    defaults = {
        "bos_token": SPECIALS[0],
        "eos_token": SPECIALS[2],
        "pad_token": SPECIALS[2],
        "chat_template": CHATML,
    }
    return PreTrainedTokenizerFast(tokenizer_object=backend, **{**defaults, **options})


def sentence_piece() -> PreTrainedTokenizerFast:
    """Return a SentencePiece-like BPE with byte fallback, as Llama 2 has."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", *"helowrd", "he", "ll", "hell", "hello", "▁hello"]
    pieces += ["wo", "rl", "worl", "world", "▁world"]
    merges = "h e,l l,he ll,hell o,▁ hello,w o,r l,wo rl,worl d,▁ world"
    backend = Tokenizer(
        models.BPE(
            vocab={piece: index for index, piece in enumerate(pieces)},
            merges=[tuple(merge.split(" ")) for merge in merges.split(",")],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def word_piece() -> PreTrainedTokenizerFast:
    """Return a WordPiece tokenizer over a few words."""
    pieces = ["[UNK]", "warm", "sun", "##ny", "##s"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocab=vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.decoder = decoders.WordPiece(prefix="##")
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")


def llama(vocab_size: int = 64, **options: object) -> LlamaForCausalLM:
    """Return a random Llama of two layers whose distributions are far from flat."""
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "initializer_range": 0.4,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    config = LlamaConfig(vocab_size=vocab_size, **{**sizes, **options})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


def save(directory: Path, **options: object) -> Path:
    """Write a tiny Llama with the byte-level tokenizer, and return the directory."""
    tokenizer = byte_level()
    llama(vocab_size=len(tokenizer), **options).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def write_gguf(path: Path, **metadata: object) -> LlamaForCausalLM:
    """Write a tiny Llama with the byte-level tokenizer as GGUF, and return it.

    Args:
        path: where to.
        metadata: further keys of the tokenizer, or `architecture` or `rope`.
    """
    from gguf import GGUFWriter

    words, rope = byte_level(), metadata.pop("rope", {})
    theta = {"rope_type": "default", "rope_theta": 10000.0}
    network = llama(len(words), rope_parameters={**theta, **rope})
    config = network.config
    writer = GGUFWriter(path, str(metadata.pop("architecture", "llama")))
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    _write_vocabulary(writer, words)
    for key, value in metadata.items():
        writer.add_uint32(f"tokenizer.ggml.{key}", value)
    if rope:  # llama.cpp keeps how much slower each frequency turns
        plain = llama().model.rotary_emb.inv_freq
        factors = plain / network.model.rotary_emb.inv_freq
        writer.add_tensor("rope_freqs.weight", factors.numpy())
    for name, weight in network.state_dict().items():
        writer.add_tensor(*_in_gguf(name, weight, config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return network


def _write_vocabulary(writer: Any, words: PreTrainedTokenizerFast) -> None:
    state = json.loads(words.backend_tokenizer.to_str())["model"]
    tokens = sorted(state["vocab"], key=state["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIALS else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in state["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)


_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def _in_gguf(name: str, weight: torch.Tensor, config: LlamaConfig) -> tuple[str, Any]:
    """Return a weight as llama.cpp names it and orders its rotary dimensions."""
    heads = {
        "q_proj": config.num_attention_heads,
        "k_proj": config.num_key_value_heads,
    }
    for part, count in heads.items():
        if part in name:  # halves side by side become pairs
            rows, columns = weight.shape
            pairs = weight.view(count, 2, rows // count // 2, columns)
            weight = pairs.transpose(1, 2).reshape(rows, columns)
    for ours, theirs in _GGUF_NAMES.items():
        name = name.replace(ours, theirs)
    return name, weight.contiguous().numpy()
