"""The luck of one step, and what other settings would have made of it.

`temperature_map` tells which token one seed chooses at every temperature,
`what_would_it_take` at which settings it would choose a given one, and
`compare_with_theory` what many seeds choose beside the probabilities.
"""

from .frequencies import (
    SeedGrid,
    TheoryCheck,
    TheoryRow,
    compare_with_theory,
    draw_many,
    seed_grid,
)
from .noise import (
    History,
    Luck,
    RaceRow,
    Slice,
    luck_of,
    race_rows,
    wheel_slices,
)
from .temperature_map import Flip, Segment, TemperatureMap, flips, temperature_map
from .what_would_it_take import Reach, smallest_k, smallest_p, what_would_it_take

__all__ = [
    "Flip",
    "History",
    "Luck",
    "RaceRow",
    "Reach",
    "SeedGrid",
    "Segment",
    "Slice",
    "TemperatureMap",
    "TheoryCheck",
    "TheoryRow",
    "compare_with_theory",
    "draw_many",
    "flips",
    "luck_of",
    "race_rows",
    "seed_grid",
    "smallest_k",
    "smallest_p",
    "temperature_map",
    "what_would_it_take",
    "wheel_slices",
]
