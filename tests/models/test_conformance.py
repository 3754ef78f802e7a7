"""The transformers dialect against the installed library, to the last bit.

5,400 random rows under random parameters go through the library's own processors and
through ours, and 300 whole generations through `model.generate` and through ours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GenerationConfig
from transformers.generation import logits_process as library

from sampling_lab import SamplingParams, generate
from sampling_lab.errors import LogitsError
from sampling_lab.models.huggingface.model import HuggingFaceModel
from sampling_lab.sampling.chain import Chain
from tests import tiny

INF = float("inf")
SIZES = {  # vocabulary: rows
    2: 600,
    3: 600,
    7: 1000,
    40: 1600,
    300: 1200,
    3000: 330,
    50_304: 60,
    163_840: 10,
}
PROMPT = 3  # tokens of what was said before a row
STOPS = [1]
TOKENS = 8  # of each whole generation
KINDS = ("plain", "ties", "near ties", "bf16", "holes", "steep", "flat")


def draw_logits(dice: random.Random, size: int) -> Tensor:
    """Return one row (V,) of a random kind."""
    generator = torch.Generator().manual_seed(dice.getrandbits(40))
    logits = torch.randn(size, generator=generator) * dice.choice([0.5, 2.0, 5.0])
    kind = dice.choice(KINDS)
    if kind == "ties":
        logits = (logits * 2).round() / 2
    elif kind == "near ties":  # apart by the last bits only
        logits = logits.round() + torch.randn(size, generator=generator) * 1e-6
    elif kind == "bf16":
        logits = logits.bfloat16().float()
    elif kind == "holes":
        gone = torch.rand(size, generator=generator) < dice.choice([0.2, 0.9])
        gone[dice.randrange(size)] = False
        logits = logits.masked_fill(gone, -INF)
    elif kind == "steep":
        logits = logits * 20
    elif kind == "flat":
        logits = logits * 1e-4
    return logits


def draw_settings(dice: random.Random, size: int) -> dict[str, Any]:
    """Return random parameters, each on about half of the time."""
    choices = {
        "temperature": [0.05, 0.5, 0.7, 1.0, 1.3, 3.0, dice.uniform(0.1, 2)],
        "top_k": [1, 2, 5, 50, size, size + 1, dice.randint(1, size)],
        "top_p": [0.1, 0.5, 0.8, 0.9, 0.95, 0.999, dice.uniform(0.01, 0.99)],
        "min_p": [0.01, 0.05, 0.1, 0.5, 1.0, dice.uniform(0.001, 0.999)],
        "typical_p": [0.1, 0.5, 0.9, 0.95, dice.uniform(0.01, 0.99)],
        "repetition_penalty": [1.1, 1.3, 2.0, 0.8, dice.uniform(0.5, 2)],
        "no_repeat_ngram_size": [2, 3, 4],
        "logit_bias": [{dice.randrange(size): dice.uniform(-4, 4) for _ in range(4)}],
        "banned_token_ids": [[dice.randrange(size)]],
    }
    settings = {
        name: dice.choice(values)
        for name, values in choices.items()
        if dice.random() < (0.5 if name != "banned_token_ids" or size > 3 else 0.0)
    }
    first, last = dice.randrange(size), dice.randrange(size)
    rare = {
        "sequence_bias": [{(first, last): 2.5, (1 - last % 2,): -1.0}],
        "min_new_tokens": [1, 2, 6],
        "length_decay": [1.01, 1.5, 0.9],
        "top_h": [0.2, 0.5, 0.9, dice.uniform(0.01, 1)],
        "epsilon_cutoff": [0.0003, 0.02, 0.4, dice.uniform(0.0, 0.1)],
        "eta_cutoff": [0.0003, 0.004, 0.3, dice.uniform(0.0, 0.1)],
    }
    settings |= {n: dice.choice(v) for n, v in rare.items() if dice.random() < 0.15}
    if "length_decay" in settings:
        settings["length_decay_start"] = dice.randrange(4)
    if "logit_bias" in settings or size < 3:  # the library adds up both first
        settings.pop("sequence_bias", None)
    return settings


def library_processors(settings: dict[str, Any]) -> library.LogitsProcessorList:
    """Return what `generate` builds for these settings, in its order."""
    makers = {
        "logit_bias": lambda bias: library.SequenceBiasLogitsProcessor(
            {(token_id,): value for token_id, value in bias.items()}
        ),
        "sequence_bias": library.SequenceBiasLogitsProcessor,
        "repetition_penalty": library.RepetitionPenaltyLogitsProcessor,
        "no_repeat_ngram_size": library.NoRepeatNGramLogitsProcessor,
        "min_new_tokens": lambda n: library.MinNewTokensLengthLogitsProcessor(
            PROMPT, n, STOPS
        ),
        "length_decay": lambda factor: library.ExponentialDecayLengthPenalty(
            (settings["length_decay_start"], factor), STOPS, PROMPT
        ),
        "banned_token_ids": library.SuppressTokensLogitsProcessor,
        "temperature": library.TemperatureLogitsWarper,
        "top_h": library.TopHLogitsWarper,
        "top_k": library.TopKLogitsWarper,
        "top_p": library.TopPLogitsWarper,
        "min_p": library.MinPLogitsWarper,
        "typical_p": library.TypicalLogitsWarper,
        "epsilon_cutoff": library.EpsilonLogitsWarper,
        "eta_cutoff": library.EtaLogitsWarper,
    }
    return library.LogitsProcessorList(
        make(settings[name]) for name, make in makers.items() if name in settings
    )


def check_rows(size: int, count: int, seed: int = 0) -> None:
    """Compare rows: final logits, kept sets and probabilities must be identical."""
    dice = random.Random(f"{size}/{seed}")
    for _ in range(count):
        logits, settings = draw_logits(dice, size), draw_settings(dice, size)
        few = min(size, dice.choice([3, size]))  # few kinds of token repeat n-grams
        said = [dice.randrange(few) for _ in range(dice.randrange(1, 12))]
        if "no_repeat_ngram_size" in settings and size <= 3:
            del settings["no_repeat_ngram_size"]
        params = SamplingParams(**settings, dialect="transformers")
        chain = params.chain(said, PROMPT, STOPS)
        processors = library_processors(settings)
        try:
            theirs = processors(torch.tensor([said]), logits[None])[0]
        except ValueError:  # nothing is left, of which it takes no entropy
            with pytest.raises(LogitsError):
                chain(logits)
            continue
        if not (theirs > -INF).any():  # where nothing is left, the library goes on
            continue
        assert_same(chain, logits, theirs, (settings, said))


def assert_same(chain: Chain, logits: Tensor, theirs: Tensor, case: object) -> None:
    """Fail unless ours are the library's logits and probabilities, bit by bit."""
    ours = chain(logits)
    assert torch.equal(ours, theirs), case
    assert torch.equal(chain.probs(logits), theirs[None].softmax(-1)[0]), case


@pytest.mark.parametrize("size", SIZES)
def test_rows_are_the_librarys(size):
    check_rows(size, SIZES[size])


def test_there_are_enough_rows():
    assert sum(SIZES.values()) >= 5000


def test_a_batch_of_rows_is_the_librarys():
    dice = random.Random(5)
    for _ in range(200):
        logits = torch.stack([draw_logits(dice, 60) for _ in range(5)])
        settings = draw_settings(dice, 60)
        for name in ("no_repeat_ngram_size", "min_new_tokens", "length_decay"):
            settings.pop(name, None)
        said = [dice.randrange(60) for _ in range(6)]
        theirs = library_processors(settings)(torch.tensor([said] * 5), logits)
        ours = SamplingParams(**settings).chain(said)(logits)
        assert torch.equal(ours, theirs), settings


# Whole generations


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Waiting for a second thread costs more than it gives on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> HuggingFaceModel:
    network = tiny.llama(vocab_size=97, hidden_size=16, intermediate_size=24)
    network.generation_config = GenerationConfig()
    return HuggingFaceModel.wrap(network)


def library_tokens(
    model: HuggingFaceModel, prompt: list[int], settings: dict[str, Any], seed: int
) -> list[int]:
    """Return what `model.generate` draws after `torch.manual_seed`."""
    options = {"top_k": 0, **settings}
    stops = stop_ids(settings)
    if "length_decay" in options:
        decay = options.pop("length_decay_start"), options.pop("length_decay")
        options["exponential_decay_length_penalty"] = decay
    if "sequence_bias" in options:
        biases = options["sequence_bias"].items()
        options["sequence_bias"] = [[list(ids), bias] for ids, bias in biases]
    if "logit_bias" in options:
        biases = options.pop("logit_bias").items()
        options["sequence_bias"] = [[[token_id], bias] for token_id, bias in biases]
    if "banned_token_ids" in options:
        options["suppress_tokens"] = options.pop("banned_token_ids")
    input_ids = torch.tensor([prompt])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        output = model.network.generate(
            input_ids,
            attention_mask=torch.ones_like(input_ids),
            do_sample=True,
            max_new_tokens=TOKENS,
            eos_token_id=stops or None,
            pad_token_id=0,
            **options,
        )
    return output[0, len(prompt) :].tolist()


def stop_ids(settings: dict[str, Any]) -> list[int]:
    """Return the tokens that end a text, where a setting is about its length."""
    return STOPS if {"min_new_tokens", "length_decay"} & settings.keys() else []


@pytest.mark.parametrize("part", range(10))
def test_whole_generations_are_the_librarys(model, part):
    dice = random.Random(part)
    for _ in range(30):
        settings = draw_settings(dice, 97)
        prompt = [dice.randrange(97) for _ in range(dice.randrange(1, 8))]
        seed = dice.getrandbits(31)
        expected = library_tokens(model, prompt, settings, seed)
        params = SamplingParams(**settings, seed=seed, dialect="transformers")
        stops = stop_ids(settings)
        ours = generate(
            model, prompt, params, max_new_tokens=TOKENS, stop_token_ids=stops
        )
        found = [step.token_id for step in ours.all_steps]
        assert found == expected, (settings, prompt, seed)
