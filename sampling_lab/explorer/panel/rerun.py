"""Close the panels that an earlier run of the same notebook cell made."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from IPython import get_ipython

_MADE_BY: WeakKeyDictionary[Any, tuple[str, str]] = WeakKeyDictionary()
"""For each open panel the id of its cell, and that of the request that ran the cell."""


def close_earlier_runs(made: Any) -> None:
    """Note which cell made a panel, if any; close those of its earlier runs."""
    execution = current_execution()
    if execution is None:
        return
    cell, request = execution
    for other, (its_cell, its_request) in tuple(_MADE_BY.items()):
        if its_cell == cell and its_request != request:
            _MADE_BY.pop(other, None)
            other.close()
    _MADE_BY[made] = execution


def current_execution() -> tuple[str, str] | None:
    """Return the ids of the cell that is running and of the request to run it.

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
    return cell, header["msg_id"]
