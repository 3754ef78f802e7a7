"""The luck of one step, and what other settings would have made of it.

`temperature_map` tells which token one seed chooses at every temperature,
`what_would_it_take` at which settings it would choose a given one, and
`compare_frequencies` what many seeds choose beside the probabilities.
"""

from .frequencies import (
    FrequencyRow,
    FrequencyTest,
    SeedGrid,
    compare_frequencies,
    draw_many,
    seed_grid,
)
from .noise import (
    History,
    RaceRow,
    Slice,
    StepNoise,
    noise_of_step,
    race_rows,
    wheel_slices,
)
from .temperature_map import Flip, Segment, TemperatureMap, flips, temperature_map
from .what_would_it_take import WhatItTakes, smallest_k, smallest_p, what_would_it_take

__all__ = [
    "Flip",
    "FrequencyRow",
    "FrequencyTest",
    "History",
    "RaceRow",
    "SeedGrid",
    "Segment",
    "Slice",
    "StepNoise",
    "TemperatureMap",
    "WhatItTakes",
    "compare_frequencies",
    "draw_many",
    "flips",
    "noise_of_step",
    "race_rows",
    "seed_grid",
    "smallest_k",
    "smallest_p",
    "temperature_map",
    "what_would_it_take",
    "wheel_slices",
]
