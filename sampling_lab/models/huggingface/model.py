"""Any causal language model that `transformers` loads, run by the lab's loop."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..base import CachedModel, Message, ModelCard, Tokenizer
from ..device import find_device, find_dtype
from . import kv_cache
from .batch import BatchCache
from .card import make_card
from .kinds import check_causal
from .load import find_directory, load_module
from .quiet import quiet
from .tokenizer import HfTokenizer, load_tokenizer
from .weights import weight_files

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

_CACHE_NAMES = ("cache", "past_key_values", "cache_params")
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)
_DIGESTED = ("config.json", "tokenizer.json")


class HuggingFaceModel(CachedModel):
    """A `transformers` model whose forward pass the lab calls itself.

    `model.generate` is not used, so no sampling setting is filled in silently. `load`
    makes one from files and `wrap` from a model in memory.

    Attributes:
        network: the `transformers` model.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        tokenizer: Tokenizer | None,
        card: ModelCard,
        *,
        memory_bytes: int = 256 << 20,
    ) -> None:
        super().__init__(card, tokenizer, memory_bytes=memory_bytes)
        self.network = network
        self._parts = tuple(network.modules())
        original: Any = _original(network)
        accepted = inspect.signature(original.forward).parameters
        cache_name = next((n for n in _CACHE_NAMES if n in accepted), None)
        # What keeps its state in another way runs over the whole prefix every time.
        is_usual = type(original)._supports_default_dynamic_cache()
        has_state = any(hasattr(part, "_setup_cache") for part in self._parts)
        self._cache_name = cache_name if is_usual and not has_state else None
        self._takes_positions = "position_ids" in accepted
        self._switch = _switch(network.config)
        self._options: dict[str, Any] = {}
        if cache_name is not None or "use_cache" in accepted:
            self._options["use_cache"] = self._cache_name is not None
        if "logits_to_keep" in accepted:
            self._options["logits_to_keep"] = 1
        new_cache = partial(kv_cache.new_cache, network.config)
        self._batch = BatchCache(self._run_rows, new_cache)
        self._clear()

    @classmethod
    def wrap(
        cls,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | Tokenizer | None = None,
        name: str | None = None,
    ) -> HuggingFaceModel:
        """Return the lab's view of a model that is already in memory.

        The model is shared, not copied, and left as it is: call `reset` after its
        weights have changed.

        Example:
            >>> from transformers import GPT2Config, GPT2LMHeadModel
            >>> config = GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1)
            >>> HuggingFaceModel.wrap(GPT2LMHeadModel(config)).logits([1, 2]).shape
            torch.Size([9])
        """
        return _build(
            model, _wrapped(tokenizer), name or type(_original(model)).__name__
        )

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a conversation, ending where the assistant begins."""
        chat_ids = getattr(self.tokenizer, "chat_ids", None)
        if chat_ids is None or not self.card.chat:
            return super().chat_ids(messages)
        return list(chat_ids(messages))

    def _forward(self, ids: tuple[int, ...]) -> Tensor:
        # Other rotary frequencies from some length on: what is cached is of no use.
        if (len(self._path) > self._switch) != (len(ids) > self._switch):
            self._drop_path()
        return super()._forward(ids)

    def _extend(self, new_ids: tuple[int, ...], past_length: int) -> Tensor:
        if self._cache_name is None:
            return self._run(self._path[:past_length] + new_ids)
        if past_length and any(self._cache.is_linear):
            # Some architectures forget their state when given several tokens at once,
            # or do not know their place.
            for place, token_id in enumerate(new_ids, past_length):
                logits = self._run((token_id,), place)
            return logits
        return self._run(new_ids)

    def _run(self, ids: tuple[int, ...], place: int | None = None) -> Tensor:
        return self._run_rows(torch.tensor([ids]), self._cache, place)[0].clone()

    def _run_rows(
        self, input_ids: Tensor, cache: DynamicCache, place: int | None = None
    ) -> Tensor:
        """Run ids, shape (B, new), after a cache; return the last logits, (B, V)."""
        known: dict[str, Any] = {self._cache_name: cache} if self._cache_name else {}
        if place is not None and self._takes_positions:
            known["position_ids"] = torch.tensor([[place]], device=self.network.device)
        input_ids = input_ids.to(self.network.device)
        with _evaluating(self._parts):
            output = self.network(input_ids=input_ids, **known, **self._options)
        logits: Tensor = output.logits[:, -1]
        return logits

    def _forward_together(self, rows: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        if self._cache_name is None or not kv_cache.is_plain(self._cache):
            return None
        if max(map(len, rows)) > self._switch:
            return None
        with torch.inference_mode():
            computed = self._batch.logits(rows)
        self.forward_passes += computed is not None
        return computed

    def _truncate(self, length: int) -> bool:
        return self._cache_name is None or kv_cache.crop(self._cache, length)

    def _clear(self) -> None:
        self._cache = kv_cache.new_cache(self.network.config)

    def reset(self) -> None:
        """Forget remembered logits and both caches."""
        super().reset()
        self._batch.clear()


def _original(network: PreTrainedModel) -> PreTrainedModel:
    """Return the model that `torch.compile` has wrapped."""
    compiled: Any = network
    original: PreTrainedModel = getattr(compiled, "_orig_mod", network)
    return original


def _switch(config: Any) -> float:
    """Return the length after which "longrope" takes other frequencies."""
    rope = getattr(config.get_text_config(), "rope_parameters", None) or {}
    kinds = rope.values() if all(isinstance(v, dict) for v in rope.values()) else [rope]
    lengths = [
        kind.get("original_max_position_embeddings")
        or getattr(config, "original_max_position_embeddings", None)
        for kind in kinds
        if kind.get("rope_type") == "longrope"
        and kind.get("short_factor") != kind.get("long_factor")
    ]
    return min((length for length in lengths if length), default=torch.inf)


@contextmanager
def _evaluating(parts: Sequence[nn.Module]) -> Iterator[None]:
    """Switch off dropout where it is on, and on again afterwards."""
    training = [part for part in parts if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def load(
    path_or_name: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    trust_remote_code: bool = False,
    revision: str | None = None,
    local_files_only: bool = False,
    tokenizer: str | Path | Tokenizer | PreTrainedTokenizerBase | None = None,
) -> HuggingFaceModel:
    """Load a causal language model that `transformers` knows.

    A GGUF file is turned into a safetensors directory once, and that is loaded. From
    the hub only safetensors are downloaded; a directory's ``pytorch_model.bin`` is
    read without running anything in it.

    Args:
        path_or_name: a directory with config.json, a GGUF file, or a hub name.
        device: "auto" (CUDA where available), "cpu", "cuda", ….
        dtype: "auto" (the checkpoint's own), "float32", "bfloat16", ….
        trust_remote_code: allow the author's own Python code to run.
        revision: a hub branch, tag or commit.
        local_files_only: never ask the hub.
        tokenizer: another tokenizer than the checkpoint's own: one in memory, a
            directory, or a hub name.

    Raises:
        CheckpointError: not there, damaged, of an unknown architecture, with weights
            missing, unexpected or of the wrong size, or one that would run code.
        MissingPackageError: a GGUF file without the packages that read it.
        ParameterError: an unknown device or dtype.
    """
    placed = find_device(device)
    precision = "auto" if dtype == "auto" else find_dtype(dtype, torch.float32)
    directory = find_directory(
        path_or_name,
        revision=revision,
        local_files_only=local_files_only,
        trust_remote_code=trust_remote_code,
    )
    files = weight_files(directory)
    network = load_module(directory, files, precision, trust=trust_remote_code)
    words = _tokenizer(
        directory if tokenizer is None else tokenizer,
        local_files_only=local_files_only,
        trust_remote_code=trust_remote_code,
    )
    files += [directory / n for n in _DIGESTED if (directory / n).is_file()]
    network.to(placed)  # type: ignore[arg-type]  # a decorator of the library hides it
    return _build(network, words, _name(path_or_name), files)


def _name(path_or_name: str | Path) -> str:
    """Return a name for people: the hub's, the directory's or the file's."""
    path = Path(path_or_name)
    if path.is_dir():
        return path.resolve().name
    return path.stem if path.is_file() else str(path_or_name)


def _tokenizer(
    given: str | Path | Tokenizer | PreTrainedTokenizerBase | None, **options: Any
) -> Tokenizer | None:
    """Return the lab's view of a tokenizer, loading it from a directory or the hub."""
    if isinstance(given, Path) and not any((given / n).is_file() for n in _TOKENIZERS):
        return None
    if isinstance(given, str | Path):
        return load_tokenizer(given, **options)
    return _wrapped(given)


def _wrapped(tokenizer: Tokenizer | PreTrainedTokenizerBase | None) -> Tokenizer | None:
    from transformers import PreTrainedTokenizerBase

    if isinstance(tokenizer, PreTrainedTokenizerBase):
        return HfTokenizer(tokenizer)
    return tokenizer


def _build(
    network: PreTrainedModel,
    tokenizer: Tokenizer | None,
    name: str,
    files: Sequence[Path] = (),
) -> HuggingFaceModel:
    """Try the model on one token and write its card."""
    original = _original(network)
    check_causal(network.config, type(original).__name__)
    card = make_card(original, tokenizer, name, files, vocab_size=_width(network))
    return HuggingFaceModel(network, tokenizer, card)


def _width(network: PreTrainedModel) -> int:
    """Return how many logits the model gives, from a forward pass over one token.

    An architecture that logs notices about missing fast kernels does so at its first
    pass: here, where they are silenced.
    """
    input_ids = torch.zeros(1, 1, dtype=torch.long, device=network.device)
    with quiet(), torch.inference_mode(), _evaluating(tuple(network.modules())):
        logits: Tensor = network(input_ids=input_ids, use_cache=False).logits
    return logits.shape[-1]
