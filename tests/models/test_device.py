"""Devices and dtypes by name, and a sentence for those that are not there."""

import pytest
import torch

from sampling_lab.errors import ParameterError
from sampling_lab.models.device import find_device, find_dtype


def test_auto_is_what_there_is():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert find_device("auto").type == expected
    assert find_dtype("auto", torch.bfloat16) is torch.bfloat16


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "float64"])
def test_names_are_torchs_own(name):
    assert find_dtype(name, torch.float32) is getattr(torch, name)
    assert find_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["abacus", "", "cpu:x", "meta", "cuda:99", None])
def test_what_is_not_there_is_said(name):
    with pytest.raises(ParameterError, match="device must") as caught:
        find_device(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["int8", "fp32", "", None])
def test_only_float_types_are_dtypes(name):
    with pytest.raises(ParameterError, match="dtype must be auto or float32"):
        find_dtype(name, torch.float32)
