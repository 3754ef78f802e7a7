"""How a language model's next-token scores become the next token, step by step.

The public names are loaded when they are first used, so that `import sampling_lab`
costs next to nothing. The widgets are in `sampling_lab.explorer`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chain import Chain as Chain
    from .chain import Ledger as Ledger
    from .engines import compare_dialects as compare_dialects
    from .engines import run_dialects as run_dialects
    from .generation import fork as fork
    from .generation import generate as generate
    from .generation import stream as stream
    from .grid import Grid as Grid
    from .models import load as load
    from .params import SamplingParams as SamplingParams
    from .results import Generation as Generation
    from .results import Step as Step
    from .scoring import score as score
    from .stages import MinP as MinP
    from .stages import Temperature as Temperature
    from .stages import TopK as TopK
    from .stages import TopP as TopP

__version__ = "0.1.0"

_MODULES = {
    "Chain": "chain",
    "Generation": "results",
    "Grid": "grid",
    "Ledger": "chain",
    "MinP": "stages",
    "SamplingParams": "params",
    "Step": "results",
    "Temperature": "stages",
    "TopK": "stages",
    "TopP": "stages",
    "compare_dialects": "engines",
    "fork": "generation",
    "generate": "generation",
    "load": "models",
    "run_dialects": "engines",
    "score": "scoring",
    "stream": "generation",
}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Import the module that holds a public name, the first time it is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
