"""Sentences about parameters that cannot matter, or that the engine itself lacks."""

from __future__ import annotations

from .ledger import Ledger
from .parameters import (
    ADJUSTMENTS,
    PARAMETERS,
    PENALTIES,
    SAMPLING_ONLY,
    missing,
    stage_order,
)
from .params import SamplingParams


def notes(params: SamplingParams, vocab_size: int) -> tuple[str, ...]:
    """Return a sentence for every setting that cannot matter, or is borrowed."""
    about = _on_greedy(params) if params.is_greedy else _on_values(params, vocab_size)
    if not any(map(params.is_on, PENALTIES)):
        about += [
            f"{name} has no effect: no penalty is set"
            for name in ("penalty_window", "penalize_prompt")
            if params.is_on(name)
        ]
    about += [
        f"{name} has no effect: {label(parameter.of)} is off"
        for name, parameter in PARAMETERS.items()
        if parameter.of and params.is_on(name) and not params.is_on(parameter.of)
    ]
    if params.mirostat and not params.is_greedy:
        about += [
            f"{params.rules.name} applies no {label(name)} beside Mirostat"
            for name in params.rules.without_mirostat
            if params.is_on(name)
        ]
    return (*about, *_on_borrowed(params))


def idle(params: SamplingParams, ledger: Ledger | None = None) -> dict[str, str]:
    """Return the parameters that have no effect at any value, with the reason.

    Args:
        params: the settings.
        ledger: what they do to one step's logits; once a stage has left one token,
            nothing after it matters there.

    Example:
        >>> idle(SamplingParams(temperature=0))["top_p"]
        'temperature is 0'
    """
    if params.is_greedy:
        of = {n for n, p in PARAMETERS.items() if p.of in SAMPLING_ONLY}
        names = (*SAMPLING_ONLY, *sorted(of), "seed", "draw_method")
        return dict.fromkeys(names, "temperature is 0")
    if ledger is None or ledger.kept_count > 1:
        return {}
    order = stage_order(params.rules)
    for name, record in zip(params.stage_names, ledger.stages, strict=True):
        if record.after.kept_count == 1:
            later = order[order.index(name) + 1 :]
            return dict.fromkeys((*later, "seed"), f"{record.stage.name} left 1 token")
    return {}  # the model itself leaves one


def label(name: str) -> str:
    """Return a parameter's name as people say it."""
    return PARAMETERS[name].label


def _on_greedy(params: SamplingParams) -> list[str]:
    sentences = ["temperature is 0 (greedy): the seed has no effect"]
    if off := [label(name) for name in SAMPLING_ONLY if params.is_on(name)]:
        verb = "has" if len(off) == 1 else "have"
        sentences.append(f"temperature is 0: {', '.join(off)} {verb} no effect")
    return sentences


def _on_values(params: SamplingParams, vocab_size: int) -> list[str]:
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
    names = ADJUSTMENTS if params.is_greedy else (*ADJUSTMENTS, *SAMPLING_ONLY)
    return [
        f"{rules.name} itself has no {label(name)}: here it is the lab's own"
        for name in names
        if params.is_on(name) and name in missing(rules)
    ]
