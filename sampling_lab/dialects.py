"""How each engine orders its stages, breaks ties and draws, as data."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ParameterError


@dataclass(frozen=True)
class Dialect:
    """The rules of one engine.

    Attributes:
        name: what `SamplingParams.dialect` and a model's card call it.
        order: names of `SamplingParams` fields, in the order they are applied.
        ties: at the k-th logit, "kept" or "lowest_id" (see `TopK`).
        nucleus: "descending" or "ascending" (see `TopP`).
        draw: a name in `sampling_lab.draws.DRAWS`.
        shifted: divide logit minus highest by the temperature (see `Temperature`).
        mirrors: the engine and version whose rules these are.
        checked: whether the tests prove it against the engine itself.
    """

    name: str
    order: tuple[str, ...]
    ties: str
    nucleus: str
    draw: str
    mirrors: str
    checked: bool
    shifted: bool = False


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            name="xslm",
            order=("top_k", "temperature", "top_p", "min_p"),
            ties="lowest_id",
            nucleus="descending",
            draw="choices",
            mirrors="XSLM; top-p and min-p, which it lacks, follow the rest",
            checked=True,
            shifted=True,
        ),
        Dialect(
            name="scratch_llm",
            order=("temperature", "top_k", "top_p", "min_p"),
            ties="kept",
            nucleus="descending",
            draw="race",
            mirrors="train-llm-from-scratch; min-p, which it lacks, comes last",
            checked=True,
        ),
        Dialect(
            name="transformers",
            order=("temperature", "top_k", "top_p", "min_p"),
            ties="kept",
            nucleus="ascending",
            draw="race",
            mirrors="transformers 5.24",
            checked=True,
        ),
    )
}
"""The dialects by name."""

DEFAULT_DIALECT = "transformers"


def find_dialect(name: str) -> Dialect:
    """Return a dialect by name.

    Raises:
        ParameterError: an unknown name; the message lists the known ones.
    """
    if name not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise ParameterError(f"dialect must be one of {known} or None, got {name!r}")
    return DIALECTS[name]
