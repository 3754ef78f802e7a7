"""Pictures of sampling: numbers in, Axes out, never any global plotting state."""

from .dialects import distance_table as distance_table
from .dialects import plot_dialect_distance as plot_dialect_distance
from .dialects import plot_dialects as plot_dialects
from .distribution import plot_distribution as plot_distribution
from .distribution_rows import caption as caption
from .distribution_rows import distribution_table as distribution_table
from .frequencies import plot_frequencies as plot_frequencies
from .mirostat import mirostat_table as mirostat_table
from .mirostat import plot_mirostat as plot_mirostat
from .race import plot_race as plot_race
from .stages import plot_stages as plot_stages
from .stages_rows import stages_table as stages_table
from .staircase import plot_staircase as plot_staircase
from .staircase import staircase_table as staircase_table
from .steps import plot_steps as plot_steps
from .steps_rows import steps_table as steps_table
from .sweep import plot_temperature_sweep as plot_temperature_sweep
from .sweep import sweep_table as sweep_table
from .temperature_map import plot_race_lines as plot_race_lines
from .temperature_map import plot_seed_grid as plot_seed_grid
from .temperature_map import plot_temperature_map as plot_temperature_map
from .wheel import plot_wheel as plot_wheel
