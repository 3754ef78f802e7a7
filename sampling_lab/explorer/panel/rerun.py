"""Which cell of a notebook made which panels: running it again closes the old ones."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

from IPython import get_ipython


class Execution(NamedTuple):
    """One run of one cell.

    Attributes:
        cell: the cell's id in its notebook.
        request: the id of the message that asked for this run.
    """

    cell: str
    request: str


class Closable(Protocol):
    """What a cell made: it can be closed, more than once."""

    def close(self) -> None:
        """Stop everything and remove the widgets."""
        ...


def current_execution() -> Execution | None:
    """Return the run of a cell that this code belongs to.

    JupyterLab and Notebook 7 send the cell's id along with its code. None where there
    is no such id: in a script or a console, under nbclient and Voila, and while a
    widget's message is handled.
    """
    shell = get_ipython()
    message = shell.get_parent() if hasattr(shell, "get_parent") else {}
    header: dict[str, Any] = message.get("header", {})
    cell = message.get("metadata", {}).get("cellId")
    if header.get("msg_type") != "execute_request" or not isinstance(cell, str):
        return None
    return Execution(cell, header["msg_id"])


class Cells:
    """Remember, weakly, what the last run of each cell made."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, WeakSet[Closable]]] = {}

    def add(self, made: Closable, execution: Execution | None) -> None:
        """Note that a run of a cell made this; what earlier runs of it made closes.

        Args:
            made: what was made.
            execution: by which run; None, that of no cell, closes nothing.
        """
        if execution is None:
            return
        request, boards = self._made.get(execution.cell, ("", WeakSet()))
        if request != execution.request:
            for board in tuple(boards):
                board.close()
            boards = WeakSet()
        boards.add(made)
        self._made[execution.cell] = (execution.request, boards)


CELLS = Cells()
"""Those of the notebook that this kernel runs."""
