"""The same tokens as `transformers.generate`, for any parameters and any seed."""

import json
import random

import pytest
import torch

from sampling_lab import SamplingParams, generate, load
from sampling_lab.models.huggingface.model import HuggingFaceModel
from tests import tiny

PROMPTS = [
    "The sky is blue because",
    "Once upon a time",
    "def add(a, b):\n",
    "1, 2, 3,",
    "Q: What is the sun?\nA:",
]


def drawn(source, vocab_size):
    """Return random parameters, each one off about a third of the time."""
    return SamplingParams(
        temperature=source.choice([0.3, 0.7, 1.0, 1.0, 1.7, 5.0]),
        top_k=source.choice([None, 1, 2, 5, 50, vocab_size, vocab_size + 9]),
        top_p=source.choice([None, None, 0.05, 0.5, 0.9, 0.99, 1.0]),
        min_p=source.choice([None, None, 0.01, 0.1, 0.5]),
        seed=source.randrange(2**32),
    )


def theirs(model, prompt_ids, params, count):
    """Return the new ids that the library itself draws, the stop token among them."""
    input_ids = torch.tensor([prompt_ids])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(params.seed)
        output = model.network.generate(
            input_ids,
            attention_mask=torch.ones_like(input_ids),
            do_sample=True,
            temperature=params.temperature,
            top_k=params.top_k or 0,
            top_p=1.0 if params.top_p is None else params.top_p,
            min_p=params.min_p,
            typical_p=1.0,
            repetition_penalty=1.0,
            max_new_tokens=count,
            eos_token_id=list(model.card.stop_token_ids),
            pad_token_id=model.card.stop_token_ids[0],
        )
    return output[0, len(prompt_ids) :].tolist()


def ours(model, prompt_ids, params, count):
    result = generate(model, prompt_ids, params, max_new_tokens=count)
    stop = [result.stop_step.token_id] if result.stop_step else []
    return [*result.token_ids, *stop]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Waiting for a second thread costs more than it gives on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def small():
    return HuggingFaceModel.wrap(tiny.llama())


@pytest.fixture(scope="module")
def smollm2(root):
    directory = root / "checkpoints" / "smollm2-135m-instruct"
    if not (directory / "config.json").is_file():
        pytest.skip("SmolLM2 is not there: run `sampling-lab fetch smollm2`")
    return load(directory)


@pytest.mark.parametrize("round", range(20))
def test_a_tiny_model_draws_the_same_tokens(small, round):
    source = random.Random(round)
    stopped = 0
    for _ in range(11):
        params = drawn(source, 64)
        length = source.randint(1, 12)
        prompt = [source.randrange(64) for _ in range(length)]
        expected = theirs(small, prompt, params, 8)
        assert ours(small, prompt, params, 8) == expected, params
        stopped += 2 in expected
    assert round or stopped  # the end token is met too


@pytest.mark.parametrize("round", range(8))
def test_smollm2_draws_the_same_tokens(smollm2, round):
    source = random.Random(100 + round)
    prompt = smollm2.prompt_ids(PROMPTS[round % len(PROMPTS)])
    for _ in range(5):
        params = drawn(source, 49_152)
        expected = theirs(smollm2, prompt, params, 5)
        assert ours(smollm2, prompt, params, 5) == expected, params


def test_smollm2_is_what_its_file_says(smollm2, capfd):
    card = smollm2.card
    assert (card.parameters, card.vocab_size, card.context_length) == (
        134_515_008,
        49_152,
        8192,
    )
    assert (card.dtype, card.stop_token_ids, card.bos_token_id) == ("float32", (2,), 1)
    assert smollm2.prompt_ids("2 + 22") == [34, 1232, 216, 34, 34]
    turns = [{"role": "user", "content": "What is the capital of France?"}]
    reply = generate(smollm2, turns, SamplingParams(temperature=0), max_new_tokens=12)
    assert reply.text == "The capital of France is Paris."
    assert (reply.finish_reason, reply.stop_step.token_text) == ("stop", "<|im_end|>")
    assert capfd.readouterr() == ("", "")


def test_greedy_is_greedy(small):
    prompt = [5, 6, 7]
    expected = small.network.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, 3, dtype=torch.long),
        do_sample=False,
        max_new_tokens=10,
        eos_token_id=2,
        pad_token_id=2,
    )
    found = ours(small, prompt, SamplingParams(temperature=0), 10)
    assert found == expected[0, 3:].tolist()


def test_author_settings_are_shown_and_never_applied(tmp_path):
    directory = tiny.save(tmp_path / "model")
    authors = {"do_sample": True, "top_k": 2, "temperature": 0.01, "eos_token_id": 2}
    (directory / "generation_config.json").write_text(json.dumps(authors))
    model = load(directory)
    assert model.card.defaults == {"do_sample": True, "top_k": 2, "temperature": 0.01}
    hot = SamplingParams(temperature=50.0, seed=1)
    result = generate(model, [5], hot, max_new_tokens=30, stop_token_ids=())
    assert max(step.rank for step in result.steps) > 50
    greedy = SamplingParams(temperature=0)
    result = generate(model, [5], greedy, max_new_tokens=30, stop_token_ids=())
    assert all(step.rank == 1 for step in result.steps)


def test_global_random_state_is_not_touched(small):
    before = torch.get_rng_state()
    generate(small, [5], SamplingParams(seed=4), max_new_tokens=5)
    assert torch.equal(torch.get_rng_state(), before)
