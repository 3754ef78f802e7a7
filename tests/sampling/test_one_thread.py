"""Threads: one for small arithmetic, and the setting stays as it was."""

from __future__ import annotations

import pytest
import torch

from sampling_lab.sampling.one_thread import one_thread


@pytest.fixture(autouse=True)
def _threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_one_thread_inside_and_as_many_as_before_afterwards():
    with one_thread():
        assert torch.get_num_threads() == 1
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_an_error_restores_the_setting_too():
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert torch.get_num_threads() == 3
