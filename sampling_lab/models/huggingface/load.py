"""From a path or a hub name to a `transformers` model in memory, strictly."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ...errors import CheckpointError
from ..checks import first_sentence, listed
from ..formats import check_format
from . import gguf as gguf_file
from . import weights
from .kinds import check_causal
from .quiet import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

_FROM_HUB = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]
_DIFFERENCES = ("missing", "unexpected", "mismatched")
# Masks and frequencies that older versions of transformers saved with the weights.
_CONSTANT = re.compile(r"\.(masked_bias|inv_freq|(attn|attention)\.bias)$")
_NOT_FROM_HUB = ["*/*", "consolidated*"]  # other copies of the same weights


def find_directory(
    path_or_name: str | Path,
    *,
    revision: str | None,
    local_files_only: bool,
    trust_remote_code: bool,
) -> Path:
    """Return the directory to load: the one given, or one made or downloaded.

    Raises:
        CheckpointError: another format's file, or a name the hub does not give.
    """
    path = Path(path_or_name)
    if path.is_dir():
        return path
    if path.is_file():
        if path.suffix != ".gguf":
            check_format(path, "huggingface")
        return gguf_file.converted(path, progress=sys.stderr.isatty())
    return _download(
        str(path_or_name),
        revision=revision,
        local_files_only=local_files_only,
        allow_patterns=[*_FROM_HUB, *(["*.py"] if trust_remote_code else [])],
    )


def _download(name: str, **options: Any) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        with quiet(progress=sys.stderr.isatty()):
            return Path(
                snapshot_download(name, ignore_patterns=_NOT_FROM_HUB, **options)
            )
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            f"the hub has no model {name} that you may read; check the spelling"
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise CheckpointError(
            f"{name} was not downloaded before, and the hub is not asked or cannot be "
            "reached; check the network, or give a local directory"
        ) from error
    except Exception as error:  # other errors of the hub, the network and the disk
        raise CheckpointError(
            f"{name} could not be downloaded from the hub: {first_sentence(error)}"
        ) from error


def load_module(
    directory: Path, files: list[Path], dtype: torch.dtype | str, *, trust: bool
) -> PreTrainedModel:
    """Return the model of a directory, on the CPU, with every weight accounted for.

    Args:
        directory: has config.json.
        files: its weight files, from `weights.weight_files`.
        dtype: a dtype, or "auto" for the checkpoint's own.
        trust: let the author's own code run.

    Raises:
        CheckpointError: sizes that the files do not have, weights missing,
            unexpected or mismatched, or anything that the library refuses.
    """
    try:
        with quiet():
            config = _config(directory, trust)
            check_causal(config)
            held = weights.shapes(files)
            skeleton = weights.outline(config, held, directory, trust=trust)
            module, info = _read(directory, files, type(skeleton), config, dtype)
    except CheckpointError:
        raise
    except Exception as error:  # hundreds of architectures, each with its own errors
        raise CheckpointError(
            f"transformers cannot load {directory.absolute()}: {_explain(error)}"
        ) from error
    _check_complete(directory, info)
    return module


def _config(directory: Path, trust: bool) -> PreTrainedConfig:
    from transformers import AutoConfig

    if not (directory / "config.json").is_file():
        raise CheckpointError(f"{directory.absolute()} has no config.json")
    config: PreTrainedConfig = AutoConfig.from_pretrained(
        directory, trust_remote_code=trust, local_files_only=True
    )
    return config


def _read(
    directory: Path,
    files: list[Path],
    model_class: type[PreTrainedModel],
    config: PreTrainedConfig,
    dtype: torch.dtype | str,
) -> tuple[PreTrainedModel, dict[str, Any]]:
    options: dict[str, Any] = {
        "config": config,
        "dtype": dtype,
        "output_loading_info": True,
        # Its own check would come after memory was taken and names nothing.
        "ignore_mismatched_sizes": True,
    }
    if files[0].suffix == ".safetensors":
        loaded: Any = model_class.from_pretrained(
            directory, use_safetensors=True, local_files_only=True, **options
        )
        return loaded[0], loaded[1]
    state = weights.read_pickled(files)
    loaded = model_class.from_pretrained(None, state_dict=state, **options)
    module, info = loaded
    if (directory / "generation_config.json").is_file():
        from transformers import GenerationConfig

        module.generation_config = GenerationConfig.from_pretrained(directory)
    return module, info


def _explain(error: Exception) -> str:
    reason = first_sentence(error)
    if "custom code" in reason:
        reason += "; if you trust its author, load it with trust_remote_code=True"
    return reason


def _check_complete(directory: Path, info: dict[str, Any]) -> None:
    """Refuse a difference between files and configuration, naming every weight."""
    found = {kind: info[f"{kind}_keys"] for kind in _DIFFERENCES}
    found["unexpected"] = [n for n in found["unexpected"] if not _CONSTANT.search(n)]
    problems = [
        f"{kind}: {listed(sorted(map(_named, names)))}"
        for kind, names in found.items()
        if names
    ]
    if problems:
        raise CheckpointError(
            f"the weights in {directory.absolute()} are not those its config.json asks "
            f"for; {'; '.join(problems)}"
        )


def _named(key: Any) -> str:
    """Name a weight; a mismatch is (name, shape in the file, shape asked for)."""
    if isinstance(key, str):
        return key
    return f"{key[0]} is {list(key[1])}, not {list(key[2])}"
