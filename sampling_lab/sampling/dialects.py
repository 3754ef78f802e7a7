"""How each engine orders its stages, breaks ties and draws, as data.

A dialect that is not checked follows the engine's sources at the commit that
`mirrors` names; `remarks` lists known differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..errors import ParameterError

_ALL_PENALTIES = frozenset(
    (
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "no_repeat_ngram_size",
    )
)


@dataclass(frozen=True)
class Dialect:
    """The rules of one engine.

    Attributes:
        name: what `SamplingParams.dialect` and a model's card call it.
        own: the parameters that the engine itself has, in the order it applies them.
        ties: at the k-th logit, "kept" or "lowest_id" (see `TopK`).
        nucleus: "descending", "exceeding" or "ascending" (see `TopP`).
        draw: a name in `draws.DRAWS`.
        mirrors: the engine and version whose rules these are.
        checked: whether the tests prove it against the engine itself.
        counts_prompt: the parameters that count the prompt's tokens as earlier ones.
        defaults: the engine's own values where a user sets none.
        remarks: where the lab differs from the engine.
        shifted: divide logit minus highest by the temperature (see `Temperature`).
        any_seed: its own draw takes every integer, not only those in [0, 2**64).
    """

    name: str
    own: tuple[str, ...]
    ties: str
    nucleus: str
    draw: str
    mirrors: str
    checked: bool
    counts_prompt: frozenset[str] = _ALL_PENALTIES
    defaults: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    remarks: str = ""
    shifted: bool = False
    any_seed: bool = False

    @property
    def status(self) -> str:
        """Whether the tests prove these rules against the engine."""
        return f"{'' if self.checked else 'not '}checked against the engine"

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as a row for a table."""
        return {
            "dialect": self.name,
            "order": " → ".join(name.replace("_", "-") for name in self.own),
            "ties at k": _TIES[self.ties],
            "nucleus": _NUCLEUS[self.nucleus],
            "draw": self.draw,
            "defaults": ", ".join(f"{k} {v:g}" for k, v in self.defaults.items()),
            "mirrors": self.mirrors,
            "status": self.status,
            "remarks": self.remarks,
        }


_TIES = {"kept": "all kept", "lowest_id": "exactly k, lowest ids"}
_NUCLEUS = {
    "descending": "from the top, the token that reaches p stays",
    "exceeding": "from the top, the token that passes p stays",
    "ascending": "from the bottom, removed while the mass is at most 1 - p",
}

_XSLM = Dialect(
    name="xslm",
    own=("top_k", "temperature"),
    ties="lowest_id",
    nucleus="descending",
    draw="choices",
    mirrors="XSLM",
    checked=True,
    defaults=MappingProxyType({"temperature": 0.8, "top_k": 8, "seed": 7}),
    shifted=True,
    any_seed=True,
)

_SCRATCH_LLM = Dialect(
    name="scratch_llm",
    own=("temperature", "top_k", "top_p"),
    ties="kept",
    nucleus="exceeding",
    draw="race",
    mirrors="train-llm-from-scratch",
    checked=True,
    defaults=MappingProxyType({"temperature": 0.8, "top_p": 0.95}),
)

_TRANSFORMERS = Dialect(
    name="transformers",
    own=(
        "logit_bias",
        "repetition_penalty",
        "no_repeat_ngram_size",
        "banned_token_ids",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
    ),
    ties="kept",
    nucleus="ascending",
    draw="race",
    mirrors="transformers 5.24, generation/logits_process.py",
    checked=True,
    defaults=MappingProxyType({"temperature": 1.0, "top_k": 50}),
    remarks="frequency and presence penalties, which it lacks, count the prompt too",
)

_LLAMA_CPP = Dialect(
    name="llama.cpp",
    own=(
        "logit_bias",
        "banned_token_ids",
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "top_n_sigma",
        "top_k",
        "typical_p",
        "top_p",
        "min_p",
        "xtc_probability",
        "temperature",
    ),
    ties="lowest_id",
    nucleus="descending",
    draw="race",
    mirrors="llama.cpp, src/llama-sampler.cpp and common/sampling.cpp at 00efb3e",
    checked=False,
    defaults=MappingProxyType(
        {
            "temperature": 0.8,
            "top_k": 40,
            "top_p": 0.95,
            "min_p": 0.05,
            "penalty_window": 64,
        }
    ),
    remarks="it draws and tosses its coin with C++'s mt19937; which of several tied "
    "tokens it keeps depends on its sort; a ban is a bias of minus infinity",
)

_VLLM = Dialect(
    name="vllm",
    own=(
        "banned_token_ids",
        "logit_bias",
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "temperature",
        "min_p",
        "top_k",
        "top_p",
    ),
    ties="kept",
    nucleus="ascending",
    draw="race",
    mirrors="vLLM, v1/sample (PyTorch path) at 01fa3fe and sampling_params.py at "
    "00388f6",
    checked=False,
    counts_prompt=frozenset(("repetition_penalty", "no_repeat_ngram_size")),
    defaults=MappingProxyType({"temperature": 1.0}),
    remarks="its GPU kernels find the same sets without a sort and draw otherwise; "
    "a temperature above 0 is at least 0.01",
)

_MLX = Dialect(
    name="mlx",
    own=(
        "logit_bias",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "top_p",
        "min_p",
        "xtc_probability",
        "top_k",
        "temperature",
    ),
    ties="lowest_id",
    nucleus="ascending",
    draw="race",
    mirrors="mlx-lm, sample_utils.py at 037c9b3",
    checked=False,
    defaults=MappingProxyType({"temperature": 0.0, "penalty_window": 20}),
    remarks="it draws by Gumbel noise, a race in other words, with its own numbers; "
    "which of several tied tokens it keeps depends on its partition; XTC takes a "
    "probability above the threshold, not at it",
)

_OLLAMA = Dialect(
    name="ollama",
    own=("top_k", "temperature", "top_p", "min_p"),
    ties="lowest_id",
    nucleus="exceeding",
    draw="choices",
    mirrors="Ollama's own engine, sample/samplers.go at 0117cd8 and transforms.go",
    checked=False,
    defaults=MappingProxyType({"temperature": 0.8, "top_k": 40, "top_p": 0.9}),
    remarks="it draws with Go's PCG; which of several tied tokens it keeps depends on "
    "its heap; models that it runs with llama.cpp follow that",
    shifted=True,
)

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        _XSLM,
        _SCRATCH_LLM,
        _TRANSFORMERS,
        _LLAMA_CPP,
        _VLLM,
        _MLX,
        _OLLAMA,
    )
}
"""The dialects by name."""

DEFAULT_DIALECT = "transformers"


def find_dialect(name: str) -> Dialect:
    """Return a dialect by name.

    Raises:
        ParameterError: an unknown name; the message lists the known ones.
    """
    if not isinstance(name, str) or name not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise ParameterError(f"dialect must be one of {known} or None, got {name!r}")
    return DIALECTS[name]
