"""Thousands of damaged files: each gives a model or a sentence, and runs nothing.

`make fuzz` tries 10,000; FUZZ sets the number.
"""

import os
import random
import resource
import signal
from contextlib import contextmanager

import pytest

from sampling_lab import load
from sampling_lab.errors import SamplingLabError
from tests.formats import FILES

COUNT = int(os.environ.get("FUZZ", 2000))
JSON_VALUES = ["null", "-1", "1e999", '"x"', "[]", "{}", "true", "9" * 400, "NaN"]


def flip(data, dice):
    """Flip one to eight bits."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 8)):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def cut(data, dice):
    """Leave out a part, of any length."""
    first, last = sorted(dice.choices(range(len(data) + 1), k=2))
    return data[:first] + data[last:]


def insert(data, dice):
    """Put in up to forty bytes."""
    at = dice.randrange(len(data))
    return data[:at] + dice.randbytes(dice.randint(1, 40)) + data[at:]


def swap(data, dice):
    """Move a part to the end."""
    first, last = sorted(dice.choices(range(len(data) + 1), k=2))
    return data[:first] + data[last:] + data[first:last]


def zero(data, dice):
    """Fill up to sixty bytes with zeros."""
    at, count = dice.randrange(len(data)), dice.randint(1, 60)
    return data[:at] + bytes(len(data[at : at + count])) + data[at + count :]


def repeat(data, dice):
    """Write a part a hundred times: lists and names too many, brackets too deep."""
    at = dice.randrange(len(data))
    return data[:at] + data[at : at + dice.randint(1, 4)] * 100 + data[at:]


def value(data, dice):
    """Replace a number or a word by what nobody expects there."""
    at = data.find(b":", dice.randrange(len(data)))
    ends = [end for end in map(lambda c: data.find(c, at), b",}\n") if end > at]
    if at < 0 or not ends:
        return flip(data, dice)
    return data[: at + 1] + dice.choice(JSON_VALUES).encode() + data[min(ends) :]


CHANGES = (flip, cut, insert, swap, zero, repeat, value)


@contextmanager
def mutated(path, name, number):
    """Damage one of a checkpoint's files for a while."""
    dice = random.Random(f"{name}/{number}")
    files = sorted(f for f in path.rglob("*") if f.is_file()) or [path]
    file = dice.choice([path / FILES[name].weights, *files])
    data = file.read_bytes()
    file.write_bytes(dice.choice(CHANGES)(data, dice))
    try:
        yield
    finally:
        file.write_bytes(data)


@contextmanager
def limited(seconds, megabytes):
    """Fail after so much processor time, or when memory has grown by more."""

    def stop(*_):
        raise TimeoutError(f"took more than {seconds} s of processor time")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < megabytes * 1024


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_damage_gives_a_model_or_a_sentence(name, tmp_path):
    path, refused = FILES[name].copy(tmp_path), 0
    for number in range(COUNT // len(FILES)):
        with mutated(path, name, number), limited(5, 200):
            try:
                load(path)
            except SamplingLabError as error:
                refused += 1
                assert "\n" not in str(error) and len(str(error)) <= 600, number
    assert refused > COUNT // len(FILES) // 4
