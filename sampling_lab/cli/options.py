"""The command line's options for sampling, one for each row of the parameter table."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from ..models.formats import begins_as
from ..sampling.dialects import DEFAULT_DIALECT
from ..sampling.parameters import PARAMETERS
from ..sampling.params import SamplingParams
from ..sampling.settings_text import read_value

if TYPE_CHECKING:
    from ..models.base import ModelCard

_METAVARS = {"number": "X", "ids": "IDS", "biases": "ID=X,...", "name": "NAME"}


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


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the sampling parameters that were given."""
    return {name: value for name, value in vars(args).items() if name in PARAMETERS}


def read_params(
    args: argparse.Namespace, card: ModelCard | None = None, **begun: Any
) -> SamplingParams:
    """Return what was given, over the author's settings if asked for, over `begun`.

    Without a card, before anything is loaded, what the file may be decides the rules:
    those of the most lenient dialect.
    """
    given = given_parameters(args)
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
