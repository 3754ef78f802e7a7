"""Settings to begin with: the author's own, a few by name, and what engines use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models.base import ModelCard
from ..sampling.dialects import DIALECTS
from ..sampling.parameters import PARAMETERS
from ..sampling.params import SamplingParams
from ..sampling.validation import SEED_LIMIT

_NAMED = {"accuracy": (0.7, 30), "balance": (0.9, 50), "creativity": (1.1, 100)}
"""Temperature and top-k, for a vocabulary of at least `_USUAL` tokens."""

_USUAL = 400
"""Below this many tokens top-k shrinks with the vocabulary."""

_NO_SETTINGS = frozenset(("do_sample", "max_new_tokens"))


def presets(card: ModelCard) -> dict[str, dict[str, Any]]:
    """Return settings by name, as fields of `SamplingParams` that are not neutral.

    The author's are there only where the checkpoint brings any; like all of them they
    are an offer.

    Args:
        card: a model's; its vocabulary and its author's defaults count.

    Example:
        >>> from sampling_lab import load
        >>> card = load("checkpoints/xslm/model.json").card
        >>> presets(card)["creativity"]
        {'temperature': 1.1, 'top_k': 10}
    """
    found = {}
    if authors := _authors(card.defaults):
        found["the author's"] = authors
    found["greedy"] = {"temperature": 0.0}
    for name, (temperature, k) in _NAMED.items():
        k = max(2, min(k, k * card.vocab_size // _USUAL))
        found[name] = {"temperature": temperature, "top_k": k}
    for dialect in DIALECTS.values():
        if dialect.defaults:
            settings = {**dialect.defaults, "dialect": dialect.name}
            found[f"{dialect.name} defaults"] = settings
    return found


def apply_preset(params: SamplingParams, preset: Mapping[str, Any]) -> SamplingParams:
    """Return neutral parameters with a preset's fields.

    Seed and dialect are kept where it has none.

    Raises:
        ParameterError: an author's setting outside its rule.

    Example:
        >>> params = SamplingParams(top_p=0.9, seed=7)
        >>> apply_preset(params, {"temperature": 0.7, "top_k": 30}).describe()
        'temperature 0.7, top-k 30, seed 7'
    """
    return neutral(params).replace(**preset)


def neutral(params: SamplingParams) -> SamplingParams:
    """Return parameters that leave the model's logits as they are.

    Seed, dialect and draw stay: they decide which token is drawn, not how likely each
    one is.

    >>> neutral(SamplingParams(temperature=0.3, top_k=5, seed=7)).describe()
    'seed 7'
    """
    return SamplingParams(
        seed=params.seed, dialect=params.dialect, draw_method=params.draw_method
    )


def starting_params(card: ModelCard) -> SamplingParams:
    """Return what the explorer begins with: neutral, or what the format asks for."""
    return SamplingParams(dialect=card.dialect, **card.starting_params)


def carry_over(
    params: SamplingParams, before: ModelCard, after: ModelCard
) -> SamplingParams:
    """Return what still makes sense of one model's parameters for another.

    Settings that nobody changed become those that the other begins with. A model's own
    dialect becomes the other's own; what names token ids is dropped, and a seed that
    only XSLM takes is cut. A top-k above the vocabulary stays, and acts as off.
    """
    if params == starting_params(before):
        return starting_params(after)
    dialect = after.dialect if params.dialect == before.dialect else params.dialect
    ids = (n for n, p in PARAMETERS.items() if p.value in ("ids", "biases"))
    changes: dict[str, Any] = {"dialect": dialect, **dict.fromkeys(ids)}
    if params.seed is not None and dialect != "xslm":
        changes["seed"] = params.seed % SEED_LIMIT
    return params.replace(**changes)


def _authors(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return an author's settings as fields of `SamplingParams`."""
    if defaults.get("do_sample") is False:
        return {"temperature": 0.0}
    return {name: value for name, value in defaults.items() if name not in _NO_SETTINGS}
