"""Turn a GGUF file into a safetensors directory, once, so that it loads fast."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CheckpointError, MissingPackageError, SamplingLabError
from ..checks import first_sentence
from ..files import cache_folder, scratch_folder, sha256
from .quiet import quiet

if TYPE_CHECKING:
    from .gguf_header import GgufHeader

SOURCE = "source.json"
"""In a converted directory: the name, size and SHA-256 of its GGUF file."""

# llama.cpp splits numbers into single digits for these before its GPT-2 pattern;
# transformers does not know them and would split the text as GPT-2 does.
_SINGLE_DIGITS = set(
    "smollm starcoder refact command-r codeshell exaone minerva-7b".split()
)
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


def converted(path: Path, *, progress: bool = False) -> Path:
    """Return the directory made from a GGUF file, making it when it is not current.

    It is the file's own directory if that was made from the file (as `fetch` does),
    otherwise ``NAME-safetensors`` next to the file, or in the lab's cache folder if
    the file's folder is read-only. A changed file is converted again.
    """
    for directory in _places(path):
        if is_current(directory, path):
            return directory
    own = _recorded(path.parent).get("file") == path.name
    directory = path.parent if own else _places(path)[1]
    if not os.access(path.parent, os.W_OK):
        directory = _places(path)[2]
    return convert(path, directory, progress=progress)


def _places(path: Path) -> tuple[Path, Path, Path]:
    parent = hashlib.sha256(str(path.absolute().parent).encode()).hexdigest()[:12]
    name = f"{path.stem}-safetensors"
    return path.parent, path.parent / name, cache_folder() / parent / name


def is_current(directory: Path, path: Path) -> bool:
    """Tell whether `directory` was made from the GGUF file as it is now, and is whole.

    Size and time are enough to say yes; after a copy or a touch the SHA-256 decides.
    """
    recorded, found = _recorded(directory), path.stat()
    if recorded.get("file") != path.name or recorded.get("bytes") != found.st_size:
        return False
    if any(_size(directory / name) != size for name, size in recorded["made"].items()):
        return False
    same_time = recorded.get("mtime_ns") == found.st_mtime_ns
    return same_time or recorded.get("sha256") == sha256(path)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _recorded(directory: Path) -> dict[str, Any]:
    try:
        recorded = json.loads((directory / SOURCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    good = isinstance(recorded, dict) and isinstance(recorded.get("made"), dict)
    return recorded if good else {}


def convert(path: Path, directory: Path, *, progress: bool = False) -> Path:
    """Write `path`, dequantised to float32, as a Hugging Face directory.

    The files appear in `directory` only when all are whole, `source.json` last.

    Args:
        path: a GGUF file of an architecture that transformers reads.
        directory: made when missing; other files in it are left alone.
        progress: show a progress bar on stderr.

    Returns:
        `directory`, with config.json, model.safetensors, the tokenizer's files,
        generation_config.json and source.json.

    Raises:
        CheckpointError: damaged, or an architecture that transformers lacks.
        MissingPackageError: `gguf` or `accelerate` is not installed.
    """
    for package in ("gguf", "accelerate"):
        if find_spec(package) is None:
            raise MissingPackageError(
                f"converting {path.name} needs {package}; run `pip install {package}`"
            )
    from .gguf_header import read_header

    header = read_header(path)
    _check_architecture(path, header.architecture)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(directory.parent) as made:
        with quiet(progress), _alone(path) as folder, _explained(path):
            _write_model(path, folder, header, made)
            _write_tokenizer(path, folder, header, made)
        _write_source(path, made)
        _move_files(made, directory)
    return directory


def _check_architecture(path: Path, architecture: str) -> None:
    known = supported_architectures()
    if _letters(architecture) not in map(_letters, known):
        raise CheckpointError(
            f"{path} has the architecture {architecture!r}, which transformers does "
            f"not read from GGUF; it reads {', '.join(known)}"
        )


def supported_architectures() -> list[str]:
    """Return the architectures that the installed transformers reads from GGUF."""
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING
    from transformers.integrations.gguf.gguf_conversion_mapping import GGUF_ARCHS

    not_models = {"general", "tokenizer", "t5", "umt5"}
    return sorted((GGUF_CONFIG_MAPPING.keys() | GGUF_ARCHS.keys()) - not_models)


def _letters(architecture: str) -> str:
    """The name without separators: files say ``qwen2moe`` for ``qwen2_moe``."""
    return architecture.replace("-", "").replace("_", "")


def _write_model(path: Path, folder: str, header: GgufHeader, made: Path) -> None:
    """Let transformers read and dequantise the file, and save the model."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, GgufConfig

    from .weights import outline

    config = AutoConfig.from_pretrained(folder, gguf_file=path.name)
    if header.rope_factors is not None:
        rope = _stretched(config.rope_parameters, header.rope_factors)
        config.rope_parameters = rope
    outline(config, header.shapes, path)
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=path.name,
        config=config,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
        output_loading_info=True,
    )
    model, info = loaded
    _check_complete(path, header, model, info)
    model.hf_quantizer = None  # it would refuse to save weights that it unpacked
    vars(model.config).pop("quantization_config", None)
    model.config._name_or_path = header.metadata.get("general.name", path.stem)
    model.generation_config._from_model_config = False
    model.generation_config.eos_token_id = _end_ids(header)
    model.save_pretrained(made)


def _stretched(rope: dict[str, Any], factors: list[float]) -> dict[str, Any]:
    """Return rotary settings that divide each frequency by its factor.

    Llama 3 files carry the factors as a tensor, which transformers does not read. Its
    "longrope" divides by given factors too; with factor 1 there is one set of them.
    """
    return rope | {
        "rope_type": "longrope",
        "short_factor": factors,
        "long_factor": factors,
        "factor": 1.0,
        "attention_factor": 1.0,
    }


@contextmanager
def _alone(path: Path) -> Iterator[str]:
    """A folder that holds only the GGUF, so that no neighbouring file is read too."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path.name).symlink_to(path.absolute())
        yield folder


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn any error of the library over a file's content into one sentence."""
    try:
        yield
    except SamplingLabError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"{path} cannot be converted: {first_sentence(error)}"
        ) from error


def _check_complete(
    path: Path, header: GgufHeader, model: Any, info: dict[str, Any]
) -> None:
    """Refuse missing weights, which are made up, and weights that are not used."""
    missing = sorted(info["missing_keys"])
    if missing:
        raise CheckpointError(f"{path} lacks the weights {', '.join(missing)}")
    unused = header.elements - sum(p.numel() for p in model.parameters())
    if unused:
        raise CheckpointError(
            f"{path} holds {header.elements:,} weights but transformers uses "
            f"{header.elements - unused:,} of them, so its model would be another one; "
            "load the model's safetensors directory instead"
        )


def _end_ids(header: GgufHeader) -> list[int] | int | None:
    """Return the ids that end a text or a turn, as in generation_config.json."""
    found = [header.metadata.get(f"tokenizer.ggml.{key}") for key in _END_KEYS]
    ids = sorted({token_id for token_id in found if token_id is not None})
    return ids if len(ids) > 1 else (ids or [None])[0]


def _write_tokenizer(path: Path, folder: str, header: GgufHeader, made: Path) -> None:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=path.name)
    if header.metadata.get("tokenizer.ggml.pre") in _SINGLE_DIGITS:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    tokenizer.save_pretrained(made)


def _write_source(path: Path, made: Path) -> None:
    found = path.stat()
    source = {
        "file": path.name,
        "bytes": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "sha256": sha256(path),
        "made": {file.name: file.stat().st_size for file in sorted(made.iterdir())},
    }
    text = json.dumps(source, indent=2) + "\n"
    (made / SOURCE).write_text(text, encoding="utf-8")


def _move_files(made: Path, directory: Path) -> None:
    """Move the files in, `source.json` last: only with it are they current."""
    directory.mkdir(exist_ok=True)
    (directory / SOURCE).unlink(missing_ok=True)
    readable = (made / SOURCE).stat().st_mode  # the weights come out private
    for file in sorted(made.iterdir(), key=lambda file: file.name == SOURCE):
        file.chmod(readable)
        os.replace(file, directory / file.name)
