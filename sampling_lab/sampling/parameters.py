"""The one table of sampling parameters: every fact about one is in its row.

A field of `ParameterTable` is a row: type, neutral value, rule, name in words, help,
and the stage it stands for. `SamplingParams`, the chain, `describe`, typed settings,
the command line, the chat, the explorer and copied code all read it here. A new
sampler is a stage and a row; CONTRIBUTING.md adds one as an example.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Literal

from ..errors import ParameterError
from . import penalties, truncation, validation
from .dialects import Dialect, find_dialect
from .draws import DRAWS, coin
from .stage import Stage, Temperature

Kind = Literal["temperature", "truncation", "adjustment", "penalty", "option"]
"""What a parameter does: greedy decoding ignores truncations; a penalty is an
adjustment that counts earlier tokens within `penalty_window`; an option has no stage
of its own."""

Value = Literal["number", "flag", "ids", "biases", "name"]
"""How a parameter's value is written as text."""


@dataclass(frozen=True)
class StepContext:
    """What a stage may depend on besides the value of its parameter.

    Attributes:
        name: the parameter that the stage stands for.
        values: all parameters of this chain by name.
        dialect: the engine's rules.
        token_ids: the prompt and what was generated after it.
        prompt_length: how many of `token_ids` are the prompt.
    """

    name: str
    values: Mapping[str, Any]
    dialect: Dialect
    token_ids: Sequence[int] = ()
    prompt_length: int = 0

    def counted(self) -> tuple[int, ...]:
        """Return the earlier tokens that count for this parameter."""
        with_prompt = self.values["penalize_prompt"]
        if with_prompt is None:
            with_prompt = self.name in self.dialect.counts_prompt
        first = 0 if with_prompt else self.prompt_length
        window = self.values["penalty_window"] if self.name in PENALTIES else None
        if window:
            first = max(first, len(self.token_ids) - window)
        return tuple(self.token_ids[first:])

    def coin(self) -> float:
        """Return the random number of XTC at this step, in [0, 1)."""
        seed = self.values["seed"]
        if seed is None:
            raise ParameterError("seed must be an integer to toss XTC's coin, got None")
        return coin(seed, len(self.token_ids) - self.prompt_length)


@dataclass(frozen=True)
class Parameter:
    """A row of the table.

    Attributes:
        rule: validates a value and returns it in its one spelling.
        label: the name in words, as `describe` writes it and typed settings read it.
        help: what it does, with its range; one line without a full stop.
        kind: what it does, for greedy decoding and for penalties.
        stage: makes the stage from a value that is not neutral; None for options.
        per_step: whether the stage depends on the history or on the step.
        value: how its value is written as text.
        engine_names: its name in an engine where that is another one.
        name: the field of `SamplingParams`; filled in from the table.
        neutral: the value that changes nothing, the field's default.
        is_main: whether it is one of the few that everybody sets.
    """

    rule: validation.Rule
    label: str
    help: str
    kind: Kind = "option"
    stage: Callable[[Any, StepContext], Stage] | None = None
    per_step: bool = False
    value: Value = "number"
    engine_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    name: str = ""
    neutral: Any = None
    is_main: bool = False

    def name_in(self, engine: str) -> str:
        """Return its name in an engine."""
        return self.engine_names.get(engine, self.name)


def row(neutral: Any, *facts: Any, **more: Any) -> Any:
    """Return the dataclass field whose metadata is a `Parameter`."""
    parameter = Parameter(*facts, **more)
    return dataclasses.field(default=neutral, metadata={"parameter": parameter})


def _dialect(name: str, value: Any) -> str | None:
    return None if value is None else find_dialect(value).name


_OFF = "or None for off"


@dataclass(frozen=True)
class ParameterTable:
    """The fields of `SamplingParams`, each with its row as metadata."""

    temperature: float = row(
        1.0,
        validation.TEMPERATURE,
        "temperature",
        "divide the logits by it; >= 0, 1 changes nothing, 0 is greedy",
        "temperature",
        lambda value, at: Temperature(value, at.dialect.shifted),
        engine_names={"llama.cpp": "--temp", "mlx": "temp"},
    )
    top_k: int | None = row(
        None,
        validation.Integer(f"an integer >= 1, or 0 {_OFF}", off=(0,)),
        "top-k",
        "keep the k most likely tokens; an integer >= 1, 0 is off",
        "truncation",
        lambda value, at: truncation.TopK(value, at.dialect.ties),
        engine_names={"llama.cpp": "--top-k"},
    )
    top_p: float | None = row(
        None,
        dataclasses.replace(validation.PROBABILITY, off=(1.0,)),
        "top-p",
        "keep the most likely tokens that reach this mass together; in (0, 1], 1 is "
        "off",
        "truncation",
        lambda value, at: truncation.TopP(value, at.dialect.nucleus),
        engine_names={"llama.cpp": "--top-p"},
    )
    min_p: float | None = row(
        None,
        dataclasses.replace(validation.FRACTION, off=(0.0,)),
        "min-p",
        "keep tokens at least this fraction as likely as the most likely one; in "
        "[0, 1], 0 is off",
        "truncation",
        lambda value, at: truncation.MinP(value),
        engine_names={"llama.cpp": "--min-p"},
    )
    seed: int | None = row(
        0,
        validation.any_seed,
        "seed",
        "what the random numbers are made from; an integer in [0, 2**64), in dialect "
        "xslm any, None draws one, which results report",
        engine_names={"llama.cpp": "--seed"},
    )
    dialect: str | None = row(
        None,
        _dialect,
        "dialect",
        "the engine whose rules apply, a name in DIALECTS; None is the model's own",
        value="name",
    )
    _: KW_ONLY
    typical_p: float | None = row(
        None,
        dataclasses.replace(validation.PROBABILITY, off=(1.0,)),
        "typical-p",
        "keep the tokens nearest the entropy, to this mass; in (0, 1], 1 is off",
        "truncation",
        lambda value, at: truncation.TypicalP(value),
        engine_names={"llama.cpp": "--typical"},
    )
    top_n_sigma: float | None = row(
        None,
        validation.Number(f"a number > 0, or 0 {_OFF}", low=0.0, off=(0.0,)),
        "top-nσ",
        "keep logits within so many standard deviations of the highest; > 0, 0 is off",
        "truncation",
        lambda value, at: truncation.TopNSigma(value),
        engine_names={"llama.cpp": "--top-nsigma"},
    )
    xtc_probability: float | None = row(
        None,
        dataclasses.replace(validation.FRACTION, off=(0.0,)),
        "XTC",
        "how often XTC removes all top choices but the least likely; in [0, 1], 0 is "
        "off",
        "truncation",
        lambda value, at: truncation.XTC(value, at.values["xtc_threshold"], at.coin()),
        per_step=True,
        engine_names={"llama.cpp": "--xtc-probability"},
    )
    xtc_threshold: float = row(
        0.1,
        validation.FRACTION,
        "XTC threshold",
        "the probability that makes a token a top choice for XTC; in [0, 1]",
        engine_names={"llama.cpp": "--xtc-threshold"},
    )
    logit_bias: Mapping[int, float] | Sequence[tuple[int, float]] | None = row(
        None,
        validation.biases,
        "logit bias",
        "numbers that are added to the logits of tokens, by token id",
        "adjustment",
        lambda value, at: penalties.LogitBias(value),
        value="biases",
        engine_names={"llama.cpp": "--logit-bias", "transformers": "sequence_bias"},
    )
    repetition_penalty: float | None = row(
        None,
        dataclasses.replace(validation.POSITIVE, off=(1.0,)),
        "repetition penalty",
        "divide positive logits of earlier tokens by it and multiply negative ones; "
        "> 0, 1 is off",
        "penalty",
        lambda value, at: penalties.RepetitionPenalty(value, at.counted()),
        per_step=True,
        engine_names={"llama.cpp": "--repeat-penalty"},
    )
    frequency_penalty: float | None = row(
        None,
        dataclasses.replace(validation.FINITE, off=(0.0,)),
        "frequency penalty",
        "subtract it once for each time a token occurred; 0 is off",
        "penalty",
        lambda value, at: penalties.FrequencyPenalty(value, at.counted()),
        per_step=True,
        engine_names={"llama.cpp": "--frequency-penalty"},
    )
    presence_penalty: float | None = row(
        None,
        dataclasses.replace(validation.FINITE, off=(0.0,)),
        "presence penalty",
        "subtract it once if a token occurred at all; 0 is off",
        "penalty",
        lambda value, at: penalties.PresencePenalty(value, at.counted()),
        per_step=True,
        engine_names={"llama.cpp": "--presence-penalty"},
    )
    no_repeat_ngram_size: int | None = row(
        None,
        validation.Integer(f"an integer >= 1, or 0 {_OFF}", off=(0,)),
        "no-repeat-ngram",
        "never generate an n-gram of this size twice; an integer >= 1, 0 is off",
        "adjustment",
        lambda value, at: penalties.NoRepeatNGram(value, at.counted()),
        per_step=True,
    )
    banned_token_ids: Sequence[int] | None = row(
        None,
        validation.token_ids,
        "bans",
        "token ids that are never drawn",
        "adjustment",
        lambda value, at: penalties.Ban(value),
        value="ids",
        engine_names={"llama.cpp": "--logit-bias", "transformers": "suppress_tokens"},
    )
    penalty_window: int | None = row(
        None,
        validation.Integer("an integer >= 1, or None for all", off=(None,)),
        "penalty window",
        "the penalties count this many of the last tokens; an integer >= 1, None is "
        "all",
        engine_names={"llama.cpp": "--repeat-last-n", "mlx": "repetition_context_size"},
    )
    penalize_prompt: bool | None = row(
        None,
        validation.one_of(True, False, None),
        "penalize prompt",
        "whether the penalties count the prompt too; None is the engine's way",
        value="flag",
    )
    draw_method: str | None = row(
        None,
        validation.one_of(*DRAWS, None),
        "drawn by",
        f"one of {', '.join(DRAWS)}; None is the dialect's own",
        value="name",
    )


PARAMETERS: dict[str, Parameter] = {
    field.name: dataclasses.replace(
        field.metadata["parameter"],
        name=field.name,
        neutral=field.default,
        is_main=not field.kw_only,
    )
    for field in dataclasses.fields(ParameterTable)
}
"""The rows by name, in the order of the fields."""


def _names(*kinds: Kind) -> tuple[str, ...]:
    return tuple(name for name, p in PARAMETERS.items() if p.kind in kinds)


ADJUSTMENTS = _names("adjustment", "penalty")
"""The parameters that act at any temperature: biases, bans and penalties."""

PENALTIES = _names("penalty")
"""The adjustments that `penalty_window` and `penalize_prompt` apply to."""

TRUNCATIONS = _names("truncation")
"""The parameters that only remove tokens; greedy decoding ignores them."""


@cache
def missing(dialect: Dialect) -> frozenset[str]:
    """Return the parameters with a stage that an engine itself does not have."""
    return frozenset((*ADJUSTMENTS, *TRUNCATIONS)) - frozenset(dialect.own)


@cache
def stage_order(dialect: Dialect) -> tuple[str, ...]:
    """Return all parameters with a stage in the order they are applied.

    What the engine itself lacks comes after its own: adjustments before its first
    truncation or temperature, truncations at the end.
    """
    own, lacks = dialect.own, missing(dialect)
    first = next(i for i, name in enumerate(own) if name not in ADJUSTMENTS)
    adjustments = (name for name in ADJUSTMENTS if name in lacks)
    truncations = (name for name in TRUNCATIONS if name in lacks)
    return (*own[:first], *adjustments, *own[first:], *truncations)


def format_number(value: float) -> str:
    """Return the shortest text that reads back as the same number.

    >>> format_number(0.70), format_number(2.0), format_number(0.1 + 0.2)
    ('0.7', '2', '0.30000000000000004')
    """
    if isinstance(value, int):
        return str(value)
    short = f"{value:.12g}"
    return short if float(short) == value else repr(value)


def format_value(name: str, value: Any) -> str:
    """Return a parameter's value as text, which `read_value` reads back.

    >>> format_value("logit_bias", ((5, 1.5), (7, -2.0))), format_value("top_p", None)
    ('5+1.5 7-2', 'off')
    """
    if value is None:
        return "random" if name == "seed" else "off"
    kind = PARAMETERS[name].value
    if kind == "biases":
        pairs = ((token_id, format_number(bias)) for token_id, bias in value)
        return " ".join(f"{i}{'' if b.startswith('-') else '+'}{b}" for i, b in pairs)
    if kind == "ids":
        return " ".join(map(str, value))
    if kind == "flag":
        return "yes" if value else "no"
    return value if isinstance(value, str) else format_number(value)
