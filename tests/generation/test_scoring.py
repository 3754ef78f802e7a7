"""Scoring given tokens: the numbers of a forward pass over what comes before."""

from __future__ import annotations

import pytest
import torch

from sampling_lab import SamplingParams, generate, score
from sampling_lab.errors import PromptError
from tests.fakes import TableModel, letters


@pytest.fixture(name="letters")
def letters_() -> TableModel:
    return letters()


def test_scores_are_the_models_probabilities(letters):
    none, *steps = score(letters, "abz")
    assert none is None
    assert [(step.index, step.text) for step in steps] == [(1, "b"), (2, "z")]
    for step, (before, token_id) in zip(steps, [(0, 1), (1, 25)], strict=True):
        probs = letters.table[before].softmax(-1)
        assert step.raw_prob == step.final_prob == probs[token_id].item()
        assert step.rank == int((probs > probs[token_id]).sum()) + 1
        assert step.is_given


def test_a_generated_text_scores_as_it_was_drawn(letters):
    params = SamplingParams(temperature=0.8, top_p=0.9, seed=1)
    drawn = generate(letters, "a", params, max_new_tokens=12)
    _, *steps = score(letters, [0, *drawn.token_ids], params)
    for before, after in zip(drawn.steps, steps, strict=True):
        for name in ("raw_prob", "final_prob", "rank", "entropy", "kept_count", "text"):
            assert getattr(before, name) == getattr(after, name)
        assert torch.equal(before.ledger().final_probs, after.ledger().final_probs)


def test_the_prompt_is_what_penalties_count(letters):
    params = SamplingParams(repetition_penalty=2.0, penalize_prompt=True)
    _, first, _ = score(letters, "aab", params)
    assert first.raw_prob != first.final_prob
    _, first, _ = score(letters, "aab", params.replace(penalize_prompt=False))
    assert first.raw_prob == first.final_prob


def test_each_costs_one_forward_pass_and_remembered_ones_none(letters):
    scores = score(letters, "abcd")
    assert letters.forward_passes == 0
    next(scores)
    next(scores)
    assert letters.forward_passes == 1
    assert len([*scores]) == 2
    assert letters.forward_passes == 3
    assert len([*score(letters, "abcd", SamplingParams(top_k=2))]) == 4
    assert letters.forward_passes == 3


def test_ids_alone_and_bad_prompts(letters):
    _, step = score(TableModel(torch.eye(3)), [0, 2])
    assert (step.text, step.token_text) == ("", "⟨2⟩")
    with pytest.raises(PromptError, match="empty"):
        score(letters, "")
