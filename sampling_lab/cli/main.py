"""The command line: one command is one library call, and stdout holds its result."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .. import __version__
from ..errors import ParameterError, SamplingLabError
from . import commands
from .terminal import INTERRUPTED, error_line

_EPILOG = """\
examples:
  sampling-lab generate --checkpoint checkpoints/xslm/model.json \\
      --prompt $'Q: hi\\nA: ' --temperature 0.7 --top-k 5 --seed 7
  sampling-lab generate --checkpoint checkpoints/kimi_k3/last.pt \\
      --token-ids 7,13,29 --mode greedy
  sampling-lab chat --checkpoint checkpoints/smollm2-135m-instruct
  sampling-lab info checkpoints/xslm/model.json

The result is on standard output, everything else on standard error. Options
may be spelt with underscores too. `sampling-lab COMMAND --help` has a command's
own. Exit status: 0 done, 1 failed, 2 asked wrongly, 130 interrupted.
"""

# Free text may begin with a dash, which argparse would take for an option.
_TEXT_OPTIONS = ("--prompt", "--token-ids", "--stop", "--system")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """One width everywhere, so that help is the same in a README and a terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=80)


class _Parser(argparse.ArgumentParser):
    """A parser with errors of one line, filled in only when its command is called."""

    def __init__(
        self,
        *,
        fill: Callable[[argparse.ArgumentParser], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Formatter, **options)
        self._fill = fill

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Add the command's own arguments, then parse as usual."""
        if self._fill is not None:
            self._fill(self)
        return super().parse_known_args(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Leave with one line and status 2."""
        self.exit(_fail(f"{message}; see {self.prog} --help", 2))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: the arguments after the program's name; None takes them from `sys.argv`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = _normalised(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            args = build_parser().parse_args(arguments)
            status: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has left, so what is still buffered cannot be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SamplingLabError as error:
        from .options import as_typed

        return _fail(
            as_typed(str(error)), 2 if isinstance(error, ParameterError) else 1
        )
    except OSError as error:
        return _fail(str(error), 1)
    return status


def _fail(message: str, status: int) -> int:
    error_line("error", message)
    return status


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    error_line("warning", str(message))


def _normalised(argv: Sequence[str]) -> list[str]:
    """Spell options with dashes, and tie free text to its option.

    What follows a lone ``--`` is left as it is.
    """
    result: list[str] = []
    for position, word in enumerate(argv):
        if result and result[-1] in _TEXT_OPTIONS:
            result[-1] += f"={word}"
        elif word == "--":
            return [*result, *argv[position:]]
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            result.append(name.replace("_", "-") + equals + value)
        else:
            result.append(word)
    return result


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="sampling-lab",
        description="See how a language model's next-token scores become the next "
        "token.",
        epilog=_EPILOG,
    )
    version = f"%(prog)s {__version__}"
    parser.add_argument("--version", action="version", version=version)
    adder = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (help_line, fill) in _COMMANDS.items():
        adder.add_parser(name, help=help_line, description=help_line, fill=fill)
    return parser


def _add_generate(parser: argparse.ArgumentParser) -> None:
    from ..sampling.settings_text import read_number
    from .options import add_end_options, add_model_options, add_sampling_options

    parser.set_defaults(run=commands.generate)
    # What is not given is left out, so that every default is the library's.
    parser.argument_default = argparse.SUPPRESS
    add_model_options(parser)
    group = parser.add_argument_group("prompt (exactly one of these)")
    add = group.add_mutually_exclusive_group().add_argument
    add(
        "--prompt",
        type=_utf8,
        metavar="TEXT",
        help="text to continue, as it is; XSLM has $'Q: hi\\nA: '",
    )
    add("--token-ids", metavar="IDS", help="integers, such as 7,13,29")

    add = parser.add_argument
    add("--mode", choices=["sample", "greedy"], help="greedy takes the highest logit")
    add_sampling_options(parser)

    add_end_options(parser)

    group = parser.add_argument_group("output (JSON, unless --text or --stream)")
    add = group.add_mutually_exclusive_group().add_argument
    add("--text", action="store_true", help="print only the new text")
    add("--stream", action="store_true", help="the same, piece by piece as it comes")
    add(
        "--steps",
        type=read_number,
        metavar="N",
        help="JSON with the N likeliest per step",
    )


def _add_chat(parser: argparse.ArgumentParser) -> None:
    from . import chat

    chat.add_arguments(parser)
    parser.set_defaults(run=chat.run)


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=commands.info)
    parser.add_argument("checkpoint", metavar="PATH", help="a file, directory or name")
    parser.add_argument("--json", action="store_true", help="print strict JSON")


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    from ..models.fetch import FETCHABLE

    parser.set_defaults(run=commands.fetch)
    known = "; ".join(f"{name} is {what}" for name, what in FETCHABLE.items())
    parser.add_argument("names", nargs="+", metavar="NAME", help=known)
    parser.add_argument(
        "--into",
        default="checkpoints",
        metavar="DIR",
        help="the directory that holds checkpoints (default: %(default)s)",
    )
    parser.add_argument(
        "--optional", action="store_true", help="only warn about what cannot be had"
    )


def _add_train(parser: argparse.ArgumentParser) -> None:
    from . import train

    parser.set_defaults(run=train.run)
    train.add_arguments(parser)


def _add_lab(parser: argparse.ArgumentParser) -> None:
    from . import lab

    parser.set_defaults(run=lab.run)
    lab.add_arguments(parser)


def _add_app(parser: argparse.ArgumentParser) -> None:
    from . import app

    parser.set_defaults(run=app.run)
    app.add_arguments(parser)


_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "generate": ("Continue a prompt once; print JSON or text.", _add_generate),
    "chat": ("Talk with a model, once or turn by turn.", _add_chat),
    "info": ("Print what is known about a checkpoint.", _add_info),
    "fetch": ("Download a model or tokenizer that git does not hold.", _add_fetch),
    "train": ("Train a toy GPT, new or further, and write its checkpoint.", _add_train),
    "lab": ("Open the explorer in JupyterLab.", _add_lab),
    "app": ("Serve the explorer alone, as a page without code.", _add_app),
}


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("must be UTF-8 text") from None
    return text
