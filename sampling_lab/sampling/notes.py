"""Parameters in words: what differs from neutral, and what cannot matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialects import ADJUSTMENTS, PENALTIES, TRUNCATIONS

if TYPE_CHECKING:
    from .ledger import Ledger
    from .params import SamplingParams

TEMPLATES = {
    "temperature": "temperature {:g}",
    "top_k": "top-k {}",
    "top_p": "top-p {:g}",
    "min_p": "min-p {:g}",
    "typical_p": "typical-p {:g}",
    "top_n_sigma": "top-nσ {:g}",
    "xtc_probability": "XTC {:g} above {xtc_threshold:g}",
    "repetition_penalty": "repetition penalty {:g}",
    "frequency_penalty": "frequency penalty {:g}",
    "presence_penalty": "presence penalty {:g}",
    "penalty_window": "penalty window {}",
    "penalize_prompt": "penalize prompt: {}",
    "logit_bias": "logit bias {}",
    "banned_token_ids": "ban {}",
    "no_repeat_ngram_size": "no repeated {}-gram",
}
"""How `describe` says that a parameter is not neutral, in this order."""


def describe(params: SamplingParams) -> str:
    """Return what differs from neutral, and the seed where it counts."""
    parts = differences(params)
    if not params.is_greedy:
        seed = params.seed
        parts.append("a fresh seed" if seed is None else f"seed {seed}")
        if params.draw_method:
            parts.append(f"drawn by {params.draw_method}")
    return ", ".join(parts)


def differences(params: SamplingParams) -> list[str]:
    """Return what differs from neutral, each in words.

    >>> from sampling_lab import SamplingParams
    >>> differences(SamplingParams(temperature=0.8, top_k=5))
    ['temperature 0.8', 'top-k 5']
    """
    return [_words(params, name) for name in TEMPLATES if params.is_on(name)]


def notes(params: SamplingParams, vocab_size: int) -> tuple[str, ...]:
    """Return a sentence for every setting that cannot matter, or is borrowed."""
    about = _on_greed(params) if params.is_greedy else _on_cuts(params, vocab_size)
    if not any(map(params.is_on, PENALTIES)):
        about += [
            f"{name} has no effect: no penalty is set"
            for name in ("penalty_window", "penalize_prompt")
            if params.is_on(name)
        ]
    return (*about, *_on_borrowed(params))


def idle(params: SamplingParams, ledger: Ledger | None = None) -> dict[str, str]:
    """Return the parameters that cannot matter, whatever their value, with the reason.

    Args:
        params: the settings.
        ledger: what they do to one token's logits; once a stage has left one token,
            nothing after it matters there.

    Example:
        >>> from sampling_lab import SamplingParams
        >>> idle(SamplingParams(temperature=0))["top_p"]
        'temperature is 0'
    """
    if params.is_greedy:
        names = (*TRUNCATIONS, "xtc_threshold", "seed", "draw_method")
        return dict.fromkeys(names, "temperature is 0")
    if ledger is None or ledger.kept_count > 1:
        return {}
    order = params.rules.order
    for record in ledger.stages:
        if record.after.kept_count == 1:
            name = record.stage.name
            labels = [label(other).removesuffix("s") for other in order]  # bans, ban
            later = order[labels.index(name) + 1 :]
            return dict.fromkeys((*later, "seed"), f"{name} left 1 token")
    return {}  # it was the model itself


def label(name: str) -> str:
    """Return a parameter's name as people say it."""
    plain = {"no_repeat_ngram_size": "no-repeat-ngram", "banned_token_ids": "bans"}
    template = TEMPLATES.get(name, name.replace("_", " "))
    return plain.get(name) or template.split(" {")[0]


def _on_greed(params: SamplingParams) -> list[str]:
    sentences = ["temperature is 0 (greedy): the seed has no effect"]
    if idle := [label(name) for name in TRUNCATIONS if params.is_on(name)]:
        verb = "has" if len(idle) == 1 else "have"
        sentences.append(f"temperature is 0: {', '.join(idle)} {verb} no effect")
    return sentences


def _on_cuts(params: SamplingParams, vocab_size: int) -> list[str]:
    sentences = []
    if params.top_k is not None and params.top_k > vocab_size:
        sentences.append(
            f"top_k {params.top_k} is above the vocabulary: "
            f"the effective k is {vocab_size}"
        )
    if params.xtc_probability and params.xtc_threshold > 0.5:
        sentences.append(
            f"xtc_threshold {params.xtc_threshold:g} is above 0.5: no two tokens can "
            "reach it, so XTC has no effect"
        )
    return sentences


def _on_borrowed(params: SamplingParams) -> list[str]:
    """Return a sentence for every parameter that the engine itself lacks."""
    rules = params.rules
    names = ADJUSTMENTS if params.is_greedy else (*ADJUSTMENTS, *TRUNCATIONS)
    return [
        f"{rules.name} itself has no {label(name)}: here it is the lab's own"
        for name in names
        if params.is_on(name) and name in rules.lacks
    ]


def _words(params: SamplingParams, name: str) -> str:
    value = getattr(params, name)
    if name == "logit_bias":
        value = " ".join(f"{token_id}{bias:+g}" for token_id, bias in value)
    elif name == "banned_token_ids":
        value = " ".join(map(str, value))
    elif name == "penalize_prompt":
        value = "yes" if value else "no"
    return TEMPLATES[name].format(value, xtc_threshold=params.xtc_threshold)
