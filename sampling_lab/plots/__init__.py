"""Pictures of sampling: numbers in, Axes out, never any global plotting state."""

from .dialects import (
    dialects_table,
    distance_table,
    plot_dialect_distance,
    plot_dialects,
)
from .distribution import plot_distribution
from .distribution_rows import caption, distribution_table
from .frequencies import plot_frequencies
from .race import plot_race
from .stages import plot_stages
from .stages_rows import stages_table
from .staircase import plot_staircase, staircase_table
from .steps import plot_steps
from .steps_rows import steps_table
from .sweep import plot_temperature_sweep, sweep_table
from .temperature_map import plot_race_lines, plot_seed_grid, plot_temperature_map
from .wheel import plot_wheel

__all__ = [
    "caption",
    "dialects_table",
    "distance_table",
    "distribution_table",
    "plot_dialect_distance",
    "plot_dialects",
    "plot_distribution",
    "plot_frequencies",
    "plot_race",
    "plot_race_lines",
    "plot_seed_grid",
    "plot_stages",
    "plot_staircase",
    "plot_steps",
    "plot_temperature_map",
    "plot_temperature_sweep",
    "plot_wheel",
    "stages_table",
    "staircase_table",
    "steps_table",
    "sweep_table",
]
