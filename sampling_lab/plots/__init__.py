"""Pictures of sampling: numbers in, Axes out, never any global plotting state."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .distribution import caption as caption
    from .distribution import distribution_table as distribution_table
    from .distribution import plot_distribution as plot_distribution
    from .sweep import plot_temperature_sweep as plot_temperature_sweep
    from .sweep import sweep_table as sweep_table

_MODULES = {
    "caption": "distribution",
    "distribution_table": "distribution",
    "plot_distribution": "distribution",
    "plot_temperature_sweep": "sweep",
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
