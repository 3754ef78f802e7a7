"""Penalties, biases, bans and n-grams: tables by hand and the ledger's words."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab.errors import LogitsError, ParameterError
from sampling_lab.sampling.chain import Chain
from sampling_lab.sampling.penalties import (
    Ban,
    FrequencyPenalty,
    LogitBias,
    PresencePenalty,
    RepetitionPenalty,
)
from sampling_lab.sampling.sequences import NoRepeatNGram
from sampling_lab.sampling.temperature import Temperature
from sampling_lab.sampling.truncation import TopK

INF = float("inf")
LOGITS = torch.tensor([2.0, -1.0, 0.0, 4.0, -INF])
SAID = (3, 1, 3, 3, 4, 2)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (RepetitionPenalty(2.0, SAID), [2.0, -2.0, 0.0, 2.0, -INF]),
        (RepetitionPenalty(0.5, SAID), [2.0, -0.5, 0.0, 8.0, -INF]),
        (RepetitionPenalty(2.0), [2.0, -1.0, 0.0, 4.0, -INF]),
        (FrequencyPenalty(0.5, SAID), [2.0, -1.5, -0.5, 2.5, -INF]),
        (FrequencyPenalty(-1.0, SAID), [2.0, 0.0, 1.0, 7.0, -INF]),
        (PresencePenalty(0.5, SAID), [2.0, -1.5, -0.5, 3.5, -INF]),
        (LogitBias({0: -1.0, 4: 9.0, 2: 3}), [1.0, -1.0, 3.0, 4.0, -INF]),
        (Ban((3, 0, 3)), [-INF, -1.0, 0.0, -INF, -INF]),
        (NoRepeatNGram(1, (3, 0)), [-INF, -1.0, 0.0, -INF, -INF]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tables(stage, expected, dtype):
    logits = LOGITS.to(dtype)
    assert stage(logits).tolist() == expected
    assert stage(logits.repeat(2, 3, 1))[1, 2].tolist() == expected
    assert torch.equal(logits, LOGITS.to(dtype))


@pytest.mark.parametrize(
    ("n", "said", "repeating"),
    [
        (2, (5, 7, 5, 8, 5), (7, 8)),
        (3, (1, 2, 3, 1, 2), (3,)),
        (3, (1, 2, 3, 2, 1), ()),
        (3, (1, 1, 1), (1,)),
        (3, (1, 1), ()),
        (3, (1,), ()),
        (1, (4, 2, 4), (2, 4)),
        (5, (), ()),
    ],
)
def test_what_would_repeat_an_n_gram(n, said, repeating):
    assert NoRepeatNGram(n, said).repeating() == repeating


@given(st.integers(1, 4), st.lists(st.integers(0, 3), max_size=12))
def test_no_n_gram_ever_comes_twice(n, said):
    banned = NoRepeatNGram(n, tuple(said)).repeating()
    before = [tuple(said[i : i + n]) for i in range(len(said) - n + 1)]
    for token in range(4):
        new = (*said, token)[-n:]
        assert (token in banned) == (len(said) >= n - 1 and new in before)


def test_the_order_of_what_was_said_does_not_matter_to_penalties():
    for kind in (RepetitionPenalty, FrequencyPenalty, PresencePenalty):
        assert torch.equal(kind(1.5, SAID)(LOGITS), kind(1.5, SAID[::-1])(LOGITS))


@pytest.mark.parametrize("kind", [RepetitionPenalty, FrequencyPenalty, PresencePenalty])
@pytest.mark.parametrize("token", [-1, 5])
def test_a_token_without_a_logit_is_refused(kind, token):
    with pytest.raises(ParameterError, match=rf"in \[0, 5\).* got {token}"):
        kind(1.5, (0, token))(LOGITS)


@pytest.mark.parametrize("stage", [Ban((7,)), LogitBias({7: 1.0})])
def test_an_id_above_the_vocabulary_is_refused(stage):
    with pytest.raises(ParameterError, match="got 7"):
        stage(LOGITS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RepetitionPenalty(0), "penalty must be a finite number > 0, got 0"),
        (lambda: FrequencyPenalty(INF), "penalty must be a finite number, got inf"),
        (lambda: LogitBias({1: INF}), "biases must be .* use banned_token_ids"),
        (lambda: LogitBias({"1": 2.0}), "biases must be a mapping of token ids"),
        (lambda: LogitBias([1, 2]), "biases must be a mapping of token ids"),
        (lambda: LogitBias(3), "biases must be a mapping of token ids"),
        (lambda: Ban("12"), "token_ids must be token ids, integers >= 0, got '12'"),
        (lambda: Ban((1, -2)), "token_ids must be token ids, integers >= 0, got -2"),
        (lambda: Ban((True,)), "token_ids must be token ids, integers >= 0, got True"),
        (lambda: NoRepeatNGram(0), "n must be an integer >= 1, got 0"),
    ],
)
def test_bad_values(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


# In a chain


def test_banning_everything_is_an_error_that_names_the_stage():
    with pytest.raises(LogitsError, match="after ban: no token is allowed"):
        Chain((Ban((0, 1, 2, 3)), TopK(2)))(LOGITS)
    with pytest.raises(LogitsError, match="after no-repeat-ngram: no token"):
        Chain((NoRepeatNGram(1, (0, 1)),)).ledger(torch.tensor([0.0, 1.0]))


def test_a_shift_that_overflows_is_an_error_that_names_the_stage():
    with pytest.raises(LogitsError, match=r"after logit bias: .* 1 \+inf"):
        Chain((LogitBias({0: 1e300}),))(LOGITS)
    with pytest.raises(LogitsError, match="after repetition penalty"):
        Chain((RepetitionPenalty(1e-300, (0,)),))(LOGITS)


def test_the_ledger_says_by_how_much():
    chain = Chain(
        (RepetitionPenalty(1.25, (3, 1)), FrequencyPenalty(0.5, (3, 3)), TopK(2))
    )
    ledger = chain.ledger(LOGITS)
    assert ledger.why(3).endswith(
        "; repetition penalty: logit 4 → 3.2; frequency penalty: logit 3.2 → 2.2"
    )
    assert ledger.why(1) == (
        "rank 4: removed by top-k, rank 4 > 2; repetition penalty: logit -1 → -1.25"
    )
    assert ledger.why(0).startswith("rank 2: kept")
    assert ";" not in ledger.why(0)
    row = ledger.table(1)[0]
    assert row["shifts"] == [
        "repetition penalty: logit 4 → 3.2",
        "frequency penalty: logit 3.2 → 2.2",
    ]


def test_the_ledger_says_what_was_banned():
    ledger = Chain((Ban((3,)), Temperature(0.5))).ledger(LOGITS)
    assert ledger.why(3) == "rank 1: removed by ban"
    assert ledger.table(1)[0]["removed_by"] == "ban"
    assert "logit" not in ledger.why(0)  # temperature is no adjustment
