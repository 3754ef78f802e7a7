"""The Kimi K3 network: the library's `kimi_linear`, on kernels that we choose."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from types import FunctionType, MethodType

import torch
from torch import Tensor
from transformers import KimiLinearConfig, KimiLinearForCausalLM
from transformers.models.kimi_linear import modeling_kimi_linear as library

from ...errors import CheckpointError
from ..checks import RENAME_HINT
from ..torch_file import check_state
from .config import CHUNK_SIZE

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
# Function of the library -> the package that has its fast form.
_CHUNKED = "chunk_kimi_delta_attention"
KERNELS = {
    _CHUNKED: "fla",
    "recurrent_kimi_delta_attention": "fla",
    "causal_conv1d_fn": "causal_conv1d",
    "causal_conv1d_update": "causal_conv1d",
}


def build(
    config: KimiLinearConfig, backend: str = "reference", device: str = "meta"
) -> KimiLinearForCausalLM:
    """Return the network of a configuration, in eval mode.

    Args:
        config: from `config.read_config`.
        backend: "reference" (plain PyTorch everywhere) or "fused" (the fast kernels
            that are installed).
        device: "meta" has shapes only, takes no memory and draws nothing; on any
            other the global generator draws the weights.

    Raises:
        CheckpointError: no network has such sizes.
    """
    try:
        with torch.device(device):
            network = KimiLinearForCausalLM(config)
    except (KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"no network can be built from the configuration: {error}"
        ) from error
    forward = _delta_forward(backend, chunk_length(config))
    for module in network.modules():
        if isinstance(module, library.KimiLinearDeltaAttention):
            module.forward = MethodType(forward, module)
    network.eval()  # type: ignore[no-untyped-call]  # the library
    return network


def chunk_length(config: KimiLinearConfig) -> int:
    """Return how many tokens KDA handles at once: its `chunk_size`, at most 64.

    The logits are those of any other length, up to rounding, and a longer one needs
    its square in memory.
    """
    return min(int(config.chunk_size), CHUNK_SIZE)


def _delta_forward(backend: str, chunk_size: int) -> Callable[..., Tensor]:
    """Return the library's KDA forward pass, calling the kernels of `backend`.

    The library decides once per process, when it is imported, to call a fast kernel
    wherever one is installed, even on a CPU that cannot run it, and logs a notice for
    each that is missing. Here the same code runs with its plain PyTorch functions
    instead, so that "reference" is exactly that and nothing is logged. Its chunked form
    pads a prompt to whole chunks.
    """
    source = inspect.unwrap(library.KimiLinearDeltaAttention.forward)
    plain = {
        name: inspect.unwrap(getattr(library, name))
        for name, package in KERNELS.items()
        if backend == "reference" or find_spec(package) is None
    }
    if _CHUNKED in plain:
        plain[_CHUNKED] = partial(plain[_CHUNKED], chunk_size=chunk_size)
    return FunctionType(
        source.__code__,
        {**vars(library), **plain},
        source.__name__,
        source.__defaults__,
        source.__closure__,
    )


def assign_weights(
    network: KimiLinearForCausalLM,
    state: Mapping[str, Tensor],
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Give a meta network the weights of a file, all of them and no others.

    Shapes are compared first. Where the configuration ties the head to the embedding,
    the two are one tensor again, whether or not the file holds the head.

    Raises:
        CheckpointError: missing, unexpected or misshapen weights, or a tied head that
            differs from the embedding.
    """
    tied = network.config.tie_word_embeddings
    shapes = {name: tuple(t.shape) for name, t in network.state_dict().items()}
    optional = {HEAD: shapes.pop(HEAD)} if tied else {}
    check_state(shapes, state, optional=optional, hint=f"; {RENAME_HINT}")
    if tied and HEAD in state and not torch.equal(state[HEAD], state[EMBEDDING]):
        raise CheckpointError(
            f"tie_word_embeddings is true, but {HEAD} differs from {EMBEDDING}"
        )
    weights = {
        name: tensor.to(device, _dtype(name, dtype), copy=True)
        for name, tensor in state.items()
        if name in shapes
    }
    if tied:
        weights[HEAD] = weights[EMBEDDING]
    network.load_state_dict(weights, assign=True)
    tie(network)
    network.requires_grad_(False)


def tie(network: KimiLinearForCausalLM) -> None:
    """Make head and embedding one tensor if the configuration says so.

    The library leaves it to the file, in this architecture.
    """
    if network.config.tie_word_embeddings:
        network.lm_head.weight = network.model.embed_tokens.weight


def _dtype(name: str, dtype: torch.dtype) -> torch.dtype:
    """Keep in float32 what the library keeps in float32: routers and gate biases."""
    exact = KimiLinearForCausalLM._keep_in_fp32_modules_strict
    return torch.float32 if any(part in name for part in exact) else dtype
