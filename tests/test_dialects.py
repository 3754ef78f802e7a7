"""Dialects: the two rules that differ, told apart on small rows."""

import pytest
import torch

from sampling_lab.dialects import DEFAULT_DIALECT, DIALECTS, find_dialect
from sampling_lab.draws import DRAWS
from sampling_lab.errors import ParameterError
from sampling_lab.params import SamplingParams


def kept(dialect, logits, **settings):
    chain = SamplingParams(dialect=dialect, **settings).chain()
    return chain.ledger(logits).kept.nonzero().squeeze(-1).tolist()


WITH_TIES = ["scratch_llm", "transformers"]
EXACTLY_K = ["xslm"]


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
    for dialect in ("xslm", "scratch_llm"):
        assert kept(dialect, logits, top_p=0.8) == [0, 3]


def test_temperature_first_or_last():
    logits = torch.tensor([2.0, 1.0, 0.2, -1.0])
    settings = {"temperature": 0.5, "top_k": 3}
    for dialect in DIALECTS:  # a cut by rank does not care
        assert kept(dialect, logits, **settings) == [0, 1, 2]


def test_every_dialect_names_fields_and_draws_that_exist():
    fields = set(SamplingParams().to_dict())
    for name, dialect in DIALECTS.items():
        assert dialect.name == name
        assert set(dialect.order) <= fields
        assert len(set(dialect.order)) == len(dialect.order)
        assert dialect.draw in DRAWS
        assert dialect.mirrors
    assert DEFAULT_DIALECT in DIALECTS


def test_an_unknown_dialect_is_named_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"one of xslm, .* or None, got 'gpt'"):
        find_dialect("gpt")
