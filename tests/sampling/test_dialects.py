"""Dialects: the two rules that differ, told apart on small rows."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sampling_lab.errors import ParameterError
from sampling_lab.sampling.dialects import (
    DEFAULT_DIALECT,
    DIALECTS,
    find_dialect,
)
from sampling_lab.sampling.draws import DRAWS
from sampling_lab.sampling.nucleus import NUCLEI
from sampling_lab.sampling.parameters import (
    ADJUSTMENTS,
    SAMPLING_ONLY,
    missing,
    stage_order,
)
from sampling_lab.sampling.params import SamplingParams


def kept(dialect, logits, **settings):
    chain = SamplingParams(dialect=dialect, **settings).chain()
    return chain.ledger(logits).kept.nonzero().squeeze(-1).tolist()


WITH_TIES = ["scratch_llm", "transformers", "vllm"]
EXACTLY_K = ["xslm", "llama.cpp", "mlx", "ollama<0.30"]


@pytest.mark.parametrize("dialect", EXACTLY_K + WITH_TIES)
def test_ties_at_k(dialect):
    ids = [1, 2, 4] if dialect in EXACTLY_K else [1, 2, 3, 4]
    assert kept(dialect, torch.tensor([1.0, 2.0, 2.0, 2.0, 3.0]), top_k=3) == ids


@pytest.mark.parametrize("dialect", EXACTLY_K + WITH_TIES)
def test_a_tie_at_k_of_one_over_a_hundred_seeds(dialect):
    logits = torch.tensor([3.0, 3.0, 1.0])
    seen = set()
    for seed in range(100):
        params = SamplingParams(top_k=1, seed=seed, dialect=dialect)
        seen.add(params.draw()(params.chain()(logits)).token_id)
    assert seen == ({0} if dialect in EXACTLY_K else {0, 1})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_mass_that_is_exactly_p(dtype):
    logits = torch.tensor([0.3, 0.1, 0.1, 0.5], dtype=torch.float64).log().to(dtype)
    assert kept("xslm", logits, top_p=0.8) == [0, 3]
    # llama.cpp's float32 sum of the first two is 0.79999995
    for dialect in ("scratch_llm", "llama.cpp", "ollama<0.30"):
        assert kept(dialect, logits, top_p=0.8) == [0, 1, 3]


@pytest.mark.parametrize(
    ("equal", "p", "count"), [(10, 0.8, 9), (2, 0.5, 2), (4, 0.25, 2), (4, 0.26, 2)]
)
def test_scratch_llm_keeps_the_token_that_passes_p(equal, p, count):
    assert len(kept("scratch_llm", torch.zeros(equal), top_p=p)) == count


ROWS = Path(__file__).parent.parent / "data" / "scratch_llm" / "filter_rows.npz"


def test_scratch_llm_keeps_what_the_original_filter_kept():
    """1,200 rows of its own sampler at temperature, top-k and top-p; a third has ties.

    Which of several equal logits stay is what torch's sort leaves, on the CPU.
    """
    with np.load(ROWS) as file:
        rows = dict(file)
    ends = rows["lengths"].cumsum(dtype=int)
    bits = np.unpackbits(rows["kept"])
    names = ("temperature", "top_k", "top_p")
    wrong = []
    for row, end in enumerate(ends):
        part = slice(end - rows["lengths"][row], end)
        settings = {name: rows[name][row].item() for name in names}
        found = kept("scratch_llm", torch.from_numpy(rows["logits"][part]), **settings)
        if found != bits[part].nonzero()[0].tolist():
            wrong.append(row)
    assert len(ends) == 1200
    assert wrong == []


FIRST = ["scratch_llm", "transformers", "vllm", "ollama<0.30"]
LAST = ["llama.cpp", "mlx"]


@pytest.mark.parametrize("dialect", FIRST + LAST)
@pytest.mark.parametrize(
    ("temperature", "first", "last"),
    [
        (0.5, [1.0, 0, 0, 0], [0.881, 0.119, 0, 0]),
        (1.5, [0.551, 0.283, 0.166, 0], [0.661, 0.339, 0, 0]),
    ],
)
def test_temperature_first_or_last(dialect, temperature, first, last):
    params = SamplingParams(temperature=temperature, top_p=0.8, dialect=dialect)
    probs = params.chain().probs(torch.tensor([2.0, 1.0, 0.2, -1.0])).tolist()
    assert [round(p, 3) for p in probs] == (first if dialect in FIRST else last)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_by_rank_does_not_care_about_temperature(dialect):
    logits = torch.tensor([2.0, 1.0, 0.2, -1.0])
    assert kept(dialect, logits, temperature=0.5, top_k=3) == [0, 1, 2]


def test_the_mass_of_a_nucleus_may_be_counted_before_or_after_min_p():
    """Min-p 0.4 leaves 0 and 1, and 0.53 of that mass is in token 0 alone."""
    logits = torch.tensor([0.4, 0.35, 0.15, 0.1]).log()
    settings = {"top_p": 0.5, "min_p": 0.4}
    assert kept("vllm", logits, **settings) == [0]
    assert kept("transformers", logits, **settings) == [0, 1]


def test_every_dialect_names_fields_and_draws_that_exist():
    fields = set(SamplingParams().to_dict())
    for name, dialect in DIALECTS.items():
        assert dialect.name == name
        order, lacks = stage_order(dialect), missing(dialect)
        assert set(order) <= fields
        assert sorted(order) == sorted((*ADJUSTMENTS, *SAMPLING_ONLY, "temperature"))
        assert [name for name in order if name not in lacks] == [*dialect.own]
        assert SamplingParams(**dialect.defaults)
        assert dialect.draw in DRAWS
        assert dialect.nucleus in NUCLEI
        assert dialect.mirrors and dialect.checked
    assert DEFAULT_DIALECT in DIALECTS
    assert DIALECTS["ollama<0.30"].own == ("top_k", "temperature", "top_p", "min_p")
    assert DIALECTS["llama.cpp"].defaults["top_k"] == 40


def test_an_unknown_dialect_is_named_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"one of xslm, .* or None, got 'gpt'"):
        find_dialect("gpt")


def test_ollama_is_named_by_the_engine_that_it_runs():
    with pytest.raises(ParameterError, match=r"llama\.cpp, .* or 'ollama<0.30'"):
        find_dialect("ollama")
