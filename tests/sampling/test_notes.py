"""Parameters in words: which cannot matter, and why."""

from __future__ import annotations

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.sampling.notes import idle

LOGITS = torch.tensor([4.0, 2.0, 1.0, 0.0])


def reasons(**fields):
    params = SamplingParams(**fields)
    return idle(params, params.chain().ledger(LOGITS))


def test_at_temperature_0_neither_cuts_nor_seed_matter():
    found = reasons(temperature=0)
    assert {"top_k", "top_p", "min_p", "seed"} <= set(found)
    assert set(found.values()) == {"temperature is 0"}
    assert "temperature" not in found and "repetition_penalty" not in found


@pytest.mark.parametrize(
    ("dialect", "idles", "acts"),
    [
        ("transformers", {"top_p", "min_p", "seed"}, {"temperature", "top_k"}),
        ("xslm", {"temperature", "top_p", "min_p", "seed"}, {"top_k"}),
        ("mlx", {"temperature", "seed"}, {"top_k", "top_p", "min_p"}),
    ],
)
def test_what_comes_after_the_stage_that_left_one_token_does_not_matter(
    dialect, idles, acts
):
    found = reasons(top_k=1, dialect=dialect)
    assert idles <= set(found) and not acts & set(found)
    assert set(found.values()) == {"top-k left 1 token"}


def test_where_two_tokens_are_left_everything_matters():
    assert reasons(top_k=2, top_p=0.99) == {}
    assert reasons() == {}


def test_a_ban_can_leave_one_token_too():
    found = reasons(banned_token_ids=[1, 2, 3])
    assert found["seed"] == found["top_k"] == "ban left 1 token"
    assert "logit_bias" not in found


def test_without_a_ledger_only_greed_is_known():
    assert idle(SamplingParams(top_k=1)) == {}
