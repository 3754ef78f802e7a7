"""Runs of a model: one text, branches, a grid of settings and seeds, a chat."""
