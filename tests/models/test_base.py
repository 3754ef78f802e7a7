"""Prefix reuse, remembered logits, and what every model checks."""

import hashlib
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling_lab.errors import PromptError
from sampling_lab.models.base import CachedModel, ModelCard
from tests.fakes import TableModel


def card(**changes):
    fields = {
        "name": "fake",
        "format": "fake",
        "parameters": 134_515_008,
        "vocab_size": 50,
        "context_length": 8192,
        "dtype": "float32",
        "device": "cpu",
        "dialect": "transformers",
    }
    return ModelCard(**{**fields, **changes})


class HashModel(CachedModel):
    """Logits that depend on every id of the prefix, through a cache of its own."""

    def __init__(self, can_truncate=True, **options):
        super().__init__(card(), None, **options)
        self.can_truncate = can_truncate
        self.cache = []
        self.computed = []
        self.broken = False

    def _extend(self, new_ids, past_length):
        assert past_length == len(self.cache)
        self.cache.extend(new_ids)
        self.computed.append(len(new_ids))
        if self.broken:
            raise RuntimeError("broken")
        seed = int.from_bytes(hashlib.sha256(bytes(self.cache)).digest()[:6])
        return torch.randn(50, generator=torch.Generator().manual_seed(seed))

    def _truncate(self, length):
        if self.can_truncate:
            del self.cache[length:]
        return self.can_truncate

    def _clear(self):
        self.cache.clear()


def fresh(ids):
    return HashModel().logits(ids)


prefixes = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(prefixes, st.booleans(), st.sampled_from([1, 1000, 1 << 20]))
def test_any_order_of_prefixes_gives_what_a_fresh_model_gives(
    rows, can_truncate, memory_bytes
):
    model = HashModel(can_truncate, memory_bytes=memory_bytes)
    for row in rows:
        assert torch.equal(model.logits(row), fresh(row))


def test_only_what_is_new_is_computed():
    model = HashModel()
    for row in ([1, 2, 3], [1, 2, 3, 4], [1, 2, 9], [1, 2, 3, 4], [1, 2, 3]):
        model.logits(row)
    assert model.computed == [3, 1, 1]
    assert model.forward_passes == 3


def test_a_cache_that_cannot_be_cut_is_started_again():
    model = HashModel(can_truncate=False)
    for row in ([1, 2, 3], [1, 2, 3, 4], [1, 2]):
        model.logits(row)
    assert model.computed == [3, 1, 2]


def test_a_failed_pass_leaves_no_half_written_cache():
    model = HashModel()
    model.logits([1, 2])
    model.broken = True
    with pytest.raises(RuntimeError):
        model.logits([1, 2, 3])
    model.broken = False
    assert torch.equal(model.logits([1, 2, 3]), fresh([1, 2, 3]))


def test_reset_forgets_everything():
    model = HashModel()
    model.logits([1, 2, 3])
    model.reset()
    model.logits([1, 2, 3])
    assert model.computed == [3, 3]


def test_memory_is_bounded_and_the_oldest_goes_first():
    model = HashModel(memory_bytes=600)  # for two rows of 200 bytes with their keys
    for row in ([1], [1, 2], [1, 2, 3], [1, 2]):
        model.logits(row)
    assert model.computed == [1, 1, 1]
    model.logits([1])
    assert model.computed == [1, 1, 1, 1]


def test_a_prefix_that_grows_finds_what_its_ids_are_remembered_by():
    model = HashModel()
    prefix = model.prefix([1, 2])
    for token_id in (3, 300 % 50, 4):
        prefix.append(token_id)
        assert torch.equal(model.logits(prefix), fresh(prefix.ids))
        assert prefix.key == model.prefix(tuple(prefix.ids)).key
    model.logits([1, 2, 3, 0, 4])
    model.logits_batch([prefix, [1, 2, 3]])
    assert model.computed == [3, 1, 1]
    assert model.prefix(prefix) is prefix
    with pytest.raises(PromptError, match=r"got 50 at position 1"):
        model.prefix([0, 50])


def test_the_keys_of_remembered_logits_count_as_memory():
    long, model = [7] * 30, HashModel(memory_bytes=2 * 50 * 4)  # no room for two keys
    for row in (long, [7], long):
        model.logits(row)
    assert model.forward_passes == 3


def test_logits_are_a_copy():
    model = TableModel(torch.eye(3))
    model.logits([0]).zero_()
    assert model.logits([0]).tolist() == [1, 0, 0]


def test_a_batch_equals_its_rows():
    rows = [[1, 2, 3], [1], [4, 4, 4, 4]]
    batch = HashModel().logits_batch(rows)
    assert torch.equal(batch, torch.stack([fresh(row) for row in rows]))


def test_numpy_ids_become_ints():
    ids = TableModel(torch.eye(3)).check_ids(np.array([0, 2]))
    assert ids == (0, 2)
    assert all(type(token_id) is int for token_id in ids)


@pytest.mark.parametrize("ids", [[], [3], [-1], [True], [0.0], ["0"], [None]])
def test_bad_ids(ids):
    with pytest.raises(PromptError, match="token ids must"):
        TableModel(torch.eye(3)).logits(ids)


def test_card_digest_is_over_the_files_in_order(tmp_path):
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    files = (tmp_path / "a", tmp_path / "b")
    assert card(files=files).digest == hashlib.sha256(b"onetwo").hexdigest()
    assert card().digest is None


def test_card_is_strict_json_and_one_line():
    data = json.loads(json.dumps(card(stop_token_ids=(2,)).to_dict(), allow_nan=False))
    assert data["stop_token_ids"] == [2]
    assert card().summary() == (
        "fake · fake · 134.5M parameters · vocabulary 50 · context 8,192 · float32 · "
        "dialect transformers"
    )
