"""The one table of sampling parameters: every fact about one is in its row.

A field of `ParameterTable` is a row: type, neutral value, rule, name in words, help,
and the stage it stands for. `SamplingParams`, the chain, `describe`, typed settings,
the command line, the chat, the explorer and copied code all read it here. A new
sampler is a stage and a row; CONTRIBUTING.md adds one as an example.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Literal

from torch import Tensor

from ..errors import ParameterError
from . import cutoffs, penalties, sequences, temperature, truncation, validation
from .dialects import Dialect, find_dialect
from .draws import DRAWS, coin
from .history import NO_HISTORY, History
from .stage import Stage

Kind = Literal["temperature", "shape", "truncation", "adjustment", "penalty", "option"]
"""What a parameter does: greedy decoding ignores shapes, which act where temperature
does, and truncations; a penalty is an adjustment that counts earlier tokens within
`penalty_window`; an option has no stage of its own."""

Value = Literal["number", "flag", "ids", "biases", "sequences", "name", "text"]
"""How a parameter's value is written as text."""


@dataclass(frozen=True)
class StepContext:
    """What a stage may depend on besides the value of its parameter.

    Attributes:
        name: the parameter that the stage stands for.
        values: all parameters of this chain by name.
        dialect: the engine's rules.
        history: what came before the step.
    """

    name: str
    values: Mapping[str, Any]
    dialect: Dialect
    history: History = NO_HISTORY

    def counted(self) -> tuple[int, ...]:
        """Return the earlier tokens that count for this parameter."""
        with_prompt = self.values["penalize_prompt"]
        if with_prompt is None:
            with_prompt = self.name not in self.dialect.ignores_prompt
        token_ids = self.history.token_ids
        first = 0 if with_prompt else self.history.prompt_length
        windows = dict.fromkeys(PENALTIES, "penalty_window") | {
            "dry_multiplier": "dry_range"
        }
        window = self.values[windows[self.name]] if self.name in windows else None
        if window:
            first = max(first, len(token_ids) - window)
        return tuple(token_ids[first:])

    @property
    def listed(self) -> int | None:
        """The length of the engine's sorted list, 0 if not sorted; None without one."""
        by_rank = sys.maxsize if self.values["top_n_sigma"] else 0
        return (self.values["top_k"] or by_rank) if self.dialect.keeps_list else None

    def coin(self) -> float:
        """Return the random number of XTC at this step, in [0, 1)."""
        seed = self.values["seed"]
        if seed is None:
            raise ParameterError("seed must be an integer to toss XTC's coin, got None")
        return coin(seed, self.history.step)

    def limit(self) -> float:
        """Return the limit mu of Mirostat, in bits.

        It starts at twice the target, and each token moves it by `mirostat_eta` times
        the difference of its surprise from the target, the other way.
        """
        target, rate = self.values["mirostat_tau"], self.values["mirostat_eta"]
        excess = sum(surprise - target for surprise in self.history.surprises)
        return float(2 * target - rate * excess)

    def allowed(self) -> Tensor:
        """Return which tokens the grammar allows, bool (V,)."""
        guide = self.history.guide
        if guide is None:
            raise ParameterError(
                "grammar needs a model's tokens; use generate, stream or the explorer"
            )
        return guide.allowed(self.history.token_ids[self.history.prompt_length :])

    def of_stop(self) -> dict[str, Any]:
        """Return the new tokens so far and the stop tokens, for rules of length."""
        made, ends = self.history.step, tuple(self.history.stop_token_ids)
        return {"made": made, "stop_token_ids": ends}


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
        of: the parameter that it goes with, for an option without effect where that is
            off.
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
    of: str | None = None
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
        lambda value, at: temperature.Temperature(value),
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
        lambda value, at: truncation.TopP(value, at.dialect.nucleus, bool(at.listed)),
        engine_names={"llama.cpp": "--top-p"},
    )
    min_p: float | None = row(
        None,
        dataclasses.replace(validation.FRACTION, off=(0.0,)),
        "min-p",
        "keep tokens at least this fraction as likely as the most likely one; in "
        "[0, 1], 0 is off",
        "truncation",
        lambda value, at: cutoffs.MinP(value),
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
        lambda value, at: truncation.TypicalP(value, at.listed),
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
        of="xtc_probability",
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
        lambda value, at: sequences.NoRepeatNGram(value, at.counted()),
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
    top_a: float | None = row(
        None,
        dataclasses.replace(validation.FRACTION, off=(0.0,)),
        "top-a",
        "keep tokens at least this times as likely as the highest probability squared; "
        "in [0, 1], 0 is off",
        "truncation",
        lambda value, at: cutoffs.TopA(value),
    )
    epsilon_cutoff: float | None = row(
        None,
        dataclasses.replace(validation.BELOW_ONE, off=(0.0,)),
        "epsilon cutoff",
        "keep tokens with at least this probability; in [0, 1), 0 is off",
        "truncation",
        lambda value, at: cutoffs.EpsilonCutoff(value),
    )
    eta_cutoff: float | None = row(
        None,
        dataclasses.replace(validation.BELOW_ONE, off=(0.0,)),
        "eta cutoff",
        "an epsilon cutoff that a flat distribution lowers; in [0, 1), 0 is off",
        "truncation",
        lambda value, at: cutoffs.EtaCutoff(value),
    )
    p_less: bool | None = row(
        None,
        validation.switch,
        "p-less",
        "keep tokens at least as likely as two draws are to agree; yes or no",
        "truncation",
        lambda value, at: cutoffs.PLess(),
        value="flag",
    )
    top_h: float | None = row(
        None,
        dataclasses.replace(validation.PROBABILITY, off=(None,)),
        "top-H",
        "keep the most likely tokens that hold this fraction of the entropy together; "
        "in (0, 1]",
        "truncation",
        lambda value, at: cutoffs.TopH(value),
    )
    min_tokens_to_keep: int = row(
        1,
        validation.COUNT,
        "minimum to keep",
        "how many tokens every truncation but XTC keeps at the least; an integer >= 1",
        engine_names={"llama.cpp": "--min-keep"},
    )
    dynatemp_range: float | None = row(
        None,
        dataclasses.replace(validation.TEMPERATURE, off=(0.0,)),
        "dynamic temperature range",
        "move the temperature by up to this with the entropy; >= 0, 0 is off",
        "shape",
        lambda value, at: temperature.DynamicTemperature(
            at.values["temperature"], value, at.values["dynatemp_exponent"]
        ),
        engine_names={"llama.cpp": "--dynatemp-range"},
    )
    dynatemp_exponent: float = row(
        1.0,
        validation.POSITIVE,
        "dynamic temperature exponent",
        "how the dynamic temperature follows the entropy; > 0",
        engine_names={"llama.cpp": "--dynatemp-exp"},
        of="dynatemp_range",
    )
    smoothing_factor: float | None = row(
        None,
        dataclasses.replace(validation.TEMPERATURE, off=(0.0,)),
        "quadratic smoothing",
        "bend the logits by a parabola of this factor; > 0, 0 is off",
        "shape",
        lambda value, at: temperature.QuadraticSmoothing(
            value, at.values["smoothing_curve"]
        ),
    )
    smoothing_curve: float = row(
        1.0,
        validation.CURVE,
        "smoothing curve",
        "from a parabola, 1, to a cubic, 3; in [1, 3]",
        of="smoothing_factor",
    )
    mirostat: int | None = row(
        None,
        validation.Integer("1, 2, or 0 or None for off", off=(0,), high=2),
        "mirostat",
        "keep tokens so that the text stays about as surprising as asked; the version, "
        "1 or 2, 0 is off",
        "truncation",
        lambda value, at: truncation.Mirostat(
            value, at.limit(), at.values["mirostat_tau"]
        ),
        per_step=True,
        engine_names={"llama.cpp": "--mirostat"},
    )
    mirostat_tau: float = row(
        5.0,
        validation.POSITIVE,
        "mirostat tau",
        "the surprise that Mirostat aims at, in bits; > 0",
        engine_names={"llama.cpp": "--mirostat-ent"},
        of="mirostat",
    )
    mirostat_eta: float = row(
        0.1,
        validation.TEMPERATURE,
        "mirostat eta",
        "how fast Mirostat corrects itself; >= 0",
        engine_names={"llama.cpp": "--mirostat-lr"},
        of="mirostat",
    )
    dry_multiplier: float | None = row(
        None,
        dataclasses.replace(validation.TEMPERATURE, off=(0.0,)),
        "DRY",
        "lower what would go on with a repeated passage, by this in nats at the least; "
        ">= 0, 0 is off",
        "adjustment",
        lambda value, at: sequences.DRY(
            value,
            at.values["dry_base"],
            at.values["dry_allowed_length"],
            at.counted(),
            at.values["dry_sequence_breakers"] or (),
        ),
        per_step=True,
        engine_names={"llama.cpp": "--dry-multiplier"},
    )
    dry_base: float = row(
        1.75,
        validation.AT_LEAST_ONE,
        "DRY base",
        "how much more each further repeated token costs; >= 1",
        engine_names={"llama.cpp": "--dry-base"},
        of="dry_multiplier",
    )
    dry_allowed_length: int = row(
        2,
        validation.COUNT,
        "DRY allowed length",
        "how many repeated tokens cost the least; an integer >= 1",
        engine_names={"llama.cpp": "--dry-allowed-length"},
        of="dry_multiplier",
    )
    dry_range: int | None = row(
        None,
        validation.Integer("an integer >= 1, or None for all", off=(None,)),
        "DRY range",
        "DRY counts this many of the last tokens; an integer >= 1, None is all",
        engine_names={"llama.cpp": "--dry-penalty-last-n"},
        of="dry_multiplier",
    )
    dry_sequence_breakers: Sequence[int] | None = row(
        None,
        validation.token_ids,
        "DRY breakers",
        "token ids that end a passage for DRY",
        value="ids",
        of="dry_multiplier",
    )
    sequence_bias: (
        Mapping[Any, float] | Sequence[tuple[Sequence[int], float]] | None
    ) = row(
        None,
        validation.sequence_biases,
        "sequence bias",
        "numbers that are added to the last token of sequences that have begun",
        "adjustment",
        lambda value, at: sequences.SequenceBias(value, tuple(at.history.token_ids)),
        per_step=True,
        value="sequences",
    )
    min_new_tokens: int | None = row(
        None,
        validation.Integer(f"an integer >= 1, or 0 {_OFF}", off=(0,)),
        "minimum of new tokens",
        "no stop token before there are so many new ones; an integer >= 1, 0 is off",
        "adjustment",
        lambda value, at: sequences.MinNewTokens(value, **at.of_stop()),
        per_step=True,
        engine_names={"vllm": "min_tokens"},
    )
    length_decay: float | None = row(
        None,
        dataclasses.replace(validation.POSITIVE, off=(1.0,)),
        "length decay",
        "raise stop tokens by this factor with every new token; > 0, 1 is off",
        "adjustment",
        lambda value, at: sequences.LengthDecay(
            value, at.values["length_decay_start"] or 0, **at.of_stop()
        ),
        per_step=True,
        engine_names={"transformers": "exponential_decay_length_penalty"},
    )
    length_decay_start: int | None = row(
        None,
        validation.Integer(f"an integer >= 1, or 0 {_OFF}", off=(0,)),
        "length decay start",
        "how many new tokens come before the length decay; an integer >= 1",
        of="length_decay",
    )
    grammar: str | None = row(
        None,
        validation.grammar,
        "grammar",
        "what the whole new text must be: regex:, json: (a JSON schema) or lark:, and "
        "the grammar",
        "adjustment",
        lambda value, at: penalties.Mask(at.allowed()),
        per_step=True,
        value="text",
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
"""The parameters that only remove tokens."""

SHAPES = _names("shape")
"""The parameters that change how sharp a distribution is, where temperature acts."""

SAMPLING_ONLY = (*SHAPES, *TRUNCATIONS)
"""The parameters with a stage that greedy decoding ignores."""


@cache
def missing(dialect: Dialect) -> frozenset[str]:
    """Return the parameters with a stage that an engine itself does not have."""
    return frozenset((*ADJUSTMENTS, *SAMPLING_ONLY)) - frozenset(dialect.own)


@cache
def stage_order(dialect: Dialect) -> tuple[str, ...]:
    """Return all parameters with a stage in the order they are applied.

    What the engine itself lacks comes after its own: adjustments before its first
    truncation or temperature, shapes after its temperature, truncations at the end.
    """
    own, lacks = dialect.own, missing(dialect)
    first = next(i for i, name in enumerate(own) if name not in ADJUSTMENTS)
    scaled = own.index("temperature") + 1
    adjustments, shapes, truncations = (
        [name for name in names if name in lacks]
        for names in (ADJUSTMENTS, SHAPES, TRUNCATIONS)
    )
    lowered = (*own[:first], *adjustments, *own[first:scaled])
    return (*lowered, *shapes, *own[scaled:], *truncations)


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
    if kind == "text":  # without commas, which stand between settings
        return json.dumps(value, ensure_ascii=False).replace(",", "\\u002c")
    if kind == "biases":
        pairs = ((token_id, format_number(bias)) for token_id, bias in value)
        return " ".join(f"{i}{'' if b.startswith('-') else '+'}{b}" for i, b in pairs)
    if kind == "sequences":
        texts = ((",".join(map(str, ids)), format_number(b)) for ids, b in value)
        return " ".join(f"{i}{'' if b.startswith('-') else '+'}{b}" for i, b in texts)
    if kind == "ids":
        return " ".join(map(str, value))
    if kind == "flag":
        return "yes" if value else "no"
    return value if isinstance(value, str) else format_number(value)
