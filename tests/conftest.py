"""Settings of all tests: no network, no screen, the same examples every time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis
import pytest

from tests.helpers import ROOT

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MPLBACKEND"] = "Agg"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Shells start background jobs with Ctrl-C ignored; every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: no test asserts a time. The same examples on every machine.
hypothesis.settings.register_profile("lab", deadline=None, derandomize=True)
hypothesis.settings.load_profile("lab")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each file's tests in one process, and all browser tests in one.

    Files share costly fixtures, and two browsers at once would wait for each other.
    """
    for item in items:
        name = item.path.stem
        group = "browser" if name.endswith("_browser") else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the project's root, where `checkpoints` and `notebooks` are."""
    return ROOT
