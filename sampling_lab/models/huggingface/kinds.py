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
_POSITIONS = "its generate() numbers positions otherwise than its forward pass"
_CACHE = "its cached steps differ from its forward pass over the whole text"
_UNFIT = {
    **dict.fromkeys(("xlm", "xlnet"), _LOOKS_AHEAD),
    **dict.fromkeys(("camembert", "data2vec-text", "roberta"), _POSITIONS),
    **dict.fromkeys(("roberta-prelayernorm", "xlm-roberta"), _POSITIONS),
    **dict.fromkeys(("xlm-roberta-xl", "xmod"), _POSITIONS),
    **dict.fromkeys(("dory", "moshi", "prophetnet"), _CACHE),
    "cpmant": "its text needs prompts of its own in front",
}
"""model_type -> why its text would not be what `transformers` generates."""


def check_causal(config: PreTrainedConfig) -> None:
    """Refuse what is no causal language model, saying what it is.

    Raises:
        CheckpointError: a masked-language model, an encoder-decoder, a classifier, a
            multimodal model without a causal form, or one that cannot run step by step.
    """
    kind = _other_kind(config)
    if kind is not None:
        raise CheckpointError(
            f"this is {kind} ({_name(config)}); the lab runs causal language models, "
            "so give it one"
        )
    reason = _UNFIT.get(config.model_type)
    if reason is not None:
        raise CheckpointError(
            f"the lab cannot run {config.model_type} models: {reason}; choose another"
        )


def _name(config: PreTrainedConfig) -> str:
    return str((config.architectures or [config.model_type])[0])


def _other_kind(config: PreTrainedConfig) -> str | None:
    """Return what a model is that is no causal language model, or None."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    options: Any = config
    known = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING
    own_code = "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {})
    if getattr(options, "is_encoder_decoder", False):
        return "an encoder-decoder"
    if own_code:
        return None
    for head, kind in _HEADS.items():
        if re.search(head, _name(config)) and not (known and "modal" in kind):
            return kind
    if not known:
        has_parts = {"vision_config", "audio_config"} & vars(config).keys()
        return "a multimodal model" if has_parts else "no language model"
    is_encoder = getattr(options, "is_decoder", True) is False
    return "a masked-language model" if is_encoder else None
