"""What tests of every room use."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The project's root, where `checkpoints` and `notebooks` are."""
