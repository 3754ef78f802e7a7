"""The card of a Hugging Face checkpoint, gathered from its several files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CheckpointError
from ..base import ModelCard, Tokenizer

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel

_DEFAULTS = (
    "do_sample temperature top_k top_p min_p typical_p repetition_penalty".split()
)


def make_card(
    network: PreTrainedModel,
    tokenizer: Tokenizer | None,
    name: str,
    files: Sequence[Path] = (),
    *,
    vocab_size: int,
) -> ModelCard:
    """Return the card of a model.

    Args:
        network: the `transformers` model.
        tokenizer: the lab's view of its tokenizer.
        name: shown to people.
        files: the files that its digest covers.
        vocab_size: how many logits it returns.

    Raises:
        CheckpointError: the tokenizer belongs to another model.
    """
    config = network.config.get_text_config()
    authors = getattr(network, "generation_config", None)
    context: int | None = getattr(config, "max_position_embeddings", None)
    if context is not None and context < 1:  # XLNet's -1: without a limit
        context = None
    sources = (authors, config, tokenizer)
    card = ModelCard(
        name=name,
        format="huggingface",
        parameters=sum(weight.numel() for weight in network.parameters()),
        vocab_size=vocab_size,
        context_length=context,
        dtype=str(network.dtype).removeprefix("torch."),
        device=str(network.device),
        dialect="transformers",
        stop_token_ids=_ends(*sources, width=vocab_size),
        bos_token_id=_begin(*sources, width=vocab_size),
        chat=bool(getattr(tokenizer, "has_chat_template", False)),
        # A quarter of a context that is short.
        default_max_new_tokens=(
            64 if context is None else max(1, min(64, context // 4))
        ),
        defaults=_defaults(authors),
        files=tuple(files),
        details={"architecture": type(network).__name__},
    )
    _check_tokenizer(card, tokenizer)
    return card


def _ends(*sources: Any, width: int) -> tuple[int, ...]:
    """Return every id that a source names as the end of a text or a turn."""
    found: list[Any] = []
    for source in sources:
        for name in ("eos_token_id", "turn_end_id"):
            ids: Any = getattr(source, name, None)
            found += ids if isinstance(ids, list | tuple) else [ids]
    strange = [i for i in found if i is not None and type(i) is not int]
    if strange:
        raise CheckpointError(
            "eos_token_id must be a token id or a list of them, got "
            f"{strange[0]!r:.80}; correct it in generation_config.json or config.json"
        )
    return tuple(sorted({i for i in found if i is not None and 0 <= i < width}))


def _begin(*sources: Any, width: int) -> int | None:
    """Return the first beginning-of-text id that a source names."""
    ids = (getattr(source, "bos_token_id", None) for source in sources)
    return next((i for i in ids if isinstance(i, int) and 0 <= i < width), None)


def _defaults(authors: GenerationConfig | None) -> dict[str, Any]:
    """Return the author's sampling settings, which are shown but never applied."""
    values = {name: getattr(authors, name, None) for name in _DEFAULTS}
    return {name: value for name, value in values.items() if value is not None}


def _check_tokenizer(card: ModelCard, tokenizer: Tokenizer | None) -> None:
    """Refuse a tokenizer whose vocabulary is larger than the model's."""
    # Added tokens may lie beyond the weights in honest checkpoints; no text needs them.
    wrapped = getattr(tokenizer, "wrapped", tokenizer)
    size = getattr(wrapped, "vocab_size", 0)
    if size > card.vocab_size:
        raise CheckpointError(
            f"tokenizer has {size:,} tokens but {card.name} knows "
            f"{card.vocab_size:,}; give the tokenizer that it was trained with"
        )
