"""The weight files of a Hugging Face directory, checked before memory is taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open

from ...errors import CheckpointError
from ..checks import listed, read_head
from ..torch_file import read_torch_file

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"


def weight_files(directory: Path) -> list[Path]:
    """Return the files with a directory's weights, safetensors if there are any.

    Raises:
        CheckpointError: none, or a part that the index names is not there.
    """
    for name in (SAFE, PICKLED):
        index = directory / f"{name}.index.json"
        if (directory / name).is_file():
            return [directory / name]
        if index.is_file():
            return _parts(index)
    raise CheckpointError(
        f"{directory.absolute()} has neither {SAFE} nor {PICKLED}; "
        f"it holds {listed(sorted(p.name for p in directory.iterdir()), 12)}"
    )


def _parts(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{index} is not an index of weights: {error}") from error
    parts = [index.parent / name for name in names]
    lost = [part.name for part in parts if not part.is_file()]
    foreign = [name for name in names if Path(name).name != name]
    if lost or foreign or not parts:
        raise CheckpointError(
            f"{index} names files that are not beside it: {listed(lost + foreign)}"
        )
    return parts


def read_pickled(files: list[Path]) -> dict[str, torch.Tensor]:
    """Return the weights in ``.bin`` files; one that would run code is refused."""
    return {name: value for file in files for name, value in _read(file).items()}


def _read(file: Path, *, weights: bool = True) -> Mapping[str, Any]:
    state = read_torch_file(file, weights=weights)
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise CheckpointError(
                f"{file} holds {name!r}, a {type(value).__name__}, among its weights"
            )
    return state


def shapes(files: list[Path]) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of all tensors, read from the files' headers."""
    return {name: shape for file in files for name, shape in _shapes(file).items()}


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    read_head(file)
    if file.suffix == ".bin":
        state = _read(file, weights=False)
        return {name: tuple(value.shape) for name, value in state.items()}
    try:
        with safe_open(file, "pt") as opened:
            names = opened.keys()
            return {name: tuple(opened.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{file} ({file.stat().st_size:,} bytes) is not a whole safetensors file: "
            f"{error}; copy or download it again"
        ) from error


def outline(
    config: PreTrainedConfig,
    held: Mapping[str, tuple[int, ...]],
    source: Path,
    *,
    trust: bool = False,
) -> PreTrainedModel:
    """Return the model that a configuration asks for, without memory for weights.

    Raises:
        CheckpointError: the files cannot hold as many weights as it asks for.
    """
    from transformers import AutoModelForCausalLM

    layers = getattr(config.get_text_config(), "num_hidden_layers", 0)
    if isinstance(layers, int) and layers > len(held):
        raise CheckpointError(
            f"{source}: its configuration asks for {layers:,} layers, but there are "
            f"only {len(held):,} tensors"
        )
    with torch.device("meta"):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]  # the library
            config, trust_remote_code=trust
        )
    asked = sum(weight.numel() for weight in model.parameters())
    there = sum(map(prod, held.values()))
    if asked > there:
        raise CheckpointError(
            f"{source}: its configuration asks for {asked:,} weights, but there are "
            f"only {there:,}"
        )
    return model
