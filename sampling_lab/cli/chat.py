"""The command `sampling-lab chat`: its options and its start."""

from __future__ import annotations

import argparse
import sys

from .options import (
    add_end_options,
    add_sampling_options,
    given_ends,
    given_parameters,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sampling-lab chat`."""
    add = parser.add_argument
    add(
        *("--checkpoint", "--ckpt"),
        required=True,
        metavar="PATH",
        help="a file, directory or name",
    )
    add("--prompt", metavar="TEXT", help="say this, print the reply, and leave")
    add("--system", metavar="TEXT", help="the system message")
    add("--raw", action="store_true", help="continue text, without a chat template")
    add("--single-turn", action="store_true", help="forget each turn at once")
    add("--greedy", action="store_true", help="the same as --temperature 0")
    add("--device", default="auto", help="auto (the default), cpu, cuda, ...")
    add_sampling_options(parser)
    add_end_options(parser)


def run(args: argparse.Namespace) -> int:
    """Answer once with `--prompt`, otherwise talk until the person leaves."""
    from ..generation.conversation import Conversation
    from ..models import load
    from ..sampling.params import SamplingParams
    from ..sampling.validation import whole_number
    from .repl import Repl
    from .terminal import Terminal

    given = given_parameters(args) | ({"temperature": 0} if args.greedy else {})
    SamplingParams(**given)  # refused before anything is loaded
    ends = given_ends(args)
    if "max_new_tokens" in ends:
        whole_number("max_new_tokens", ends["max_new_tokens"])
    model = load(args.checkpoint, device=args.device)
    params = SamplingParams(**{"seed": None, **model.card.starting_params, **given})
    params.resolve(model.card.dialect)  # its rule for seeds
    conversation = Conversation(
        model,
        system=args.system,
        raw=args.raw,
        remembers=not args.single_turn,
        params=params,
        **ends,
    )
    source = sys.stdin if args.prompt is None else None
    repl = Repl(conversation, Terminal(source, sys.stdout, sys.stderr))
    return repl.run() if args.prompt is None else repl.once(args.prompt)
