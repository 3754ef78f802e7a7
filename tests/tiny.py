"""Tiny random Hugging Face models and tokenizers, made where a test needs them."""

from __future__ import annotations

from pathlib import Path

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
