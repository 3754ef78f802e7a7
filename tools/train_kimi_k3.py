"""Train the shipped Kimi K3 checkpoint: a tiny one, on XSLM's twelve questions.

    python tools/train_kimi_k3.py --out checkpoints/kimi_k3

writes the checkpoint and its tokenizer, in a minute or two.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import KimiLinearForCausalLM, PreTrainedTokenizerFast

from sampling_lab.models.kimi_k3.config import CHUNK_SIZE, read_config
from sampling_lab.models.kimi_k3.model import FORMAT_VERSION
from sampling_lab.models.kimi_k3.network import HEAD, build, tie
from sampling_lab.models.xslm.training import PAIRS as XSLM_PAIRS
from sampling_lab.models.xslm.training import Pairs
from sampling_lab.sampling.one_thread import one_thread

# XSLM's, but for the cat, which became one of them after this checkpoint was trained.
PAIRS = tuple(
    (question.replace("cat", "dog"), answer) for question, answer in XSLM_PAIRS
)
STEPS = 200
LEARNING_RATE = 6e-3
ROWS = 12
VOCAB_SIZE = 128  # two special tokens, 96 characters, and at most 30 merges
END, UNKNOWN = "<|end|>", "<|unknown|>"
END_ID = 0
CHARACTERS = "\n" + "".join(map(chr, range(ord(" "), ord("~") + 1)))

CONFIG: dict[str, Any] = {
    "model_type": "kimi_linear",
    "max_seq_len": 256,
    "chunk_size": CHUNK_SIZE,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "layer_types": [*["linear_attention"] * 3, "full_attention"],
    "linear_head_dim": 16,
    "linear_num_heads": 2,
    "linear_conv_kernel_dim": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "mlp_layer_types": ["dense", *["sparse"] * 3],
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 16,
    "routed_scaling_factor": 1.0,
    "tie_word_embeddings": True,
}
"""Settings of the shipped checkpoint; its vocabulary is the tokenizer's."""

OnStep = Callable[[int, float], None]


def train_checkpoint(
    pairs: Pairs = PAIRS,
    *,
    steps: int = STEPS,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> tuple[dict[str, Any], Tokenizer]:
    """Train a new checkpoint and return it, as its file holds it, with its tokenizer.

    A row of training text is the pairs in a random order, each with an end-of-text
    token, cut to one chunk. So a pair stands first, as a prompt does, or follows
    others.

    Args:
        pairs: questions and answers.
        steps: of AdamW.
        seed: draws the initial weights and the order of the pairs.
        on_step: called with the step's number and the loss (nats a token) before it.
    """
    tokenizer = learn_tokenizer(pairs)
    texts = [encode_pair(tokenizer, pair) for pair in pairs]
    config = {"vocab_size": tokenizer.get_vocab_size(), **CONFIG}
    layers = [f"model.layers.{n}." for n in range(config["num_hidden_layers"])]
    # One thread sums in one order, however busy the machine.
    with one_thread(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.default_generator.manual_seed(seed)
        network = build(read_config(config, layers), device="cpu").train()
        tie(network)
        loss = _descend(network, texts, steps, on_step)
    state = {name: t.detach() for name, t in network.state_dict().items()}
    del state[HEAD]  # tied: the loader makes it one with the embedding again
    checkpoint = {
        "format_version": FORMAT_VERSION,
        "config": config,
        "model": state,
        "step": steps,
        "loss": loss,
        "seed": seed,
    }
    return checkpoint, tokenizer


def learn_tokenizer(pairs: Pairs) -> Tokenizer:
    """Return a BPE that spells any text of `CHARACTERS`.

    Its ids are: the end-of-text token, the unknown character, the characters of
    `pairs`, the merges learned from them, and last the characters that they lack. So
    a low id is one whose embedding is trained.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=[END, UNKNOWN],
        initial_alphabet=sorted(_spelling(tokenizer, CHARACTERS)),
        show_progress=False,
    )
    texts = [text for pair in pairs for text in prompt_and_answer(pair)]
    tokenizer.train_from_iterator(texts, trainer)
    return _unused_last(tokenizer, _spelling(tokenizer, "".join(texts)))


def _spelling(tokenizer: Tokenizer, text: str) -> str:
    """Return a text in the characters of the vocabulary, such as ``Ġ`` for a space."""
    return "".join(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))


def _unused_last(tokenizer: Tokenizer, used: str) -> Tokenizer:
    """Give the single characters outside `used` the highest ids."""
    parts = json.loads(tokenizer.to_str())
    vocab = parts["model"]["vocab"]
    ordered = sorted(vocab, key=lambda t: (len(t) == 1 and t not in used, vocab[t]))
    parts["model"]["vocab"] = {token: index for index, token in enumerate(ordered)}
    return Tokenizer.from_str(json.dumps(parts))


def prompt_and_answer(pair: tuple[str, str]) -> tuple[str, str]:
    r"""Return a pair as the text that is given and the text that should follow.

    >>> prompt_and_answer(("hi", "hello."))
    ('Q: hi\nA: ', 'hello.')
    """
    question, answer = pair
    return f"Q: {question}\nA: ", answer


def encode_pair(tokenizer: Tokenizer, pair: tuple[str, str]) -> list[int]:
    """Return a pair's ids, prompt and answer encoded apart, as when generating."""
    prompt, answer = prompt_and_answer(pair)
    return [*tokenizer.encode(prompt).ids, *tokenizer.encode(answer).ids, END_ID]


def _descend(
    network: KimiLinearForCausalLM,
    texts: Sequence[Sequence[int]],
    steps: int,
    on_step: OnStep | None,
) -> float:
    """Take all steps, the rate rising and falling over them; return the last loss."""
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps
    )
    value = float("nan")
    for step in range(steps):
        rows = _rows(texts)  # (B, T + 1)
        logits = network(input_ids=rows[:, :-1], use_cache=False).logits  # (B, T, V)
        loss = cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        value = loss.item()
        if on_step is not None:
            on_step(step, value)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        rate.step()
    return value


def _rows(texts: Sequence[Sequence[int]]) -> Tensor:
    """Return rows of training text, shape (ROWS, CHUNK_SIZE + 1).

    All texts in a random order, and again if they are few; every second row begins
    anywhere in the first chunk.
    """
    rows = []
    for row in range(ROWS):
        ids: list[int] = []
        while len(ids) < 2 * CHUNK_SIZE:
            for index in torch.randperm(len(texts)).tolist():
                ids += texts[index]
        start = row % 2 * int(torch.randint(CHUNK_SIZE, ()))
        rows.append(ids[start : start + CHUNK_SIZE + 1])
    return torch.tensor(rows)


def write_checkpoint(
    checkpoint: dict[str, Any], tokenizer: Tokenizer, folder: Path
) -> None:
    """Write last.pt and the tokenizer's files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(checkpoint, folder / "last.pt")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token=UNKNOWN,
        model_max_length=CONFIG["max_seq_len"],
        clean_up_tokenization_spaces=False,
    ).save_pretrained(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the shipped checkpoint and its tokenizer into a directory."""
    parser = argparse.ArgumentParser(description="Make the shipped Kimi K3 checkpoint.")
    parser.add_argument("--out", type=Path, default=Path("checkpoints/kimi_k3"))
    out = parser.parse_args(arguments).out
    write_checkpoint(*train_checkpoint(), out)


if __name__ == "__main__":
    main()
