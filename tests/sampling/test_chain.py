"""Chains and ledgers: the toy table, what happened to each token, nasty logits."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from sampling_lab.errors import LogitsError, ParameterError
from sampling_lab.sampling.chain import Chain
from sampling_lab.sampling.cutoffs import MinP
from sampling_lab.sampling.params import SamplingParams
from sampling_lab.sampling.temperature import Temperature
from sampling_lab.sampling.truncation import TopK, TopP
from tests.sampling.test_stage import TOY, rows, stages

INF = float("inf")
NAN = float("nan")
CHAIN = Chain((Temperature(0.8), TopK(3), TopP(0.9), MinP(0.2)))


def rounded(chain, logits=TOY):
    return [round(p, 3) for p in chain.probs(logits).tolist()]


@pytest.mark.parametrize(
    ("stages", "probs"),
    [
        ((), [0.632, 0.232, 0.104, 0.031]),
        ((Temperature(0.5),), [0.858, 0.116, 0.023, 0.002]),
        ((Temperature(2.0),), [0.447, 0.271, 0.182, 0.100]),
        ((Temperature(0.5), TopP(0.8)), [1.0, 0, 0, 0]),
        ((TopP(0.8), Temperature(0.5)), [0.881, 0.119, 0, 0]),
        ((Temperature(1.5), TopP(0.8)), [0.551, 0.283, 0.166, 0]),
        ((TopP(0.8), Temperature(1.5)), [0.661, 0.339, 0, 0]),
    ],
)
def test_the_toy_table(stages, probs):
    assert rounded(Chain(stages)) == probs


# The ledger


def test_a_ledger_has_the_numbers_before_and_after():
    ledger = Chain((TopK(2),)).ledger(TOY)
    assert torch.equal(ledger.raw_logits, TOY)
    assert torch.equal(ledger.raw_probs, TOY.softmax(-1))
    assert [round(p, 3) for p in ledger.final_probs.tolist()] == [0.731, 0.269, 0, 0]
    assert ledger.kept.tolist() == [True, True, False, False]
    assert ledger.kept_count == 2
    assert ledger.kept_mass == pytest.approx(0.632 + 0.232, abs=1e-3)
    entropy = -(0.7310586 * math.log2(0.7310586) + 0.2689414 * math.log2(0.2689414))
    assert ledger.entropy == pytest.approx(entropy, abs=1e-6)
    assert ledger.effective_count == pytest.approx(2**entropy, abs=1e-5)


def test_a_ledger_tells_stage_by_stage():
    ledger = Chain((Temperature(0.5), TopK(3), TopP(0.97))).ledger(TOY)
    cool, top_k, top_p = ledger.stages
    assert cool.removed.sum() == 0
    assert cool.after.entropy < ledger.raw.entropy
    assert top_k.removed.tolist() == [False, False, False, True]
    assert top_p.removed.tolist() == [False, False, True, False]
    assert torch.equal(top_k.before, cool.logits)
    assert torch.equal(top_p.logits, ledger.final.logits)


def test_why_names_the_stage_its_number_and_the_threshold():
    ledger = CHAIN.ledger(torch.tensor([2.0, 1.9, 0.2, 0.1, -INF]))
    assert ledger.why(0) == "rank 1: kept, raw 0.451, final 0.531"
    assert ledger.why(2) == "rank 3: removed by top-p, mass before it 0.947 >= 0.9"
    assert ledger.why(3) == "rank 4: removed by top-k, rank 4 > 3"
    assert ledger.why(4) == "rank 5: its logit is -inf in the model itself"
    assert ledger.removed_by(3).stage == TopK(3)
    assert ledger.removed_by(0) is None
    assert ledger.removed_by(4) is None


@pytest.mark.parametrize(
    ("stage", "logits", "token", "because"),
    [
        (MinP(0.5), [2.0, 1.0], 1, "removed by min-p, probability 0.269 < 0.366"),
        (Temperature(0), [2.0, 2.0], 1, "removed by temperature, rank 2 > 1"),
        (TopK(1, "lowest_id"), [2.0, 2.0], 1, "removed by top-k, rank 2 > 1"),
        (
            TopP(0.9, rule="ascending"),
            [3.0, 0.0],
            1,
            "removed by top-p, mass up to it from below 0.0474 <= 0.1",
        ),
        # As many digits as it takes to tell the two apart.
        (MinP(0.5), [0.0, -0.6932], 1, "probability 0.33332 < 0.33334"),
    ],
)
def test_why_is_true_to_the_digit(stage, logits, token, because):
    why = Chain((stage,)).ledger(torch.tensor(logits)).why(token)
    assert why.endswith(because)


def test_the_table_marks_removed_tokens_and_hides_none():
    rows = Chain((TopK(1),)).ledger(torch.tensor([0.6, 0.3, 0.1]).log()).table()
    assert [row["token_id"] for row in rows] == [0, 1, 2]
    assert [round(row["raw"], 3) for row in rows] == [0.6, 0.3, 0.1]
    assert [row["final"] for row in rows] == [1.0, 0.0, 0.0]
    assert [row["removed_by"] for row in rows] == [None, "top-k", "top-k"]
    assert [row["rank"] for row in rows] == [1, 2, 3]


def test_the_rest_of_the_vocabulary_counts_in_a_short_table():
    """A small model's mass outside the top 50 is large; nothing may hide it."""
    logits = torch.randn(2000, generator=torch.Generator().manual_seed(3)) * 2
    ledger = SamplingParams(temperature=1.5).chain().ledger(logits)
    shown = ledger.table(50)
    for key, probs in (("raw", logits), ("final", logits / 1.5)):
        mass = probs.softmax(-1)[ledger.top(50)].sum().item()
        assert mass < 0.6
        assert sum(row[key] for row in shown) == pytest.approx(mass, abs=1e-5)


def test_a_logit_of_minus_infinity_is_null_in_the_table():
    assert Chain().ledger(torch.tensor([0.0, -INF])).table()[1]["logit"] is None


@given(rows, st.integers(1, 15))
def test_a_short_table_is_a_prefix_of_a_long_one(row, n):
    ledger = CHAIN.ledger(torch.tensor(row))
    whole = ledger.table(99)
    assert ledger.table(n) == whole[:n]
    assert [r["rank"] for r in whole] == list(range(1, len(row) + 1))
    assert sum(r["raw"] for r in whole) == pytest.approx(1, abs=1e-5)
    assert sum(r["final"] for r in whole) == pytest.approx(1, abs=1e-5)


@given(rows, st.lists(stages, max_size=4))
def test_every_token_is_kept_or_was_removed_somewhere(row, some):
    logits = torch.tensor(row)
    ledger = Chain(tuple(some)).ledger(logits)
    assert 1 <= ledger.kept_count == int(ledger.kept.sum()) <= len(row)
    assert 0 <= ledger.kept_mass <= 1
    assert -1e-6 <= ledger.entropy <= math.log2(ledger.kept_count) + 1e-4
    for token_id in range(len(row)):
        record, why = ledger.removed_by(token_id), ledger.why(token_id)
        if ledger.kept[token_id]:
            assert record is None
            assert "kept" in why
        elif logits[token_id] == -INF:
            assert record is None
            assert "in the model itself" in why
        else:
            assert f"removed by {record.stage.name}" in why
            assert bool(record.removed[token_id])


@given(rows, st.lists(stages, max_size=4))
def test_a_chain_is_its_stages_one_after_the_other(row, some):
    logits = torch.tensor(row)
    before, expected = logits.clone(), logits
    for stage in some:
        expected = stage(expected)
    chain = Chain(tuple(some))
    assert torch.equal(chain(logits), expected)
    assert torch.equal(chain.ledger(logits).final.logits, expected)
    assert torch.equal(chain.probs(logits), expected.softmax(-1))
    assert torch.equal(logits, before)


def test_a_ledger_keeps_its_numbers_when_the_input_changes():
    logits = TOY.clone()
    ledger = Chain().ledger(logits)
    logits.zero_()
    assert torch.equal(ledger.raw_logits, TOY)
    assert torch.equal(ledger.final_probs, TOY.softmax(-1))


def test_a_batch_equals_its_rows():
    batch = torch.randn(5, 40)
    for one, row in zip(CHAIN(batch), batch, strict=True):
        assert torch.equal(one, CHAIN(row))


def test_a_ledger_takes_one_row():
    with pytest.raises(ParameterError, match=r"one row, shape \(V,\), got \(2, 4\)"):
        CHAIN.ledger(torch.zeros(2, 4))


# Nasty logits, on every path that computes a distribution

NASTY = {
    "no token is allowed": [-INF, -INF],
    "NaN": [0.0, 5.0, NAN],
    r"\+inf": [INF, 1.0],
}
PATHS = {
    "call": lambda chain, logits: chain(logits),
    "probs": lambda chain, logits: chain.probs(logits),
    "ledger": lambda chain, logits: chain.ledger(logits),
    "batch": lambda chain, logits: chain(torch.stack([logits, logits])),
}


@pytest.mark.parametrize("message", NASTY)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_nasty_logits_are_refused_on_every_path(message, path, temperature, dtype):
    chain = SamplingParams(temperature=temperature).chain()
    with pytest.raises(LogitsError, match=message):
        PATHS[path](chain, torch.tensor(NASTY[message], dtype=dtype))


@pytest.mark.parametrize("path", ["call", "probs", "ledger"])
def test_a_hole_in_the_logits_is_no_fault(path):
    PATHS[path](CHAIN, torch.tensor([0.0, -INF]))
    assert CHAIN.probs(torch.tensor([0.0, -INF])).tolist() == [1.0, 0.0]
