"""Fast ways give the bits of the plain ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab.sampling.sorting import by_rank, sorted_values
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
