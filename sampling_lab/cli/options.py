"""The command line's options for sampling, one for each row of the parameter table."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from ..sampling.parameters import PARAMETERS
from ..sampling.settings_text import read_value

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


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the sampling parameters that were given."""
    return {name: value for name, value in vars(args).items() if name in PARAMETERS}


def _unset(name: str) -> dict[str, Any]:
    return {"dest": name, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
