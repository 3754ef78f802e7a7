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
    from .generation.loop import replay as replay
    from .generation.loop import stream as stream
    from .generation.results import Generation as Generation
    from .generation.results import Step as Step
    from .generation.scoring import score as score
    from .models import load as load
    from .sampling.chain import Chain as Chain
    from .sampling.cutoffs import EpsilonCutoff as EpsilonCutoff
    from .sampling.cutoffs import EtaCutoff as EtaCutoff
    from .sampling.cutoffs import MinP as MinP
    from .sampling.cutoffs import PLess as PLess
    from .sampling.cutoffs import TopA as TopA
    from .sampling.cutoffs import TopH as TopH
    from .sampling.ledger import Ledger as Ledger
    from .sampling.params import SamplingParams as SamplingParams
    from .sampling.penalties import Ban as Ban
    from .sampling.penalties import FrequencyPenalty as FrequencyPenalty
    from .sampling.penalties import LogitBias as LogitBias
    from .sampling.penalties import PresencePenalty as PresencePenalty
    from .sampling.penalties import RepetitionPenalty as RepetitionPenalty
    from .sampling.sequences import DRY as DRY
    from .sampling.sequences import LengthDecay as LengthDecay
    from .sampling.sequences import MinNewTokens as MinNewTokens
    from .sampling.sequences import NoRepeatNGram as NoRepeatNGram
    from .sampling.sequences import SequenceBias as SequenceBias
    from .sampling.temperature import DynamicTemperature as DynamicTemperature
    from .sampling.temperature import QuadraticSmoothing as QuadraticSmoothing
    from .sampling.temperature import Temperature as Temperature
    from .sampling.truncation import XTC as XTC
    from .sampling.truncation import AtLeast as AtLeast
    from .sampling.truncation import Mirostat as Mirostat
    from .sampling.truncation import TopK as TopK
    from .sampling.truncation import TopNSigma as TopNSigma
    from .sampling.truncation import TopP as TopP
    from .sampling.truncation import TypicalP as TypicalP
    from .snippets import as_code as as_code

__version__ = "0.1.0"

_MODULES = {
    "AtLeast": "sampling.truncation",
    "Ban": "sampling.penalties",
    "Chain": "sampling.chain",
    "DRY": "sampling.sequences",
    "DynamicTemperature": "sampling.temperature",
    "EpsilonCutoff": "sampling.cutoffs",
    "EtaCutoff": "sampling.cutoffs",
    "FrequencyPenalty": "sampling.penalties",
    "Generation": "generation.results",
    "Grid": "generation.grid",
    "Ledger": "sampling.ledger",
    "LengthDecay": "sampling.sequences",
    "LogitBias": "sampling.penalties",
    "MinNewTokens": "sampling.sequences",
    "MinP": "sampling.cutoffs",
    "Mirostat": "sampling.truncation",
    "NoRepeatNGram": "sampling.sequences",
    "PLess": "sampling.cutoffs",
    "PresencePenalty": "sampling.penalties",
    "QuadraticSmoothing": "sampling.temperature",
    "RepetitionPenalty": "sampling.penalties",
    "SamplingParams": "sampling.params",
    "SequenceBias": "sampling.sequences",
    "Step": "generation.results",
    "Temperature": "sampling.temperature",
    "TopA": "sampling.cutoffs",
    "TopH": "sampling.cutoffs",
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
    "replay": "generation.loop",
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
