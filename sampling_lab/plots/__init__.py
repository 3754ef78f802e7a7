"""Pictures of sampling: numbers in, Axes out, never any global plotting state."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dialects import dialects_table as dialects_table
    from .dialects import distance_table as distance_table
    from .dialects import plot_dialect_distance as plot_dialect_distance
    from .dialects import plot_dialects as plot_dialects
    from .distribution import plot_distribution as plot_distribution
    from .distribution_rows import caption as caption
    from .distribution_rows import distribution_table as distribution_table
    from .frequencies import plot_frequencies as plot_frequencies
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

_MODULES = {
    "caption": "distribution_rows",
    "dialects_table": "dialects",
    "distance_table": "dialects",
    "distribution_table": "distribution_rows",
    "plot_dialect_distance": "dialects",
    "plot_dialects": "dialects",
    "plot_distribution": "distribution",
    "plot_race": "race",
    "plot_race_lines": "temperature_map",
    "plot_seed_grid": "temperature_map",
    "plot_stages": "stages",
    "plot_staircase": "staircase",
    "plot_steps": "steps",
    "plot_temperature_map": "temperature_map",
    "plot_temperature_sweep": "sweep",
    "plot_frequencies": "frequencies",
    "plot_wheel": "wheel",
    "stages_table": "stages_rows",
    "staircase_table": "staircase",
    "steps_table": "steps_rows",
    "sweep_table": "sweep",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import the module that holds a plot, the first time it is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
