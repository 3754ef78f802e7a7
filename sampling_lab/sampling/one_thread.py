"""Run small arithmetic on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block's arithmetic on one thread, then restore the setting.

    Over one row of a vocabulary a second thread saves microseconds, and costs
    milliseconds whenever the other core is busy, as with the browser that shows the
    result: every operation then waits for a thread that has to wait for its turn.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
