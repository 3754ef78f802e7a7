"""Counterfactuals: the random numbers of one step under other settings.

`temperature_map` finds the token that one seed chooses at every temperature,
`what_would_it_take` the settings at which it would choose a given token, and
`compare_frequencies` compares the tokens of many seeds with their probabilities.
"""

from .envelope import Segment
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
from .temperature_map import Flip, TemperatureMap, flips, temperature_map
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
