"""A person's terminal, or a pipe: lines in, replies and remarks out."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

from ..text import terminal

INTERRUPTED = 130
"""Exit status after Ctrl-C."""


_BOLD, _DIM = 1, 2


class Terminal:
    """Where lines come from, replies go (stdout) and remarks go (stderr).

    With a person at both ends there are prompts, line editing and history; otherwise
    stdout holds the replies and nothing else.
    """

    def __init__(self, source: TextIO | None, out: TextIO, err: TextIO) -> None:
        is_open = source is not None and not source.closed
        self._source = source if is_open else None
        self._out, self._err = out, err
        self.is_interactive = is_open and source.isatty() and out.isatty()
        self._has_colour = (
            err.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )
        if isinstance(source, io.TextIOWrapper):
            source.reconfigure(errors="replace")

    def read(self, name: str) -> str:
        """Return the next line.

        Raises:
            EOFError: there is none, or nowhere to read from.
            KeyboardInterrupt: Ctrl-C.
        """
        if self.is_interactive:
            return input(self._prompt(name))
        line = self._source.readline() if self._source else ""
        if not line:
            raise EOFError
        return line.rstrip("\r\n")

    def _prompt(self, name: str) -> str:
        """Return a bold prompt; readline must not count what makes it bold."""
        with suppress(ImportError):
            import readline  # noqa: F401  what gives `input` editing and history

            if self._has_colour:
                return f"\001\033[{_BOLD}m\002{name}>\001\033[0m\002 "
        return f"{name}> "

    def begin_reply(self) -> None:
        """Say whose turn it is."""
        if self.is_interactive:
            self._out.write(self._styled("bot> ", _BOLD))
            self._out.flush()

    def piece(self, text: str) -> None:
        """Show the next piece of a reply; control characters are shown as escapes."""
        self._out.write(terminal(text))
        self._out.flush()

    def end_line(self) -> None:
        """End the line that a reply or a prompt stands on."""
        self.piece("\n")

    def end_turn(self) -> None:
        """Leave a blank line for the eye."""
        if self.is_interactive:
            self.end_line()

    def remark(self, text: str, kind: str = "note") -> None:
        """Say something that is not the model's."""
        if not self.is_interactive:
            for line in text.splitlines():
                error_line(kind, line)
            return
        text = f"error: {text}" if kind == "error" else text
        self._err.write(self._styled(terminal(text), _DIM) + "\n")
        self._err.flush()

    def _styled(self, text: str, style: int) -> str:
        return f"\033[{style}m{text}\033[0m" if self._has_colour else text


def error_line(kind: str, message: str) -> None:
    """Write one line to stderr, whatever the message holds."""
    line = terminal(" ".join(message.splitlines()))
    sys.stderr.write(f"sampling-lab: {kind}: {line}\n")
