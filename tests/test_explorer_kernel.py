"""The explorer in a real kernel: what a page sends acts between two tokens."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 120

SET_UP = """
import time, torch
from sampling_lab.explorer import Explorer
from sampling_lab.explorer.player import Player
from tests.fakes import TableModel

class Noted(Player):
    def stop(self, *because):
        done.append(self.run and len(self.run.generation.steps))
        super().stop(*because)

done = []
Explorer.__init__.__globals__["Player"] = Noted

class Slow(TableModel):
    def _forward(self, ids):
        time.sleep(0.02)
        return super()._forward(ids)

model = Slow(torch.zeros(8, 8), [bytes([97 + at]) for at in range(8)])
explorer = Explorer(model, prompt="a", max_new_tokens=100_000)
stop = explorer.stop_button.comm.comm_id
slider = explorer.controls.dials["temperature"].slider.comm.comm_id
print(stop, slider)
"""
REPORT = """
print(explorer.player.is_playing, len(explorer.generation.steps) - done[0],
      explorer.status.value.split(" · ")[0], sep="|")
"""


class Kernel:
    """A kernel with a client, as a page has it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str) -> str:
        """Run a cell and return what it printed."""
        asked, printed = self.client.execute(code), ""
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            printed += content.get("text", "")
            assert message["msg_type"] != "error", content
            if content.get("execution_state") == "idle":
                return printed

    def send(self, comm_id: str, data: dict, subshell: str | None) -> None:
        """Send what a page sends when a person uses a widget."""
        message = self.client.session.msg(
            "comm_msg", {"comm_id": comm_id, "data": data}
        )
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)

    def subshell(self) -> str:
        """Return the id of a new subshell, which is where JupyterLab sends these."""
        self.client.control_channel.send(
            self.client.session.msg("create_subshell_request")
        )
        return self.client.control_channel.get_msg(timeout=SECONDS)["content"][
            "subshell_id"
        ]

    def wait_for_pictures(self, count: int) -> None:
        """Return when a run has sent so many changes of widgets."""
        while count:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            count -= message["msg_type"] == "comm_msg"

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
    stop, slider = kernel.run(SET_UP).split()
    subshell = kernel.subshell() if where == "subshell" else None
    for value in (0.5, 0.9):
        kernel.run("done.clear(); explorer.generate()")
        kernel.wait_for_pictures(6)
        if what == "stop":
            click = {"method": "custom", "content": {"event": "click"}}
            kernel.send(stop, click, subshell)
        elif what == "slide":
            state = {"method": "update", "state": {"value": value}, "buffer_paths": []}
            kernel.send(slider, state, subshell)
        else:
            kernel.manager.interrupt_kernel()
        kernel.wait_for_silence()
        playing, tokens, told = kernel.run(REPORT).strip().split("|")
        assert playing == "False"
        assert int(tokens) <= 1
        assert told == ending
