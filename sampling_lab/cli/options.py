"""Options for a model and for sampling, and their names in errors."""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from ..models.formats import begins_as
from ..sampling.dialects import DEFAULT_DIALECT
from ..sampling.parameters import ADJUSTMENTS, PARAMETERS
from ..sampling.params import SamplingParams
from ..sampling.settings_text import read_number, read_value

if TYPE_CHECKING:
    from ..models.base import Model, ModelCard

_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
_FLAGS = {
    "local_files_only": "never ask the network",
    "parse_special": "read names of special tokens in the prompt as those tokens",
    "trust_remote_code": "let code from the hub run",
}
_LOAD = ("device", "tokenizer", "revision", "backend", "rename", *_FLAGS)
"""Arguments of `load` that are options under their own names."""

_SWITCHES = {
    "dtype": "--precision",
    "overrides": "--override",
    "stop_token_ids": "--eos-id",
    "token ids": "--token-ids",
}
"""Argument -> option, where the names differ."""

_METAVARS = {"number": "X", "ids": "IDS", "biases": "ID=X,...", "name": "NAME"}
_METAVARS |= {"sequences": "IDS+X", "text": "TEXT"}


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which model to load, and how."""
    group = parser.add_argument_group("model")

    def add(*names: str, **options: Any) -> None:
        group.add_argument(*names, default=argparse.SUPPRESS, **options)

    add(
        *("--checkpoint", "--ckpt"),
        required=True,
        metavar="PATH",
        help="a file, directory or name",
    )
    add("--tokenizer", metavar="NAME_OR_DIR", help="where the file brings none itself")
    add("--revision", metavar="REV", help="which revision of a name on the hub")
    add("--device", help="auto (the default), cpu, cuda, ...")
    add("--precision", choices=[*_DTYPES], help="default: the checkpoint's own")
    add("--backend", choices=["reference", "fused"], help="of Kimi K3 checkpoints")
    add(
        "--rename",
        type=_pair,
        action="append",
        metavar="OLD=NEW",
        help="words in the names of a Kimi K3 file's weights; repeatable",
    )
    add("--override", action="append", metavar="SIZE=N", help="such as n_head=4")
    for name, help_line in _FLAGS.items():
        add(f"--{name.replace('_', '-')}", action="store_true", help=help_line)


def load_model(args: argparse.Namespace) -> Model:
    """Load what the options ask for; a Kimi K3 file asked by ids needs no tokenizer."""
    from ..models import load
    from ..models.formats import detect

    options = {name: getattr(args, name) for name in _LOAD if name in args}
    if "rename" in options:
        options["rename"] = dict(options["rename"])
    if "override" in args:
        options["overrides"] = dict(map(_size, args.override))
    if "precision" in args:
        options["dtype"] = _DTYPES[args.precision]
    path = Path(args.checkpoint)
    if "token_ids" in args and path.is_file() and detect(path) == "kimi_k3":
        options.setdefault("tokenizer", False)
    return load(args.checkpoint, **options)


def as_typed(message: str) -> str:
    """Return an error with the switches that a person types for Python's arguments.

    >>> as_typed("stop_token_ids must be in [0, 128), got 128 at position 0")
    '--eos-id must be in [0, 128), got 128 at position 0'
    >>> as_typed("a has no tokenizer; load it with tokenizer=NAME")
    'a has no tokenizer; load it with --tokenizer NAME'
    """
    names = "|".join([*_SWITCHES, *_LOAD, *PARAMETERS, "max_new_tokens", "stop"])
    start = re.match(rf"({names})(?= (must|is|has|cannot|needs)\b)", message)
    if start:
        message = _switch(start[1]) + message[start.end() :]
    return re.sub(rf"\b({names})=", lambda found: f"{_switch(found[1])} ", message)


def _switch(name: str) -> str:
    return _SWITCHES.get(name, "--" + name.replace("_", "-"))


def _pair(text: str) -> tuple[str, str]:
    """Return the two names of OLD=NEW; the new one may be empty."""
    old, equals, new = text.partition("=")
    if not old or not equals:
        raise argparse.ArgumentTypeError(f"must be OLD=NEW, got {text!r}")
    return old, new


def _size(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not (size.isascii() and size.isdecimal() and len(size) < 20):
        raise ParameterError(f"--override must be like n_head=4, got {text!r:.80}")
    return name.strip(), int(size)


def add_sampling_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each sampling parameter; one that is not given stays unset."""
    main = parser.add_argument_group("sampling")
    more = parser.add_argument_group("more sampling, all off by default")
    for name, parameter in PARAMETERS.items():
        add = (main if parameter.is_main else more).add_argument
        option = name.replace("_", "-")
        shared: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
        read = partial(read_value, name)
        if parameter.value == "flag":
            shared |= {"nargs": "?", "const": True}
            add(f"--no-{option}", action="store_const", const=False, **_unset(name))
        metavar = _METAVARS.get(parameter.value, "yes|no")
        add(f"--{option}", type=read, metavar=metavar, help=parameter.help, **shared)
    author = "begin with the author's settings; options given go before them"
    main.add_argument("--author", action="store_true", default=False, help=author)


def add_end_options(parser: argparse.ArgumentParser) -> None:
    """Add how long a text may become and what ends it before; unset if not given."""
    add = parser.add_argument_group("length and end").add_argument
    unset: dict[str, Any] = {"default": argparse.SUPPRESS}
    add(
        *("--max-new-tokens", "--tokens"),
        type=read_number,
        metavar="N",
        help="default: the format's own",
        **unset,
    )
    add(
        "--eos-id",
        type=read_number,
        metavar="ID",
        help="end here instead of at its own",
        **unset,
    )
    stop = "end before it; repeatable"
    add("--stop", action="append", metavar="TEXT", help=stop, **unset)


def given_ends(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_end_options` that were given, as `stream` has them."""
    given = {n: v for n, v in vars(args).items() if n in ("max_new_tokens", "stop")}
    return given | ({"stop_token_ids": [args.eos_id]} if "eos_id" in args else {})


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the sampling parameters that were given."""
    return {name: value for name, value in vars(args).items() if name in PARAMETERS}


def read_params(
    args: argparse.Namespace, card: ModelCard | None = None, **begun: Any
) -> SamplingParams:
    """Return what was given, over the author's settings if asked for, over `begun`.

    Without a card, before anything is loaded, what the file may be decides the rules:
    those of the most lenient dialect. `--mode greedy` ignores what chooses among
    tokens, so that a bad value of it is no error either.
    """
    given = given_parameters(args)
    if getattr(args, "mode", None) == "greedy":
        acting = (*ADJUSTMENTS, "penalty_window", "penalize_prompt", "dialect")
        given = {n: v for n, v in given.items() if n in acting} | {"temperature": 0}
    if card is None:
        return SamplingParams().under(_likely_dialect(Path(args.checkpoint)), **given)
    authors = author_params(card) if args.author else {}
    return SamplingParams().under(card.dialect, **{**begun, **authors, **given})


def author_params(card: ModelCard) -> dict[str, Any]:
    """Return the settings of a checkpoint's author, refused where there are none."""
    if not card.author_params:
        raise ParameterError("the author of this checkpoint names no settings")
    return card.author_params


def _likely_dialect(path: Path) -> str:
    kind = begins_as(path) if path.is_file() else None
    return {"json": "xslm", "torch": "scratch_llm"}.get(kind or "", DEFAULT_DIALECT)


def _unset(name: str) -> dict[str, Any]:
    return {"dest": name, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
