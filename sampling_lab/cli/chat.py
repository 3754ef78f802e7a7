"""The command `sampling-lab chat`: its options and its start."""

from __future__ import annotations

import argparse
import sys

from .options import (
    add_end_options,
    add_model_options,
    add_sampling_options,
    given_ends,
    load_model,
    read_params,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sampling-lab chat`."""
    add_model_options(parser)
    add = parser.add_argument_group("talk").add_argument
    add("--prompt", metavar="TEXT", help="say this, print the reply, and leave")
    add("--system", metavar="TEXT", help="the system message")
    add("--raw", action="store_true", help="continue text, without a chat template")
    add("--single-turn", action="store_true", help="forget each turn at once")
    add("--greedy", action="store_true", help="the same as --temperature 0")
    add_sampling_options(parser)
    add_end_options(parser)


def run(args: argparse.Namespace) -> int:
    """Answer once with `--prompt`, otherwise talk until the person leaves."""
    from ..generation.conversation import Conversation
    from ..sampling.validation import whole_number
    from .repl import Repl
    from .terminal import Terminal

    if args.greedy:
        args.temperature = 0
    read_params(args)  # refused before anything is loaded
    ends = given_ends(args)
    if "max_new_tokens" in ends:
        whole_number("max_new_tokens", ends["max_new_tokens"])
    model = load_model(args)
    card = model.card
    begun = {"seed": None, **card.starting_params, **card.chat_params}
    params = read_params(args, card, **begun)
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
