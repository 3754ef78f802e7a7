"""Searching the vocabulary for tokens by their text."""

from __future__ import annotations

import pytest
import torch

from sampling_lab.models.token_search import search_tokens
from tests.fakes import TableModel

PIECES = [b"blue", b" blue", b" Blues", b"red", b"\n", b" ", b"a b", b"#1"]


@pytest.fixture
def model():
    return TableModel(torch.zeros(8, 8), PIECES)


def test_the_text_itself_comes_first_then_the_likeliest(model):
    logits = torch.tensor([0.0, 1.0, 9.0, 9.0, 0.0, 0.0, 0.0, 0.0])
    assert search_tokens(model, "blue", logits) == [1, 0, 2]
    assert search_tokens(model, "blue") == [0, 1, 2]
    assert search_tokens(model, "blue", logits, n=2) == [1, 0]


@pytest.mark.parametrize("query", [" ", "␣"])
def test_white_space_is_typed_or_written_as_its_sign(model, query):
    assert search_tokens(model, query) == [5, 1, 2, 6]


def test_case_does_not_count(model):
    assert search_tokens(model, "BLUE") == [0, 1, 2]


def test_a_number_after_a_hash_is_an_id(model):
    assert search_tokens(model, "#3") == [3]
    assert search_tokens(model, "#8") == []
    assert search_tokens(model, "#") == [7]


def test_what_no_token_says_is_not_found(model):
    assert search_tokens(model, "green") == []
