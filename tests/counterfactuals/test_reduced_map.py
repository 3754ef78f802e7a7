"""Temperature maps search only among the tokens that can be chosen at all."""

from __future__ import annotations

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.counterfactuals import StepNoise, noise_of_step, temperature_map
from sampling_lab.errors import ParameterError

LOGITS = torch.randn(1000, generator=torch.Generator().manual_seed(1))
RACE = SamplingParams(seed=34, typical_p=0.9, dialect="transformers")
WHEEL = SamplingParams(seed=34, dialect="xslm")


@pytest.mark.parametrize(
    ("params", "size"),
    [
        (WHEEL.replace(top_k=6), 6),
        (RACE.replace(top_k=6), 6),
        (RACE, 1000),
        (RACE.replace(banned_token_ids=[7]), 999),
    ],
)
def test_only_tokens_that_can_be_chosen_are_searched(params, size, monkeypatch):
    sizes, choose = set(), StepNoise.choose

    def noted(self, logits):
        sizes.add(len(logits))
        return choose(self, logits)

    monkeypatch.setattr(StepNoise, "choose", noted)
    temperature_map(LOGITS, params)
    assert sizes == {size}


def test_a_wheel_of_a_few_hundred_tokens_that_top_k_leaves_is_searched():
    params = WHEEL.replace(top_k=400)
    found = temperature_map(LOGITS, params)
    ids = set(LOGITS.topk(400).indices.tolist())
    assert set(found.token_ids) <= ids
    for segment in found.segments[::40]:
        middle = (segment.low * segment.high) ** 0.5
        warm = params.replace(temperature=middle)
        assert warm.draw()(warm.chain()(LOGITS)).token_id == segment.token_id
    with pytest.raises(ParameterError, match=r"at most 256 .* got 600; set top_k"):
        temperature_map(LOGITS, WHEEL.replace(top_k=600))


def test_random_numbers_that_are_known_need_no_draw():
    params = RACE.replace(top_k=20)
    noise = noise_of_step(LOGITS, params, step=3)
    found = temperature_map(LOGITS, params.replace(seed=None), noise=noise)
    assert found == temperature_map(LOGITS, params, step=3)
