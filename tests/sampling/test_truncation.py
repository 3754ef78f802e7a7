"""Typical-p, top-nσ and XTC: tables by hand and edges."""

import math

import pytest
import torch
from hypothesis import given

from sampling_lab import SamplingParams, generate, replay
from sampling_lab.errors import ParameterError
from sampling_lab.sampling.draws import coin
from sampling_lab.sampling.temperature import Temperature
from sampling_lab.sampling.truncation import XTC, TopNSigma, TypicalP
from tests.fakes import TableModel
from tests.sampling.test_stage import INF, kept, logs, rows

# Typical-p


@pytest.mark.parametrize(
    ("probs", "p", "ids"),
    [
        # Entropy 0.90 nats; surprises 0.51, 1.20, 2.30: ids 1, 0, 2 in order.
        ((0.6, 0.3, 0.1), 0.2, [1]),
        ((0.6, 0.3, 0.1), 0.29, [1]),
        ((0.6, 0.3, 0.1), 0.31, [0, 1]),
        ((0.6, 0.3, 0.1), 0.95, [0, 1, 2]),
        # All as far from the entropy: all stay.
        ((0.25, 0.25, 0.25, 0.25), 0.1, [0, 1, 2, 3]),
        ((1.0, 0.0), 0.5, [0]),
    ],
)
def test_typical_keeps_the_nearest_to_the_entropy(probs, p, ids):
    assert kept(TypicalP(p), logs(*probs, dtype=torch.float64)) == ids


def test_typical_of_one_changes_no_bit():
    logits = torch.randn(2, 50)
    assert torch.equal(TypicalP(1.0)(logits), logits)


def test_typical_may_remove_the_most_likely_and_says_by_how_much():
    logits = logs(0.6, 0.3, 0.1)
    criterion = TypicalP(0.2).criterion(logits)
    entropy = -sum(p * math.log(p) for p in (0.6, 0.3, 0.1))
    assert criterion.values[0].item() == pytest.approx(
        entropy + math.log(0.6), abs=1e-6
    )
    assert criterion.threshold == criterion.values[1].item()


# Top-nσ


@pytest.mark.parametrize(
    ("logits", "n", "ids"),
    [
        # Mean 2, deviation sqrt(2) = 1.414: at least 4 - 1.414 n.
        ([0.0, 1.0, 2.0, 3.0, 4.0], 1.0, [3, 4]),
        ([0.0, 1.0, 2.0, 3.0, 4.0], 0.5, [4]),
        ([0.0, 1.0, 2.0, 3.0, 4.0], 1.5, [2, 3, 4]),
        ([0.0, 1.0, 2.0, 3.0, 4.0], 1.3, [3, 4]),
        ([0.0, 1.0, 2.0, 3.0, 4.0, -INF], 1.0, [3, 4]),
        ([2.0, 2.0], 0.1, [0, 1]),
        ([5.0], 1.0, [0]),
        ([-INF, 5.0], 1.0, [1]),
    ],
)
def test_top_n_sigma_counts_deviations_of_what_is_possible(logits, n, ids):
    assert kept(TopNSigma(n), logits) == ids


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_temperature_before_top_n_sigma_changes_nothing(temperature):
    logits = torch.randn(500, generator=torch.Generator().manual_seed(1))
    assert kept(TopNSigma(1.0), Temperature(temperature)(logits)) == (
        kept(TopNSigma(1.0), logits)
    )


def test_top_n_sigma_is_numpys_deviation():
    logits = torch.randn(300, dtype=torch.float64)
    values = logits.numpy()
    lowest = values.max() - 1.3 * values.std()
    assert kept(TopNSigma(1.3), logits) == (values >= lowest).nonzero()[0].tolist()


# XTC


@pytest.mark.parametrize(
    ("probs", "threshold", "ids"),
    [
        ((0.5, 0.3, 0.15, 0.05), 0.1, [2, 3]),
        ((0.5, 0.3, 0.15, 0.05), 0.2, [1, 2, 3]),
        ((0.5, 0.3, 0.15, 0.05), 0.4, [0, 1, 2, 3]),  # one top choice is none
        ((0.5, 0.3, 0.15, 0.05), 0.9, [0, 1, 2, 3]),
        ((0.5, 0.3, 0.15, 0.05), 0.0, [3]),
        ((0.4, 0.25, 0.25, 0.1), 0.2, [1, 2, 3]),  # a tie for the least stays
        ((0.5, 0.5), 0.5, [0, 1]),
    ],
)
def test_xtc_leaves_the_least_likely_of_the_top_choices(probs, threshold, ids):
    logits = logs(*probs, dtype=torch.float64)
    assert kept(XTC(1.0, threshold, coin=0.0), logits) == ids
    assert torch.equal(XTC(0.5, threshold, coin=0.5)(logits), logits)


@given(rows)
def test_xtc_removes_only_from_the_top(row):
    logits = torch.tensor(row)
    removed = XTC(1.0, 0.05)(logits) == -INF
    removed &= logits > -INF
    if removed.any():
        assert logits[removed].min() > logits[~removed].max()


def test_the_coin_falls_as_often_as_asked():
    falls = [coin(7, step) for step in range(5000)]
    assert all(0 <= x < 1 for x in falls)
    # 3.3 standard deviations of 5,000 tosses
    assert abs(sum(x < 0.3 for x in falls) - 1500) < 107
    assert all(XTC(0.3, coin=x).acts == (x < 0.3) for x in falls)


def test_the_coin_is_this_on_every_machine_and_not_the_draws_number():
    assert coin(0, 0) == COIN
    assert coin(0, 0) != coin(0, 1) != coin(1, 1)


COIN = 0.046103838053383805


def test_a_generation_tosses_its_coin_at_every_step():
    table = torch.randn(9, 9, generator=torch.Generator().manual_seed(1))
    model = TableModel(table)
    params = SamplingParams(seed=6, xtc_probability=0.5, xtc_threshold=0.05)
    with_xtc = generate(model, [1, 2], params, max_new_tokens=30)
    without = generate(model, [1, 2], SamplingParams(seed=6), max_new_tokens=30)
    acted = 0
    for step, plain in zip(with_xtc.steps, without.steps, strict=True):
        (record,) = step.ledger().stages
        assert record.stage.coin == coin(6, step.index)
        acted += bool(record.removed.any())
        # The coin takes nothing from the race's numbers.
        luck = (s.drawn.exponentials(table[0]) for s in (step, plain))
        assert torch.equal(*luck)
    assert 5 < acted < 25
    assert replay(with_xtc, model).same


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TypicalP(0), r"p must be in \(0, 1\], got 0"),
        (lambda: TopNSigma(0), "n must be a finite number > 0, got 0"),
        (lambda: TopNSigma(True), "n must be a finite number > 0, got True"),
        (lambda: XTC(1.5), r"probability must be in \[0, 1\], got 1.5"),
        (lambda: XTC(1.0, float("nan")), r"threshold must be in \[0, 1\], got nan"),
    ],
)
def test_bad_values(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
