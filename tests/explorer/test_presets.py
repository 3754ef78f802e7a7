"""Settings to begin with: what they set, and what they leave alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.errors import ParameterError
from sampling_lab.explorer.presets import apply_preset, carry_over, neutral, presets
from sampling_lab.sampling.dialects import DIALECTS
from tests.fakes import TableModel


def card(vocab_size=50_000, **fields):
    plain = TableModel(torch.zeros(2, 2), [b"a", b"b"]).card
    return dataclasses.replace(plain, vocab_size=vocab_size, **fields)


@pytest.mark.parametrize(
    ("vocab_size", "counts"), [(50_000, [30, 50, 100]), (40, [3, 5, 10]), (4, [2] * 3)]
)
def test_top_k_shrinks_with_a_tiny_vocabulary(vocab_size, counts):
    found = presets(card(vocab_size))
    named = [found[name] for name in ("accuracy", "balance", "creativity")]
    assert [preset["top_k"] for preset in named] == counts
    assert [preset["temperature"] for preset in named] == [0.7, 0.9, 1.1]


def test_every_preset_can_be_applied_and_keeps_the_seed():
    params = SamplingParams(top_p=0.5, min_p=0.1, seed=7, dialect="xslm")
    for preset in presets(card(defaults={"temperature": 0.6})).values():
        applied = apply_preset(params, preset)
        assert applied.seed == 7 and applied.min_p == preset.get("min_p")
        assert applied.dialect == preset.get("dialect", "xslm")


def test_each_engine_offers_its_own_defaults_under_its_own_rules():
    found = presets(card())
    for dialect in DIALECTS.values():
        name = f"{dialect.name} defaults"
        assert (name in found) == bool(dialect.defaults)
        if dialect.defaults:
            assert found[name] == {**dialect.defaults, "dialect": dialect.name}


def test_the_authors_settings_are_there_only_where_the_checkpoint_has_some():
    assert "the author's" not in presets(card())
    assert "the author's" not in presets(card(defaults={"max_new_tokens": 24}))
    sampled = {"do_sample": True, "temperature": 0.6, "top_p": 0.95}
    assert presets(card(defaults=sampled))["the author's"] == {
        "temperature": 0.6,
        "top_p": 0.95,
    }
    greedy = {"do_sample": False, "temperature": 0.6}
    assert presets(card(defaults=greedy))["the author's"] == {"temperature": 0.0}


def test_an_authors_slip_is_told_when_it_is_chosen():
    preset = presets(card(defaults={"temperature": -1}))["the author's"]
    with pytest.raises(ParameterError, match="temperature"):
        apply_preset(SamplingParams(), preset)


def test_neutral_leaves_nothing_on():
    params = SamplingParams(
        temperature=0.3, top_k=3, repetition_penalty=1.2, seed=5, draw_method="keyed"
    )
    plain = neutral(params)
    assert plain == SamplingParams(seed=5, draw_method="keyed")


def test_another_model_keeps_what_makes_sense_and_drops_token_ids():
    before, after = card(dialect="transformers"), card(4, dialect="xslm")
    params = SamplingParams(
        top_k=40, seed=3, dialect="transformers", logit_bias={7: 1.0}
    )
    carried = carry_over(params, before, after)
    assert carried == SamplingParams(top_k=40, seed=3, dialect="xslm")
    chosen = dataclasses.replace(params, dialect="vllm")
    assert carry_over(chosen, before, after).dialect == "vllm"
