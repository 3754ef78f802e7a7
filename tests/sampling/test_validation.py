"""The rules of parameters: what is accepted, what is off, what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from sampling_lab.errors import ParameterError
from sampling_lab.sampling import validation


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), Fraction(1, 2), -0.0])
def test_real_numbers_become_floats(value):
    number = validation.TEMPERATURE("temperature", value)
    assert type(number) is float
    assert number == value
    assert str(number)[0] != "-"


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1e-9, True, "1", None, 1j, [1], 10**400]
)
def test_other_values_are_named(value):
    with pytest.raises(ParameterError, match="heat must be a finite number >= 0, got"):
        validation.TEMPERATURE("heat", value)


def test_off_has_one_spelling():
    rule = validation.Number("in [0, 1]", 0.0, 1.0, off=(0.0,))
    assert rule("x", 0) is rule("x", None) is rule("x", -0.0) is None
    assert rule("x", 1) == 1.0
    whole = validation.Integer("an integer >= 1 or 0", off=(0,))
    assert whole("k", 0) is whole("k", None) is None
    assert type(whole("k", np.int64(3))) is int


def test_bounds_are_open_or_closed():
    assert validation.PROBABILITY("top_p", 1) == 1.0
    with pytest.raises(ParameterError, match=r"top_p must be in \(0, 1\], got 0"):
        validation.PROBABILITY("top_p", 0)


@pytest.mark.parametrize("value", [0, True, "a", None])
def test_one_of_compares_the_type_too(value):
    with pytest.raises(ParameterError, match="x must be one of False, 1, 'b', got"):
        validation.one_of(False, 1, "b")("x", value)
    assert validation.one_of(False, 1, "b")("x", 1) == 1


@pytest.mark.parametrize("value", [1.0, np.int64(1), np.uint64(1), 1])
def test_whole_seeds(value):
    assert validation.seed("seed", value) == 1
    assert type(validation.seed("seed", value)) is int


@pytest.mark.parametrize("value", [True, "1", 2**64, -5, 1.5, float("nan"), b"1"])
def test_other_seeds(value):
    with pytest.raises(ParameterError, match=r"seed must be an integer in \[0"):
        validation.seed("seed", value)
