"""The time of a step without its forward pass, compared with the library's.

Ours is everything that a recorded step does: the chain with its ledger, the draw, and
the recorded numbers (probabilities, rank, entropy, kept count). Theirs is the library's
processors, a softmax and `torch.multinomial`, which record nothing.

Times are CPU times of one thread, so that they are the same on a busy machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import torch
from torch import Tensor
from transformers.generation import logits_process as library

from sampling_lab import SamplingParams

SIZES = {49_152: 2.5e-3, 163_840: 8e-3}
"""Vocabulary size to the most seconds that a step may take."""

SETTINGS = {
    "nothing": {},
    "temperature, top-k, top-p, min-p": {
        "temperature": 0.8,
        "top_k": 50,
        "top_p": 0.9,
        "min_p": 0.05,
    },
    "temperature, top-p": {"temperature": 0.8, "top_p": 0.9},
    "temperature, top-p, typical-p": {
        "temperature": 0.8,
        "top_p": 0.9,
        "typical_p": 0.9,
    },
}
MAKERS = {
    "temperature": library.TemperatureLogitsWarper,
    "top_k": library.TopKLogitsWarper,
    "top_p": library.TopPLogitsWarper,
    "min_p": library.MinPLogitsWarper,
    "typical_p": library.TypicalLogitsWarper,
}


def run(rounds: int = 31) -> list[tuple[str, float, float, float]]:
    """Return for each case its name, our seconds, the library's, and the goal."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(rounds)
    finally:
        torch.set_num_threads(threads)


def _run(rounds: int) -> list[tuple[str, float, float, float]]:
    return [
        (f"a step over {size:,} logits: {name}", *medians(size, settings, rounds), goal)
        for size, goal in SIZES.items()
        for name, settings in SETTINGS.items()
    ]


def medians(size: int, settings: dict[str, float], rounds: int) -> tuple[float, float]:
    """Return the median seconds of both, timed alternately on the same rows."""
    generator = torch.Generator().manual_seed(size)
    rows = [torch.randn(size, generator=generator) * 3 for _ in range(4)]
    actions = ours(settings, rows), theirs(settings, rows)
    times: list[list[float]] = [[], []]
    for turn in range(rounds + 2):
        for taken, action in zip(times, actions, strict=True):
            start = time.thread_time()
            next(action)
            if turn > 1:
                taken.append(time.thread_time() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def ours(settings: dict[str, float], rows: list[Tensor]) -> Iterator[object]:
    """Yield the numbers of a recorded step, row after row."""
    params = SamplingParams(**settings, seed=1)
    chain, draw = params.chain(), params.draw()
    while True:
        for row in rows:
            ledger = chain.ledger(row)
            token_id = draw(ledger.final.logits).token_id
            yield (
                ledger.raw_probs[token_id].item(),
                ledger.final_probs[token_id].item(),
                ledger.rank(token_id),
                ledger.entropy,
                ledger.kept_count,
            )


def theirs(settings: dict[str, float], rows: list[Tensor]) -> Iterator[object]:
    """Yield the token that `generate` draws, row after row."""
    processors = [MAKERS[name](value) for name, value in settings.items()]
    generator = torch.Generator().manual_seed(1)
    while True:
        for row in rows:
            scores = row[None]
            for process in processors:
                scores = process(None, scores)
            probs = scores.softmax(-1)
            yield int(torch.multinomial(probs, 1, generator=generator))
