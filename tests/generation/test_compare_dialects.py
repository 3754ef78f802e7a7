"""Dialects side by side: kept sets, distances, and the first token that differs."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab import SamplingParams, generate
from sampling_lab.generation.compare_dialects import compare_dialects, run_dialects
from sampling_lab.sampling.dialects import DIALECTS
from tests.fakes import TableModel

TOY = torch.tensor([2.0, 1.0, 0.2, -1.0])
COLD = SamplingParams(temperature=0.5, top_p=0.8)


def test_kept_sets_and_groups():
    compared = compare_dialects(TOY, COLD)
    assert list(compared.kept) == list(DIALECTS)
    for name, kept in compared.kept.items():  # two put temperature last
        assert kept == ((0, 1) if name in ("llama.cpp", "mlx") else (0,))
    assert compared.groups == (
        ("xslm", "scratch_llm", "transformers", "vllm", "ollama"),
        ("llama.cpp", "mlx"),
    )


def test_final_probabilities_are_those_of_each_chain():
    compared = compare_dialects(TOY, COLD, ["transformers", "llama.cpp"])
    for name, ledger in compared.ledgers.items():
        probs = COLD.replace(dialect=name).chain().probs(TOY)
        assert torch.equal(ledger.final_probs, probs)


def test_distances_by_hand():
    (distance,) = compare_dialects(TOY, COLD, ["transformers", "mlx"]).distances
    p = math.exp(4) / (math.exp(4) + math.exp(2))  # .881 against 1
    assert (distance.first, distance.second) == ("transformers", "mlx")
    assert distance.total_variation == pytest.approx(1 - p, abs=1e-6)
    assert distance.only_first == ()
    assert distance.only_second == (1,)

    def entropy(*probs):
        return -sum(x * math.log2(x) for x in probs)

    middle = entropy((1 + p) / 2, (1 - p) / 2)
    divergence = middle - entropy(p, 1 - p) / 2
    assert distance.jensen_shannon == pytest.approx(math.sqrt(divergence), abs=1e-5)


@given(
    st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=9),
    st.sampled_from([0.4, 1.0, 2.0]),
    st.sampled_from([0.3, 0.7, 0.95]),
    st.sampled_from([1, 2, 5]),
)
def test_distances_are_distances(row, temperature, top_p, top_k):
    params = SamplingParams(temperature, top_k=top_k, top_p=top_p, min_p=0.05)
    distances = compare_dialects(torch.tensor(row), params).distances
    assert len(distances) == 21
    for distance in distances:
        assert -1e-9 <= distance.total_variation <= 1 + 1e-6
        assert -1e-9 <= distance.jensen_shannon <= 1 + 1e-6
        # Lin 1991: the divergence is at most the total variation
        assert distance.jensen_shannon**2 <= distance.total_variation + 1e-6


def test_the_same_rules_have_no_distance():
    for distance in compare_dialects(TOY, SamplingParams(top_k=2)).distances:
        assert distance.total_variation < 1e-7
        assert distance.jensen_shannon < 1e-3


def test_the_table_marks_what_is_not_checked():
    rows = compare_dialects(TOY, COLD).table()
    assert [row["kept"] for row in rows] == [1, 1, 1, 2, 1, 2, 1]
    assert rows[2]["status"] == "checked against the engine"
    assert rows[3]["status"] == "not checked against the engine"


def test_penalties_see_the_history_as_each_engine_does():
    params = SamplingParams(presence_penalty=5.0)
    compared = compare_dialects(TOY, params, token_ids=(0, 1), prompt_length=1)
    first = {
        name: ledger.final_probs.argmax() for name, ledger in compared.ledgers.items()
    }
    assert (first["vllm"], first["llama.cpp"]) == (0, 2)  # vLLM: not in the prompt


# Whole generations


@pytest.fixture
def model():
    table = torch.randn(40, 40, generator=torch.Generator().manual_seed(2)) * 2
    return TableModel(table, [bytes([65 + i]) for i in range(40)], dialect="xslm")


def test_every_dialect_draws_with_the_same_noise(model):
    runs = run_dialects(model, [1], SamplingParams(seed=4), max_new_tokens=30)
    assert len({g.token_ids for g in runs.generations.values()}) == 1
    methods = {s.drawn.method for g in runs.generations.values() for s in g.steps}
    assert methods == {"race"}


def test_the_first_token_that_differs(model):
    params = SamplingParams(temperature=1.6, top_p=0.7, seed=4)
    names = ["transformers", "llama.cpp", "vllm"]
    runs = run_dialects(model, [1], params, names, max_new_tokens=60)
    assert runs.first_difference("transformers", "vllm") is None
    step = runs.first_difference("transformers", "llama.cpp")
    ours, theirs = (runs.generations[name] for name in names[:2])
    assert ours.token_ids[:step] == theirs.token_ids[:step]
    assert ours.token_ids[step] != theirs.token_ids[step]
    # The winner of one race is no candidate of the other: only the rules differ.
    assert not theirs.steps[step].ledger().kept[ours.token_ids[step]]
    assert [row["first difference"] for row in runs.table()] == [None, step, None]


def test_a_run_is_what_generate_gives(model):
    params = SamplingParams(temperature=0.8, top_p=0.9, seed=9)
    runs = run_dialects(model, [1], params, ["mlx"], max_new_tokens=9)
    params = params.replace(dialect="mlx", draw_method="race")
    assert runs.generations["mlx"] == generate(model, [1], params, max_new_tokens=9)


def test_a_shorter_run_differs_where_it_ends(model):
    params = SamplingParams(seed=1)
    runs = run_dialects(model, [1], params, ["mlx", "vllm"], max_new_tokens=5)
    shorter = generate(model, [1], runs.generations["mlx"].params, max_new_tokens=3)
    cut = type(runs)({"mlx": runs.generations["mlx"], "vllm": shorter})
    assert cut.first_difference("mlx", "vllm") == 3


def test_an_open_seed_is_drawn_once_for_all(model):
    runs = run_dialects(model, [1], SamplingParams(seed=None), max_new_tokens=4)
    assert len({g.params.seed for g in runs.generations.values()}) == 1
