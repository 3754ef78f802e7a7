"""Pictures of engines side by side: the artists show the numbers behind them."""

import pytest
import torch
from matplotlib.figure import Figure

from sampling_lab import SamplingParams, plots
from sampling_lab.generation.compare_dialects import compare_dialects
from sampling_lab.sampling.dialects import DIALECTS

TOY = torch.tensor([2.0, 1.0, 0.2, -1.0])
NAMES = ["warm", " hot", "$x_$", "\n"]
COLD = SamplingParams(temperature=0.5, top_p=0.8)


def cells(ax, row):
    """Return the texts of a row's cells, from left to right."""
    found = [t for t in ax.texts if t.get_position()[1] == row]
    return [t.get_text() for t in sorted(found, key=lambda t: t.get_position()[0])]


def test_every_dialect_has_a_row_with_its_numbers():
    compared = compare_dialects(TOY, COLD)
    ax = plots.plot_dialects(compared, tokens=NAMES)
    rows = {name: cells(ax, at) for at, name in enumerate(DIALECTS)}
    assert rows["transformers"] == ["1.000", *["top-p"] * 3, "kept 1"]
    assert rows["llama.cpp"] == ["0.881", "0.119", "top-p", "top-p", "kept 2"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["warm", "␣hot", "$x_$", "⏎"]
    assert not any(t.get_parse_math() for t in ax.get_xticklabels())
    ax.figure.draw_without_rendering()


def test_a_tick_says_which_rules_are_checked():
    ax = plots.plot_dialects(compare_dialects(TOY, COLD))
    for label in ax.get_yticklabels():
        name, mark = label.get_text().rsplit(maxsplit=1)
        assert (mark == "✓") == DIALECTS[name].checked


def test_removed_cells_are_hatched_as_in_other_pictures():
    params = SamplingParams(top_k=3, top_p=0.8)
    ax = plots.plot_dialects(compare_dialects(TOY, params, ("transformers",)))
    assert [bar.get_hatch() for bar in ax.patches] == [None, None, "\\\\\\", "///"]


def test_the_distance_is_that_of_the_comparison():
    pairs = plots.distance_table(TOY, COLD, "transformers", "llama.cpp", [0.5, 1.0])
    assert pairs == [(0.5, pytest.approx(0.119, abs=5e-4)), (1.0, 0.0)]
    ax = Figure().add_subplot()
    engines = "transformers", "llama.cpp"
    assert plots.plot_dialect_distance(TOY, COLD, *engines, [0.5, 1.0], ax=ax) is ax
    (line,) = ax.lines
    assert list(zip(*line.get_data(), strict=True)) == pairs
    assert "transformers / llama.cpp" in ax.get_ylabel()
