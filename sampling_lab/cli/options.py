"""The command line's options for sampling, one for each row of the parameter table."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from ..sampling.parameters import PARAMETERS
from ..sampling.settings_text import read_number, read_value

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


def _unset(name: str) -> dict[str, Any]:
    return {"dest": name, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
