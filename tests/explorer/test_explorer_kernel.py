"""The explorer in a real kernel: what a page sends acts between two tokens."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.helpers import ROOT

SECONDS = 120

SET_UP = """
import time, torch
from sampling_lab.explorer import Explorer
from sampling_lab.explorer.panel.player import RunPlayer
from tests.fakes import TableModel

class Noted(RunPlayer):
    def stop(self, *because):
        done.append(self.run and len(self.run.generation.steps))
        super().stop(*because)

done = []
Explorer.__init__.__globals__["RunPlayer"] = Noted

class Slow(TableModel):
    def _forward(self, ids):
        time.sleep(0.02)
        return super()._forward(ids)

model = Slow(torch.zeros(8, 8), [bytes([97 + at]) for at in range(8)])
"""
EXPLORER = """
explorer = Explorer(model, prompt="a", max_new_tokens=100_000)
stop = explorer.stop_button.comm.comm_id
slider = explorer.controls.dials["temperature"].slider.comm.comm_id
print(stop, slider)
"""
REPORT = """
print(explorer.player.is_playing, len(explorer.generation.steps) - done[0],
      explorer.status.value.split(" · ")[0], sep="|")
"""
COMPARE = """
from sampling_lab.explorer import Compare
compare = Compare(model, prompt="a", max_new_tokens=100_000)
"""
ASK_BETWEEN_MESSAGES = """
import asyncio, signal
heard = []
ask = lambda: heard.append(signal.getsignal(signal.SIGINT))
_ = asyncio.get_running_loop().call_later(0.1, ask)
"""
CLOSE_ALL = "import ipywidgets; ipywidgets.Widget.close_all()"
LIVE = """
from ipywidgets.widgets.widget import _instances
from sampling_lab.explorer.panel.lab_widget import LabWidget
boards = [widget for widget in _instances.values() if isinstance(widget, LabWidget)]
print(len(boards), len(_instances))
"""


class Kernel:
    """A kernel with a client, as a page has it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str, cell: str = "", subshell: str | None = None) -> str:
        """Run a cell and return what it printed.

        Args:
            code: its text.
            cell: its id, which JupyterLab sends along.
            subshell: where to run it.
        """
        content = {"code": code, "silent": False, "store_history": True}
        content |= {"user_expressions": {}, "allow_stdin": False}
        message = self.client.session.msg(
            "execute_request", content, metadata={"cellId": cell} if cell else {}
        )
        return self.printed(self.send(message, subshell))

    def printed(self, asked: str) -> str:
        """Return what a message has printed, when it is done with."""
        printed = ""
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            printed += content.get("text", "")
            assert message["msg_type"] != "error", content
            if content.get("execution_state") == "idle":
                return printed

    def use(self, comm_id: str, data: dict, subshell: str | None) -> None:
        """Send what a page sends when a person uses a widget."""
        content = {"comm_id": comm_id, "data": data}
        self.send(self.client.session.msg("comm_msg", content), subshell)

    def send(self, message: dict, subshell: str | None) -> str:
        """Send a message, to a subshell if one is named, and return its id."""
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def subshell(self) -> str:
        """Return the id of a new subshell, which is where JupyterLab sends these."""
        self.client.control_channel.send(
            self.client.session.msg("create_subshell_request")
        )
        return self.client.control_channel.get_msg(timeout=SECONDS)["content"][
            "subshell_id"
        ]

    def wait_until(self, condition: str) -> None:
        """Return when something is true in the kernel, asked between two tokens."""
        deadline = time.monotonic() + SECONDS
        while self.run(f"print({condition})") != "True\n":
            assert time.monotonic() < deadline, condition

    def wait_for_silence(self) -> None:
        """Return when nothing has been sent for a while: the run has ended."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                self.client.get_iopub_msg(timeout=1.0)
            except queue.Empty:
                return
        pytest.fail("the run did not end")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory) -> Iterator[Kernel]:
    manager = KernelManager()
    folder = str(tmp_path_factory.mktemp("ipython"))
    environment = {**os.environ, "IPYTHONDIR": folder, "PYTHONPATH": str(ROOT)}
    manager.start_kernel(cwd=str(ROOT), env=environment)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=SECONDS)
    yield Kernel(manager, client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("what", "where", "ending"),
    [
        ("stop", "main", "stopped"),
        ("stop", "subshell", "stopped"),
        ("slide", "main", "stopped: a setting changed"),
        ("slide", "subshell", "stopped: a setting changed"),
        ("interrupt", "process", "stopped"),
    ],
)
def test_a_run_ends_within_one_token_and_can_be_started_again(
    kernel, what, where, ending
):
    stop, slider = kernel.run(SET_UP + EXPLORER).split()
    subshell = kernel.subshell() if where == "subshell" else None
    for value in (0.5, 0.9):
        kernel.run("done.clear(); explorer.generate()")
        kernel.wait_until("len(explorer.generation.steps) >= 3")
        if what == "stop":
            click = {"method": "custom", "content": {"event": "click"}}
            kernel.use(stop, click, subshell)
        elif what == "slide":
            state = {"method": "update", "state": {"value": value}, "buffer_paths": []}
            kernel.use(slider, state, subshell)
        else:
            kernel.manager.interrupt_kernel()
        kernel.wait_for_silence()
        playing, tokens, told = kernel.run(REPORT).strip().split("|")
        assert playing == "False"
        assert int(tokens) <= 1
        assert told == ending


def test_an_interrupt_ends_a_comparison_and_the_next_one_runs(kernel):
    kernel.run(SET_UP + COMPARE)
    for _ in range(2):
        kernel.run("compare.compare()")
        kernel.wait_until("compare.grid.runs[1][2].generation.steps[2:] != ()")
        kernel.manager.interrupt_kernel()
        kernel.wait_for_silence()
        told = kernel.run("print(compare.player.is_playing, compare.status.value)")
        assert told.startswith("False stopped · ")
        count = kernel.run("print(len(compare.grid.runs[0][0].generation.steps))")
        assert 3 <= int(count) < 100_000


# A cell that runs again


@pytest.mark.parametrize("make", [EXPLORER, COMPARE, "toy = Toy()"])
@pytest.mark.parametrize("where", ["main", "subshell"])
def test_a_cell_that_runs_again_closes_what_it_made_before(kernel, make, where):
    kernel.run(SET_UP + "from sampling_lab.explorer import Toy\n" + CLOSE_ALL)
    subshell = kernel.subshell() if where == "subshell" else None
    live = []
    for _ in range(3):
        kernel.run(make, "cell-07", subshell)
        live.append(kernel.run(LIVE))
    assert live[0].startswith("1 ")
    assert live == live[:1] * 3


def test_a_run_in_progress_ends_when_its_cell_runs_again(kernel):
    kernel.run(SET_UP + CLOSE_ALL)
    before = who_hears_interrupts(kernel)
    kernel.run(EXPLORER + "first = explorer; explorer.generate()", "cell-07")
    kernel.wait_until("len(first.generation.steps) >= 3")
    assert who_hears_interrupts(kernel) != before
    kernel.run(EXPLORER, "cell-07")
    kernel.wait_for_silence()
    told = kernel.run("print(first.is_closed, first.player.is_playing)")
    assert told == "True False\n"
    assert who_hears_interrupts(kernel) == before


def who_hears_interrupts(kernel: Kernel) -> str:
    """Return the handler of interrupts between two messages."""
    kernel.run(ASK_BETWEEN_MESSAGES)
    kernel.wait_until("bool(heard)")
    return kernel.run("print(heard[0])")


def test_other_cells_and_two_panels_in_one_stay(kernel):
    kernel.run(SET_UP + "from sampling_lab.explorer import Toy\n" + CLOSE_ALL)
    kernel.run("one, two = Toy(), Toy()", "cell-01")
    kernel.run("three = Toy()", "cell-02")
    kernel.run("four = Toy()")
    kernel.run("four = Toy()")
    assert kernel.run(LIVE).startswith("5 ")
    kernel.run("one, two = Toy(), Toy()", "cell-01")
    assert kernel.run(LIVE).startswith("5 ")
    kernel.run("two = None", "cell-01")
    assert kernel.run(LIVE).startswith("5 ")
