"""Fast ways give the bits of the plain ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab.sampling.sorting import (
    by_rank,
    count_from,
    is_below,
    keep_from,
    kth_highest,
    sorted_by,
    sorted_values,
)
from tests.sampling.test_stage import INF, adversarial, rows

both = st.sampled_from([torch.float32, torch.float64])


@given(rows, both)
def test_sorted_values_are_what_torch_sorts(row, dtype):
    logits = torch.tensor([row, row[::-1]], dtype=dtype)
    assert torch.equal(sorted_values(logits), torch.sort(logits).values)


@given(
    st.integers(1, 700),
    st.floats(0, 1),
    st.integers(0, 2**32),
    st.sampled_from([0.01, 3.0, 30.0]),
    both,
)
def test_holes_left_out_of_a_sorted_row_change_no_bit(size, share, seed, width, dtype):
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(size, generator=generator) * width).to(dtype)
    logits[1:][torch.rand(size - 1, generator=generator) < share] = -INF
    whole, found = torch.sort(logits).values, sorted_values(logits)
    assert torch.equal(found, whole[size - len(found) :])
    assert (size - len(found)) % 64 == 0
    assert len(found) < (logits > -INF).sum() + 64
    probs = whole.softmax(-1)[size - len(found) :]
    assert torch.equal(found.softmax(-1), probs)
    assert torch.equal(found.softmax(-1).cumsum(-1), probs.cumsum(-1))


@given(rows, both, st.data())
def test_the_kth_highest_and_what_is_below_it(row, dtype, data):
    logits = torch.tensor(row, dtype=dtype)
    k = data.draw(st.integers(1, len(row)))
    least = kth_highest(logits, k)
    assert torch.equal(least, logits.topk(k).values[-1:])
    cut = keep_from(logits, least)
    assert torch.equal(cut, logits.masked_fill(logits < least, -INF))
    assert torch.equal(is_below(logits, least), logits < least)
    assert count_from(logits, least).tolist() == [int((logits >= least).sum())]
    pair = torch.stack([logits, logits.flip(0)])
    assert torch.equal(keep_from(pair, kth_highest(pair, k))[0], cut)


@pytest.mark.parametrize(
    "least", [-INF, -3.4028234663852886e38, -1e-45, -0.0, 0.0, 1e-45, 1.0]
)
def test_the_value_just_below_is_cut(least):
    least = torch.tensor([least])
    below = torch.nextafter(least, torch.tensor([-INF]))
    logits = torch.cat([least, below, torch.tensor([2.0])])
    expected = logits.masked_fill(logits < least, -INF)
    assert torch.equal(keep_from(logits, least), expected)


def check_sorted_by(keys, logits):
    """Compare with a sort and a gather, and the probabilities along the order."""
    whole, order = torch.sort(keys)
    ordered, found = sorted_by(keys, logits)
    size = len(ordered)
    assert torch.equal(ordered, whole[:size])
    assert torch.equal(found, logits[order][:size])
    assert (whole[size:] == INF).all()
    expected = logits[order].softmax(-1)
    assert torch.equal(found.softmax(-1), expected[:size])
    assert torch.equal(found.softmax(-1).cumsum(-1), expected.cumsum(-1)[:size])


@given(
    st.integers(1, 300),
    st.floats(0, 1),
    st.integers(0, 2**32),
    st.sampled_from([0, 1, 7]),
)
def test_sorted_by_is_sort_and_gather(size, share, seed, decimals):
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(size, generator=generator).abs().round(decimals=decimals)
    logits = torch.randn(size, generator=generator).round(decimals=decimals)
    gone = torch.rand(size, generator=generator) < share
    gone[0] = False
    check_sorted_by(keys.masked_fill(gone, INF), logits.masked_fill(gone, -INF))


@pytest.mark.parametrize("kind", ["plain", "ties", "bf16", "flat", "holes", "steep"])
@pytest.mark.parametrize("size", [1025, 50_304])
def test_sorted_by_over_a_vocabulary(kind, size):
    logits = adversarial(size, kind)
    check_sorted_by((-logits.log_softmax(-1) - 3.0).abs(), logits)


def test_zero_and_minus_zero_are_equal_keys():
    keys = torch.tensor([0.0, -0.0, 0.0]).abs()
    keys[1] = -0.0
    values = torch.tensor([1.0, 1.0, 1.0])
    assert sorted_by(keys, values)[0].tolist() == [0.0, 0.0, 0.0]


@given(rows, both)
def test_by_rank_is_a_stable_sort_of_what_is_possible(row, dtype):
    ids = [i for i in range(len(row)) if row[i] > -INF]
    expected = sorted(ids, key=lambda i: -row[i])
    assert by_rank(torch.tensor(row, dtype=dtype)).tolist() == expected


@pytest.mark.parametrize("kind", ["plain", "ties", "bf16", "flat", "holes", "steep"])
def test_by_rank_over_a_vocabulary(kind):
    logits = adversarial(50_304, kind)
    order = torch.sort(logits, descending=True, stable=True).indices
    assert torch.equal(by_rank(logits), order[: int((logits > -INF).sum())])


def test_zero_and_minus_zero_are_equal_ranks():
    assert by_rank(torch.tensor([-0.0, 0.0, -0.0, 1.0, -1.0])).tolist() == [
        3,
        0,
        1,
        2,
        4,
    ]
