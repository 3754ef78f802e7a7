"""The chat in a real pseudo-terminal: editing, history, Ctrl-C, Ctrl-D, escapes."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from io import BytesIO, StringIO, TextIOWrapper

import pytest
import torch

from sampling_lab.cli.terminal import Terminal
from sampling_lab.models.scratch_llm.checkpoint import Sizes
from sampling_lab.models.scratch_llm.tokenizer import END_OF_TEXT, load_r50k
from tests.helpers import ROOT

TINY = ROOT / "checkpoints/scratch_llm/tiny_sft.pt"
PATIENCE = 120  # seconds; only a hang takes them


class PseudoTerminal:
    """A chat in its own pseudo-terminal; what it shows is in `text`."""

    def __init__(self, checkpoint, *options, **environment):
        self.master, slave = pty.openpty()
        command = [sys.executable, "-m", "sampling_lab", "chat", "--ckpt", checkpoint]
        self.process = subprocess.Popen(
            [*map(str, command), *options],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env=os.environ | {"TERM": "xterm", "NO_COLOR": "1"} | environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.raw = b""
        self._read_to = 0

    def __enter__(self):  # noqa: D105
        return self

    def __exit__(self, *_):  # noqa: D105
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    @property
    def text(self):
        """All that was shown, without what readline tells the terminal."""
        shown = self.raw.decode(errors="replace").replace("\r\n", "\n")
        return re.sub(r"\x1b\[\?2004[hl]\r?", "", shown)

    def wait_for(self, *wanted):
        """Read until each of some texts has appeared, in order, after the last."""
        for text in wanted:
            end = time.monotonic() + PATIENCE
            while (at := self.text.find(text, self._read_to)) < 0:
                assert time.monotonic() < end, f"no {text!r} in {self.text!r}"
                assert self._receive(), f"no {text!r} before the end of {self.text!r}"
            self._read_to = at + len(text)

    def interrupt(self, send, wanted):
        """Send Ctrl-C until a text appears.

        Python's readline misses a signal that comes just before it waits for a key,
        and then notices it with the next one.
        """
        for _ in range(PATIENCE // 2):
            send()
            end = time.monotonic() + 2
            while time.monotonic() < end:
                if (at := self.text.find(wanted, self._read_to)) >= 0:
                    self._read_to = at + len(wanted)
                    return
                self._receive()
        raise AssertionError(f"no {wanted!r} in {self.text!r}")

    def _receive(self):
        if not select.select([self.master], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.raw += data
        return bool(data)

    def type(self, keys):
        os.write(self.master, keys.encode())

    def status(self):
        while self._receive():
            if self.process.poll() is not None:
                break
        return self.process.wait(PATIENCE)


CTRL_A, CTRL_C, CTRL_D, UP = "\x01", "\x03", "\x04", "\x1b[A"


def test_a_whole_session():
    with PseudoTerminal(TINY, "--single-turn", "--greedy") as terminal:
        terminal.wait_for("tiny_sft · scratch_llm", "/help lists the commands", "you> ")
        terminal.type("What colour is the sky?\n")
        terminal.wait_for("bot> The sky is blue.\n", "you> ")
        terminal.type("/set temperature 0.5\n")
        terminal.wait_for("\ntemperature 0.5", "you> ")
        terminal.type(CTRL_D)
        assert terminal.status() == 0


def test_lines_can_be_edited_and_called_back():
    with PseudoTerminal(TINY, "--single-turn", "--greedy") as terminal:
        terminal.wait_for("you> ")
        terminal.type("XSay hello." + CTRL_A + CTRL_D + "\n")  # delete the X
        terminal.wait_for("bot> Hello! How are you today?\n", "you> ")
        terminal.type("/undo\n")
        terminal.wait_for("forgot: Say hello.\n", "you> ")
        terminal.type(UP + UP + "\n")
        terminal.wait_for("bot> Hello! How are you today?\n", "you> ")
        terminal.type(UP + UP + UP + "\n")  # nothing older: the first line
        terminal.wait_for("bot> Hello! How are you today?\n", "you> ")
        terminal.type("exit\n")
        assert terminal.status() == 0


def test_ctrl_c_at_the_prompt_drops_the_line():
    with PseudoTerminal(TINY, "--greedy") as terminal:
        terminal.wait_for("you> ")
        terminal.type("never said")
        terminal.wait_for("never said")
        terminal.interrupt(lambda: terminal.type(CTRL_C), "\nyou> ")
        terminal.type("/undo\n")
        terminal.wait_for("error: there is no turn yet", "you> ")
        pid = terminal.process.pid
        terminal.interrupt(lambda: os.kill(pid, signal.SIGINT), "\nyou> ")
        terminal.type(CTRL_D)
        assert terminal.status() == 0


def checkpoint(path, says, context):
    """Save a checkpoint that always prefers one token, and never ends by itself."""
    sizes = Sizes(50304, context, n_embed=2, n_head=1, n_blocks=1)
    state = {name: torch.zeros(shape) for name, shape in sizes.shapes().items()}
    (token,) = load_r50k().encode(says)
    state["lm_head.bias"][token] = 30.0
    state["lm_head.bias"][END_OF_TEXT] = -30.0
    torch.save({"model_state_dict": state, "cfg": vars(sizes)}, path)
    return path


@pytest.mark.parametrize("how", ["key", "signal"])
def test_ctrl_c_stops_a_reply_and_keeps_the_session(tmp_path, how):
    path = checkpoint(tmp_path / "endless.pt", " on", 100_000)
    with PseudoTerminal(path, "--greedy", "--max-new-tokens", "90000") as terminal:
        terminal.wait_for("you> ")
        terminal.type("first\n")
        terminal.wait_for("bot> ", " on on on on")
        if how == "key":
            terminal.type(CTRL_C)
        else:
            os.kill(terminal.process.pid, signal.SIGINT)
        terminal.wait_for("stopped\n", "you> ")
        terminal.type("/set max-new-tokens 3\n")
        terminal.wait_for("at most 3 tokens", "you> ")
        terminal.type("second\n")
        terminal.wait_for("bot>  on on on\n", "you> ")
        for text in ("second", "first"):
            terminal.type("/undo\n")
            terminal.wait_for(f"forgot: {text}\n", "you> ")
        terminal.type(CTRL_D)
        assert terminal.status() == 0


def test_escapes_from_the_model_do_not_reach_the_terminal(tmp_path):
    path = checkpoint(tmp_path / "escapes.pt", "\x1b", 32)
    with PseudoTerminal(path, "--greedy", "--max-new-tokens", "3") as terminal:
        terminal.wait_for("you> ")
        terminal.type("Hi\n")
        terminal.wait_for(r"bot> \x1b\x1b\x1b" + "\n", "you> ")
        terminal.type(CTRL_D)
        assert terminal.status() == 0
        assert "\x1b" not in terminal.text


def test_colour_is_for_terminals_that_have_it():
    with PseudoTerminal(TINY, "--greedy", NO_COLOR="") as terminal:
        terminal.wait_for("\x1b[2mtiny_sft", "\x1b[1myou>\x1b[0m ")
        terminal.type(CTRL_D)
        assert terminal.status() == 0


@pytest.mark.parametrize("redirect", ["</dev/null", "<&-"])
def test_without_input_it_leaves_quietly(redirect):
    command = f"{sys.executable} -m sampling_lab chat --ckpt {TINY} {redirect}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, cwd=ROOT, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_bytes_that_are_no_text_do_not_stop_it():
    source = TextIOWrapper(BytesIO(b"caf\xe9\n"), encoding="utf-8")
    assert Terminal(source, StringIO(), StringIO()).read("you") == "caf\ufffd"
