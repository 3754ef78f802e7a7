"""Kimi K3 trainer checkpoints, format version 7."""
