"""Which cell made a panel, and what closes when that cell runs again."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest

from sampling_lab.explorer import Toy
from sampling_lab.explorer.panel import rerun
from sampling_lab.explorer.panel.rerun import close_earlier_runs, current_execution

REQUEST = {
    "header": {"msg_type": "execute_request", "msg_id": "7"},
    "metadata": {"cellId": "a", "deletedCells": []},
}
ELSEWHERE = {
    "nothing yet": {},
    "no cell": {**REQUEST, "metadata": {}},
    "a widget's message": {
        "header": {"msg_type": "comm_msg", "msg_id": "7"},
        "metadata": {"cellId": "a"},
    },
    "an id of another kind": {**REQUEST, "metadata": {"cellId": ["a"]}},
}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a stand-in for the kernel's shell, with a message that can be set."""
    made = SimpleNamespace(message=REQUEST)
    made.get_parent = lambda: made.message
    monkeypatch.setattr(rerun, "get_ipython", lambda: made)
    return made


class Made:
    def __init__(self) -> None:
        self.closings = 0
        close_earlier_runs(self)

    def close(self) -> None:
        self.closings += 1


@pytest.fixture
def make(shell):
    """Return a function that makes something in a run of a cell, or in none."""

    def made(cell: str | None, request: str = "") -> Made:
        header = {**REQUEST["header"], "msg_id": request}
        shell.message = {"header": header, "metadata": {"cellId": cell}}
        return Made()

    return made


def test_a_new_run_of_a_cell_closes_once_all_that_the_run_before_made(make):
    first, second = make("b", "1"), make("b", "1")
    assert (first.closings, second.closings) == (0, 0)
    third = make("b", "2")
    assert (first.closings, second.closings, third.closings) == (1, 1, 0)
    fourth = make("b", "3")
    closings = [one.closings for one in (first, second, third, fourth)]
    assert closings == [1, 1, 1, 0]


def test_other_cells_and_no_cell_close_nothing(make):
    made = [make("c", "1"), make("d", "2"), make(None), make(None)]
    assert [one.closings for one in made] == [0, 0, 0, 0]


def test_what_is_gone_is_not_kept_alive(make):
    gone = weakref.ref(make("e", "1"))
    gc.collect()
    assert gone() is None
    assert make("e", "2").closings == 0


def test_the_message_of_a_cell_tells_which_one_it_is(shell):
    assert current_execution() == ("a", "7")


@pytest.mark.parametrize("case", ELSEWHERE)
def test_other_messages_belong_to_no_cell(shell, case):
    shell.message = ELSEWHERE[case]
    assert current_execution() is None


def test_outside_a_kernel_there_is_no_cell(monkeypatch):
    assert current_execution() is None
    monkeypatch.setattr(rerun, "get_ipython", lambda: object())  # IPython's console
    assert current_execution() is None


def test_panels_tell_their_cell_by_themselves(shell):
    first, second = Toy(), Toy()
    assert not first.is_closed
    assert not second.is_closed
    shell.message = {**REQUEST, "header": {**REQUEST["header"], "msg_id": "8"}}
    third = Toy()
    assert first.is_closed
    assert second.is_closed
    assert not third.is_closed
    third.close()
