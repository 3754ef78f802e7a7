"""Logits, settings and the draw itself, to test counterfactuals against."""

import torch

from sampling_lab.sampling.history import NO_HISTORY

INF = float("inf")
TOY = torch.tensor([2.0, 1.0, 0.2, -1.0])
DIALECTS = ["xslm", "scratch_llm", "transformers", "llama.cpp"]
TRUNCATIONS = [
    {},
    {"top_k": 3},
    {"top_p": 0.9},
    {"min_p": 0.1},
    {"top_k": 20, "top_p": 0.8, "min_p": 0.05},
]


def random_logits(seed, size=40, kind=0):
    """Random logits; kind 1 has ties, kind 2 is bf16, kind 3 has holes."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(size, generator=generator) * 3
    if kind == 1:
        logits = logits.round()
    if kind == 2:
        logits = logits.bfloat16()
    if kind == 3:
        logits[torch.rand(size, generator=generator) < 0.5] = -INF
        logits[0] = 0.0
    return logits


def really_drawn(logits, params, temperature, step=0, said=NO_HISTORY):
    """Return what the draw itself chooses as the token after `step` others."""
    params = params.replace(temperature=temperature)
    final, draw = params.chain(*said)(logits), params.draw()
    return [draw(final).token_id for _ in range(step + 1)][-1]
