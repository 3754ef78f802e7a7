"""Which cell made a panel, and what closes when that cell runs again."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest

from sampling_lab.explorer import Toy
from sampling_lab.explorer.panel import rerun
from sampling_lab.explorer.panel.rerun import Cells, Execution, current_execution


class Made:
    def __init__(self) -> None:
        self.closings = 0

    def close(self) -> None:
        self.closings += 1


def make(registry: Cells, cell: str | None, request: str = "") -> Made:
    made = Made()
    registry.add(made, None if cell is None else Execution(cell, request))
    return made


def test_a_new_run_of_a_cell_closes_what_the_run_before_made():
    registry = Cells()
    first = make(registry, "a", "1")
    second = make(registry, "a", "2")
    assert (first.closings, second.closings) == (1, 0)
    third = make(registry, "a", "3")
    assert (first.closings, second.closings, third.closings) == (1, 1, 0)


def test_all_that_one_run_makes_stay_open_together():
    registry = Cells()
    first, second = make(registry, "a", "1"), make(registry, "a", "1")
    assert (first.closings, second.closings) == (0, 0)
    third = make(registry, "a", "2")
    assert (first.closings, second.closings, third.closings) == (1, 1, 0)


def test_other_cells_and_no_cell_close_nothing():
    registry = Cells()
    made = [make(registry, "a", "1"), make(registry, "b", "2")]
    made += [make(registry, None), make(registry, None)]
    assert [one.closings for one in made] == [0, 0, 0, 0]


def test_what_is_gone_is_not_kept_alive():
    registry = Cells()
    gone = weakref.ref(make(registry, "a", "1"))
    gc.collect()
    assert gone() is None
    assert make(registry, "a", "2").closings == 0


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


def test_the_message_of_a_cell_tells_which_one_it_is(shell):
    assert current_execution() == Execution("a", "7")


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
