"""Round numbers for the ticks of an axis: few enough to be read."""

from __future__ import annotations

import math

from matplotlib.ticker import LogLocator, MaxNLocator

_STEPS = (1, 2, 5, 10)


def step_ticks(first: int, last: int, most: int) -> list[int]:
    """Return `first` and round whole numbers up to `last`, about `most` at most.

    >>> step_ticks(1, 64, 14)
    [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60]
    """
    locator = MaxNLocator(most, steps=_STEPS, integer=True)
    found = [round(tick) for tick in locator.tick_values(first, last)]
    nearest = first + 0.6 * (found[1] - found[0])
    return [first, *(tick for tick in found if nearest < tick <= last)]


def even_ticks(highest: float) -> list[float]:
    """Return 0 and one to three multiples of a round step, up to `highest`.

    >>> even_ticks(7.3), even_ticks(0.4), even_ticks(41.0)
    ([0.0, 5.0], [0.0, 0.5, 1.0], [0.0, 20.0, 40.0])
    """
    highest = max(highest, 1.0)
    found = MaxNLocator(3, steps=_STEPS).tick_values(0.0, highest)
    return [float(tick) for tick in found if tick <= highest]


def decade_ticks(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten between two ends > 0, with 2s and 5s where they fit.

    >>> decade_ticks(0.03, 0.3, 5), decade_ticks(0.005, 300, 5)
    ([0.05, 0.1, 0.2], [0.01, 0.1, 1.0, 10.0, 100.0])
    """
    ticks: list[float] = []
    for subs in ((1.0, 2.0, 5.0), (1.0,)):
        found = LogLocator(subs=subs, numticks=most).tick_values(low, high)
        ticks = [float(tick) for tick in found if low <= tick <= high]
        if 0 < len(ticks) <= most:  # 2s and 5s of far too many decades are left out
            break
    return ticks[:: max(1, math.ceil(len(ticks) / most))]
