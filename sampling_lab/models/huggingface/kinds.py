"""Which models of `transformers` the lab can run: causal ones, token by token."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...errors import CheckpointError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_HEADS = {
    "MaskedLM|PreTraining": "a masked-language model",
    "Classification|QuestionAnswering|MultipleChoice|Reward": "a classifier",
    "VL|Vision|Image|Audio|Speech": "a multimodal model",
}
_LOOKS_AHEAD = "its causal form reads tokens ahead, as a masked-language model does"
_POSITIONS = (
    "transformers' generate() counts its positions from 0 and its forward pass from "
    "pad_token_id + 1, which gives two different texts"
)
_CACHE = "its cached steps differ from its forward pass over the whole text"
_UNFIT = {
    **dict.fromkeys(("xlm", "xlnet"), _LOOKS_AHEAD),
    **dict.fromkeys(("camembert", "data2vec-text", "roberta"), _POSITIONS),
    **dict.fromkeys(("roberta-prelayernorm", "xlm-roberta"), _POSITIONS),
    **dict.fromkeys(("xlm-roberta-xl", "xmod"), _POSITIONS),
    **dict.fromkeys(("cpmant", "dory", "moshi", "prophetnet"), _CACHE),
}
"""model_type -> why its text would not be what `transformers` generates."""


def check_causal(config: PreTrainedConfig, name: str | None = None) -> None:
    """Refuse what is no causal language model, saying what it is.

    Args:
        config: the model's configuration.
        name: its class; None is what the configuration says.

    Raises:
        CheckpointError: a masked-language model, an encoder-decoder, a classifier, a
            multimodal model without a causal form, or one that cannot run step by step.
    """
    name = name or str((config.architectures or [config.model_type])[0])
    kind = _other_kind(config, name)
    if kind is not None:
        raise CheckpointError(
            f"this is {kind} ({name}); the lab runs causal language models, "
            "so give it one"
        )
    reason = _UNFIT.get(config.model_type)
    if reason is not None:
        raise CheckpointError(
            f"the lab cannot run {config.model_type} models: {reason}; choose another"
        )


def _other_kind(config: PreTrainedConfig, name: str) -> str | None:
    """Return what a model is that is no causal language model, or None."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING
    from transformers.models.auto import modeling_auto as auto

    options: Any = config
    known = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING
    known = known or name in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
    own_code = "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {})
    if getattr(options, "is_encoder_decoder", False):
        return "an encoder-decoder"
    if own_code:
        return None
    for head, kind in _HEADS.items():
        if re.search(head, name) and not (known and "modal" in kind):
            return kind
    if not known:
        has_parts = {"vision_config", "audio_config"} & vars(config).keys()
        return "a multimodal model" if has_parts else "no language model"
    # Causal models alone (GPT-NeoX) say that they are no decoder, too.
    is_encoder = getattr(options, "is_decoder", True) is False
    is_encoder &= config.model_type in {
        *auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "bert-generation",
    }
    return "a masked-language model" if is_encoder else None
