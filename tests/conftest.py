"""Settings of all tests: no network, no screen, the same examples every time."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from tests.helpers import ROOT

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MPLBACKEND"] = "Agg"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# No deadline: no test asserts a time. The same examples on every machine.
hypothesis.settings.register_profile("lab", deadline=None, derandomize=True)
hypothesis.settings.load_profile("lab")


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the project's root, where `checkpoints` and `notebooks` are."""
    return ROOT
