"""How a language model's next-token scores become the next token, step by step.

The public names are loaded when they are first used, so that `import sampling_lab`
costs next to nothing. The widgets are in `sampling_lab.explorer`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .generation.compare_dialects import compare_dialects as compare_dialects
    from .generation.compare_dialects import run_dialects as run_dialects
    from .generation.grid import Grid as Grid
    from .generation.loop import fork as fork
    from .generation.loop import generate as generate
    from .generation.loop import stream as stream
    from .generation.results import Generation as Generation
    from .generation.results import Step as Step
    from .generation.scoring import score as score
    from .models import load as load
    from .sampling.chain import Chain as Chain
    from .sampling.ledger import Ledger as Ledger
    from .sampling.params import SamplingParams as SamplingParams
    from .sampling.penalties import Ban as Ban
    from .sampling.penalties import FrequencyPenalty as FrequencyPenalty
    from .sampling.penalties import LogitBias as LogitBias
    from .sampling.penalties import NoRepeatNGram as NoRepeatNGram
    from .sampling.penalties import PresencePenalty as PresencePenalty
    from .sampling.penalties import RepetitionPenalty as RepetitionPenalty
    from .sampling.stage import Temperature as Temperature
    from .sampling.truncation import XTC as XTC
    from .sampling.truncation import MinP as MinP
    from .sampling.truncation import TopK as TopK
    from .sampling.truncation import TopNSigma as TopNSigma
    from .sampling.truncation import TopP as TopP
    from .sampling.truncation import TypicalP as TypicalP
    from .snippets import as_code as as_code

__version__ = "0.1.0"

_MODULES = {
    "Ban": "sampling.penalties",
    "Chain": "sampling.chain",
    "FrequencyPenalty": "sampling.penalties",
    "Generation": "generation.results",
    "Grid": "generation.grid",
    "Ledger": "sampling.ledger",
    "LogitBias": "sampling.penalties",
    "MinP": "sampling.truncation",
    "NoRepeatNGram": "sampling.penalties",
    "PresencePenalty": "sampling.penalties",
    "RepetitionPenalty": "sampling.penalties",
    "SamplingParams": "sampling.params",
    "Step": "generation.results",
    "Temperature": "sampling.stage",
    "TopK": "sampling.truncation",
    "TopNSigma": "sampling.truncation",
    "TopP": "sampling.truncation",
    "TypicalP": "sampling.truncation",
    "XTC": "sampling.truncation",
    "as_code": "snippets",
    "compare_dialects": "generation.compare_dialects",
    "fork": "generation.loop",
    "generate": "generation.loop",
    "load": "models",
    "run_dialects": "generation.compare_dialects",
    "score": "generation.scoring",
    "stream": "generation.loop",
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
