"""Kimi K3 trainer checkpoints: KDA linear attention, MLA and experts, from a .pt."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import DynamicCache, KimiLinearConfig, KimiLinearForCausalLM

from ...errors import CheckpointError, MissingPackageError, ParameterError
from ..base import CachedModel, ModelCard
from ..checks import dictionary_in, is_plain, listed, renamed
from ..device import find_device, find_dtype
from ..huggingface.tokenizer import HfTokenizer, load_tokenizer
from ..torch_file import read_torch_file, strip_prefixes
from .config import CHUNK_SIZE, read_config
from .network import assign_weights, build, chunk_length

FORMAT_VERSION = 7
CONFIG_KEYS = ("model_config", "model_cfg", "config")
STATE_KEYS = ("model_state_dict", "model_state", "model")
BACKENDS = ("reference", "fused")
EOS_OF_RAW_IDS = 0
"""The id that ends a generation where there is no tokenizer."""

_PREFILL_BLOCK = 8 * CHUNK_SIZE  # KDA's chunked form needs 64 x 64 x width per chunk


def load(
    path: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    tokenizer: str | Path | Literal[False] | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
    trust_remote_code: bool = False,
    backend: str = "reference",
    rename: Mapping[str, str] | None = None,
) -> KimiK3:
    """Load a Kimi K3 trainer's ``.pt`` of format version 7.

    Args:
        path: the file; it is only read.
        device: "auto" (CUDA where available), "cpu", "cuda", ….
        dtype: "auto" and "float32" are the same; "bfloat16" needs CUDA hardware that
            supports it.
        tokenizer: a hub name or a directory. None: the file's own folder, if it has
            a tokenizer.json. Without one, or with False, the model takes token ids
            only, and id 0 ends a generation.
        revision: of the tokenizer, on the hub.
        local_files_only: never ask the hub for the tokenizer.
        trust_remote_code: allow a hub tokenizer's own code to run; off by default.
        backend: "reference" (plain PyTorch) or "fused" (flash-linear-attention on
            CUDA).
        rename: for weights under other names, as in `checks.renamed`.

    Raises:
        CheckpointError: not such a file, another version, settings or weights that
            do not fit, or a tokenizer whose length is not the vocabulary's.
        ParameterError: a device, dtype or backend that this machine does not have, or
            a `rename` that does not fit the names.
        MissingPackageError: "fused" without flash-linear-attention.
    """
    path = Path(path)
    place = find_device(device)
    precision = _precision(dtype, place)
    check_backend(backend, place)
    content = read_torch_file(path)
    _check_version(path, content)
    state = strip_prefixes(dictionary_in(path, content, STATE_KEYS))
    if rename is not None:
        state = renamed(state, rename)
    config = read_config(dictionary_in(path, content, CONFIG_KEYS), [*state])
    network = build(config, backend)
    assign_weights(network, state, precision, place)
    words = _tokenizer(
        path,
        tokenizer,
        config.vocab_size,
        revision=revision,
        local_files_only=local_files_only,
        trust_remote_code=trust_remote_code,
    )
    card = ModelCard(
        name=f"{path.absolute().parent.name}/{path.stem}",
        format="kimi_k3",
        parameters=sum(weight.numel() for weight in network.parameters()),
        vocab_size=config.vocab_size,
        context_length=config.max_position_embeddings,
        dtype=str(precision).removeprefix("torch."),
        device=str(place),
        dialect="transformers",
        stop_token_ids=_stop_token_ids(words),
        files=(path,),
        details={"backend": backend, **_shape(config), **_notes(content)},
    )
    return KimiK3(card, words, network)


class KimiK3(CachedModel):
    """The network with its cache: latents of MLA, convolutions and states of KDA.

    A recurrent state holds every token so far and cannot be cut back, so a prefix
    that leaves the cached path is computed from its beginning.

    Attributes:
        network: the module; in eval mode, and without dropout in any mode.
    """

    def __init__(
        self,
        card: ModelCard,
        tokenizer: HfTokenizer | None,
        network: KimiLinearForCausalLM,
    ) -> None:
        super().__init__(card, tokenizer)
        self.network = network
        self._cache: DynamicCache | None = None

    def _extend(self, new_ids: tuple[int, ...], past_length: int) -> Tensor:
        self._end(new_ids, past_length)
        if self._cache is None:
            self._cache = DynamicCache(config=self.network.config)
        ids = torch.tensor([new_ids], device=self.network.device)  # (1, T)
        chunk = chunk_length(self.network.config)
        whole_chunks = chunk * max(1, _PREFILL_BLOCK // chunk)
        for block in torch.split(ids, whole_chunks, dim=1):
            logits: Tensor = self.network(
                input_ids=block, cache=self._cache, use_cache=True, logits_to_keep=1
            ).logits  # (1, 1, V)
        return logits[0, -1]  # (V,)

    def _truncate(self, length: int) -> bool:
        return False

    def _clear(self) -> None:
        self._cache = None


def check_backend(backend: str, device: torch.device) -> None:
    """Refuse an unknown backend, and "fused" where it cannot run."""
    if backend not in BACKENDS:
        raise ParameterError(
            f"backend must be {' or '.join(BACKENDS)}, got {backend!r}"
        )
    if backend == "fused" and device.type != "cuda":
        raise ParameterError(
            f"backend fused needs a CUDA device, and the device is {device}; use "
            "backend reference"
        )
    if backend == "fused" and find_spec("fla") is None:
        raise MissingPackageError(
            "backend fused needs flash-linear-attention; run `pip install "
            "flash-linear-attention`, or use backend reference"
        )


def _precision(name: str, device: torch.device) -> torch.dtype:
    precision = find_dtype(name, torch.float32)
    if precision not in (torch.float32, torch.bfloat16):
        raise ParameterError(
            f"dtype must be auto, float32 or bfloat16 for Kimi K3, got {name!r}"
        )
    if precision is torch.bfloat16 and not _has_bfloat16(device):
        raise ParameterError(
            "dtype bfloat16 needs CUDA hardware that supports it, and the device is "
            f"{device}; use float32"
        )
    return precision


def _has_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()


def _check_version(path: Path, content: Mapping[Any, Any]) -> None:
    version = content.get("format_version")
    if type(version) is int and version == FORMAT_VERSION:
        return
    if "format_version" in content:
        raise CheckpointError(
            f"{path}: format_version must be the integer {FORMAT_VERSION}, "
            f"got {version!r}; write it again with a trainer of that version"
        )
    holds, hint = listed([str(key)[:40] for key in content], 10) or "nothing", ""
    if "model_state_dict" in content and {"cfg", "config"} & content.keys():
        hint = "; if it is a train-llm-from-scratch one, use format='scratch_llm'"
    raise CheckpointError(
        f"{path} has no format_version, which a Kimi K3 checkpoint has "
        f"({FORMAT_VERSION}); it holds {holds}{hint}"
    )


def _tokenizer(
    path: Path, source: object, vocab_size: int, **options: Any
) -> HfTokenizer | None:
    """Load the given tokenizer, or the one in the checkpoint's folder."""
    if source is None and (path.parent / "tokenizer.json").is_file():
        source = path.parent
    if source is None or source is False:
        return None
    if not isinstance(source, str | Path):
        raise ParameterError(
            "tokenizer must be a hub name, a directory, or False for none, got a "
            f"{type(source).__name__}"
        )
    tokenizer = load_tokenizer(source, bare=True, **options)
    length = len(tokenizer.wrapped)
    if length != vocab_size or tokenizer.vocab_size != vocab_size:
        raise CheckpointError(
            f"tokenizer {source} has {length} tokens, but the vocabulary of {path} is "
            f"{vocab_size}; give the one it was trained with"
        )
    return tokenizer


def _stop_token_ids(tokenizer: HfTokenizer | None) -> tuple[int, ...]:
    if tokenizer is None or tokenizer.eos_token_id is None:
        return (EOS_OF_RAW_IDS,)
    return (tokenizer.eos_token_id,)


def _shape(config: KimiLinearConfig) -> dict[str, Any]:
    full = (config.layer_types or []).count("full_attention")
    sparse = (config.mlp_layer_types or []).count("sparse")
    return {
        "layers": f"{config.num_hidden_layers - full} KDA, {full} MLA",
        "experts": f"{config.num_experts_per_tok} of {config.num_local_experts} "
        f"in {sparse} layers",
        "chunk_size": config.chunk_size,
        "tied": config.tie_word_embeddings,
    }


def _notes(content: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the trainer's plain values, and the names of all other entries."""
    rest = [key for key in content if key not in (*CONFIG_KEYS, *STATE_KEYS)]
    notes = {str(key): content[key] for key in rest if is_plain(content[key])}
    unused = [str(key) for key in rest if str(key) not in notes]
    return notes | {"not used": unused}
