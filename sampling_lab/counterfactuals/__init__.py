"""Counterfactuals: the random numbers of one step under other settings.

`temperature_map` finds the token that one seed chooses at every temperature,
`what_would_it_take` the settings at which it would choose a given token, and
`compare_frequencies` compares the tokens of many seeds with their probabilities.
"""

from ..sampling.history import History as History
from .envelope import Segment as Segment
from .frequencies import FrequencyRow as FrequencyRow
from .frequencies import FrequencyTest as FrequencyTest
from .frequencies import SeedGrid as SeedGrid
from .frequencies import compare_frequencies as compare_frequencies
from .frequencies import draw_many as draw_many
from .frequencies import seed_grid as seed_grid
from .noise import RaceRow as RaceRow
from .noise import Slice as Slice
from .noise import StepNoise as StepNoise
from .noise import noise_of_step as noise_of_step
from .noise import race_rows as race_rows
from .noise import wheel_slices as wheel_slices
from .temperature_map import Flip as Flip
from .temperature_map import TemperatureMap as TemperatureMap
from .temperature_map import temperature_map as temperature_map
from .what_would_it_take import WhatItTakes as WhatItTakes
from .what_would_it_take import smallest_k as smallest_k
from .what_would_it_take import smallest_p as smallest_p
from .what_would_it_take import what_would_it_take as what_would_it_take
