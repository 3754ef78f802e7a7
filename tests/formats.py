"""One entry for each checkpoint format, for tests that hold for all of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    MambaConfig,
    MistralConfig,
    PreTrainedConfig,
    RwkvConfig,
)

from sampling_lab import load
from sampling_lab.models.base import Model
from sampling_lab.models.huggingface.model import HuggingFaceModel
from tests import tiny
from tests.helpers import ROOT


@dataclass(frozen=True)
class Format:
    """A checkpoint format.

    Attributes:
        name: as in `sampling_lab.models.formats`.
        path: its checkpoint in the repository, or where `fetch` puts it.
        copy: writes a small checkpoint into a folder; returns what `load` takes.
        cut_short: a pattern of what is said about half of a file.
        weights: the file with the weights, inside a directory.
        tolerance: of logits that were computed along different paths.
    """

    name: str
    path: Path
    copy: Callable[[Path], Path]
    cut_short: str
    weights: str = ""
    tolerance: dict[str, float] = field(default_factory=lambda: close(1e-5))

    def load(self) -> Model:
        """Return its checkpoint, loaded once for all tests."""
        return loaded(self.existing())

    def existing(self) -> Path:
        """Return the path of its checkpoint, or skip the test."""
        if not self.path.exists():
            pytest.skip("SmolLM2 is not fetched: run `sampling-lab fetch smollm2`")
        return self.path


def close(absolute: float) -> dict[str, float]:
    """Return a tolerance for `torch.testing.assert_close`."""
    return {"atol": absolute, "rtol": 1e-5}


@cache
def loaded(path: Path) -> Model:
    """Return a checkpoint on the CPU; every test must leave it as it was."""
    return load(path, device="cpu")


def _shipped(name: str) -> tuple[Path, Callable[[Path], Path]]:
    path = ROOT / "checkpoints" / name
    return path, lambda folder: Path(shutil.copy(path, folder))


def _gguf(folder: Path) -> Path:
    tiny.write_gguf(folder / "sunny.gguf")
    return folder / "sunny.gguf"


def _pickled(folder: Path) -> Path:
    """Write a directory with a ``pytorch_model.bin`` in place of the safetensors."""
    directory = tiny.save(folder / "model")
    state = load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    torch.save(state, directory / "pytorch_model.bin")
    return directory


SMOLLM2 = ROOT / "checkpoints" / "smollm2-135m-instruct"
FORMATS = {
    "xslm": Format("xslm", *_shipped("xslm/model.json"), "not valid JSON"),
    "scratch_llm": Format(
        "scratch_llm", *_shipped("scratch_llm/tiny_sft.pt"), "begins like a .pt but is"
    ),
    "kimi_k3": Format(
        "kimi_k3", *_shipped("kimi_k3/last.pt"), "begins like a .pt but is cut short"
    ),
    "huggingface": Format(
        "huggingface",
        SMOLLM2,
        lambda folder: tiny.save(folder / "model"),
        r"\d,\d+ bytes\) is not a whole safetensors file",
        weights="model.safetensors",
        tolerance=close(1e-4),  # its logits are in the tens
    ),
}
FILES = {
    **FORMATS,
    "gguf": Format("huggingface", SMOLLM2, _gguf, r"bytes\) is cut short or damaged"),
    "bin": Format(
        "huggingface", SMOLLM2, _pickled, "cut short", weights="pytorch_model.bin"
    ),
}
"""The formats, and the other files that Hugging Face's may be."""

_SIZES = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}
_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
ARCHITECTURES: dict[str, PreTrainedConfig | None] = {
    "llama": None,  # tiny.llama
    "gpt2": GPT2Config(**GPT2),
    "sliding window": MistralConfig(**_SIZES, **_HEADS, sliding_window=6),
    "recurrent": MambaConfig(**_SIZES, state_size=8),
    "no cache": RwkvConfig(**_SIZES, attention_hidden_size=32, context_length=64),
}
"""Hugging Face models with different caches, and random weights."""

MODELS = [*FORMATS, *ARCHITECTURES]
UNCACHED = {"xslm", "no cache"}
"""Models that run the whole prefix, or window, for each token."""


def model_of(name: str) -> Model:
    """Return one of `MODELS`, the same in every test."""
    return FORMATS[name].load() if name in FORMATS else _random_model(name)


def tolerance_of(name: str) -> dict[str, float]:
    """Return how far logits of one of `MODELS` may be apart."""
    return FORMATS[name].tolerance if name in FORMATS else close(1e-5)


@cache
def _random_model(name: str) -> Model:
    config = ARCHITECTURES[name]
    if config is None:
        return HuggingFaceModel.wrap(tiny.llama())
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = AutoModelForCausalLM.from_config(config).eval()
    return HuggingFaceModel.wrap(network)


def whole(model: Model, ids: Sequence[int]) -> Tensor:
    """Return logits (V,) from one forward pass that knows nothing of earlier ones."""
    if hasattr(model, "network"):
        with torch.inference_mode():
            output = model.network(input_ids=torch.tensor([ids]), use_cache=False)
        return output.logits[0, -1]
    model.reset()
    return model.logits(ids)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch run on `count` threads, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Opens:
    """Unpickling it would make a directory, which tests look for."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        """Return what unpickling would call."""
        return os.mkdir, (self.path,)
