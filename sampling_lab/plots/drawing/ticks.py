"""Round numbers for the marks of an axis: few enough to be read."""

from __future__ import annotations

import math

_SERIES = (1, 2, 5)


def step_marks(first: int, last: int, most: int) -> list[int]:
    """Return whole numbers from first to last, about `most` at most.

    >>> step_marks(1, 64, 14)
    [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60]
    """
    steps = (m * 10**e for e in range(10) for m in _SERIES)
    step = next(step for step in steps if (last - first) / step <= most)
    multiples = range(-(-first // step) * step, last + 1, step)
    return [first, *(mark for mark in multiples if mark - first > 0.6 * step)]


def even_marks(highest: float) -> list[float]:
    """Return 0 and one or two numbers evenly apart, up to at least half of it.

    >>> even_marks(7.3), even_marks(0.4), even_marks(14.0)
    ([0.0, 5.0], [0.0, 1.0], [0.0, 10.0])
    """
    highest = max(highest, 1.0)
    tens = 10.0 ** math.floor(math.log10(highest))
    step = tens * next(m for m in _SERIES if highest < 3 * m * tens)
    return [step * at for at in range(int(highest / step) + 1)]


def decade_marks(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten between two ends > 0, with 2s and 5s where they fit.

    >>> decade_marks(0.03, 0.3, 5), decade_marks(0.005, 300, 5)
    ([0.05, 0.1, 0.2], [0.01, 0.1, 1.0, 10.0, 100.0])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [float(f"{m}e{e}") for e in decades for m in _SERIES]
    marks = [mark for mark in marks if low <= mark <= high]
    if len(marks) <= most:
        return marks
    tens = [10.0**e for e in decades if low <= 10.0**e <= high]
    return tens[:: math.ceil(len(tens) / most)]
