"""Read lines from a terminal or a pipe, and write replies and messages."""

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
    """Lines from an input, replies to stdout, messages to stderr.

    If input and stdout are both terminals, there are prompts, line editing and history;
    otherwise stdout contains only the replies.
    """

    def __init__(self, source: TextIO | None, out: TextIO, err: TextIO) -> None:
        self._source = None if source is None or source.closed else source
        self._out, self._err = out, err
        self.is_interactive = all(
            stream is not None and stream.isatty() for stream in (self._source, out)
        )
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
            EOFError: the input has ended or is closed.
            KeyboardInterrupt: Ctrl-C.
        """
        if self.is_interactive:
            return input(self._prompt(name))
        line = self._source.readline() if self._source else ""
        if not line:
            raise EOFError
        return line.rstrip("\r\n")

    def _prompt(self, name: str) -> str:
        """Return a bold prompt, with the escapes marked as zero-width for readline."""
        with suppress(ImportError):
            import readline  # noqa: F401  gives `input` line editing and history

            if self._has_colour:
                return f"\001\033[{_BOLD}m\002{name}>\001\033[0m\002 "
        return f"{name}> "

    def begin_reply(self) -> None:
        """Write the model's name before its reply."""
        if self.is_interactive:
            self._out.write(self._styled("bot> ", _BOLD))
            self._out.flush()

    def piece(self, text: str) -> None:
        """Write the next part of a reply, with control characters as escapes."""
        self._out.write(terminal(text))
        self._out.flush()

    def end_line(self) -> None:
        """End the line of a reply or a prompt."""
        self.piece("\n")

    def end_turn(self) -> None:
        """Write a blank line between turns."""
        if self.is_interactive:
            self.end_line()

    def remark(self, text: str, kind: str = "note") -> None:
        """Write a message from the program: not part of the model's reply."""
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
    """Write a message to stderr as one line, with control characters as escapes."""
    line = terminal(" ".join(message.splitlines()))
    sys.stderr.write(f"sampling-lab: {kind}: {line}\n")
