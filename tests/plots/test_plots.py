"""Plots: the table behind each picture, the artists in it, any token's text."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from sampling_lab import Chain, SamplingParams
from sampling_lab.plots import (
    distribution_table,
    plot_distribution,
    plot_temperature_sweep,
    sweep_table,
)
from sampling_lab.plots.distribution import DistributionArtists
from sampling_lab.plots.distribution_rows import axis_limit
from sampling_lab.plots.drawing.labels import REST, shorten, token_label
from sampling_lab.plots.drawing.style import CHOSEN, FINAL, PAPER, stage_hatch
from sampling_lab.plots.drawing.text_labels import TextColumn

WORDS = ["warm", "hot", "blue", "run"]
TOY = torch.tensor([2.0, 1.0, 0.2, -1.0])
NASTY = (
    "$$",
    "$x_$",
    "\\frac$",
    "中",
    "ｱ",
    "ไทย",
    "سلام",
    "\t",
    "\n",
    "\x00",
    "\x1b[31m",
    " ",
    "",
    "\u0301",
    "👩‍👧",
    "<b>x",
    "</script>",
    "&lt;",
    "<|im_end|>",
    "a" * 200,
)


def toy_ledger(**params):
    return SamplingParams(**params).chain().ledger(TOY)


def rendered(ax):
    """Draw everything as a page would; a warning is an error here."""
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return canvas


def columns(ax):
    """Return the texts of labels, raw and final numbers, as drawn."""
    found = [child for child in ax.get_children() if isinstance(child, TextColumn)]
    return [column.texts for column in found if len(column.texts) > 1]


def bars_of(ax):
    """Return the lengths of the raw and the final bars."""
    paths = (collection.get_paths() for collection in ax.collections)
    return tuple([path.vertices[:, 0].max() for path in bars] for bars in paths)


# The table


@pytest.mark.parametrize(
    ("temperature", "final"),
    [
        (0.5, [0.858, 0.116, 0.023, 0.002]),
        (1.0, [0.632, 0.232, 0.104, 0.031]),
        (2.0, [0.447, 0.271, 0.182, 0.100]),
    ],
)
def test_the_toy_table_has_the_known_numbers(temperature, final):
    bars = distribution_table(toy_ledger(temperature=temperature), tokens=WORDS)
    assert [bar.label for bar in bars] == WORDS
    assert [round(bar.final, 3) for bar in bars] == final
    assert [round(bar.raw, 3) for bar in bars] == [0.632, 0.232, 0.104, 0.031]


def test_removed_tokens_stay_in_the_table_with_their_stage():
    bars = distribution_table(toy_ledger(top_k=3, top_p=0.6), tokens=WORDS)
    assert [bar.removed_by for bar in bars] == [None, "top-p", "top-p", "top-k"]
    assert [bar.final for bar in bars] == [1.0, 0.0, 0.0, 0.0]
    assert not any(bar.kept for bar in bars[1:])


def test_everything_else_is_one_bar_with_the_rest_of_both_masses():
    torch.manual_seed(0)
    ledger = SamplingParams(top_k=30).chain().ledger(torch.randn(1000))
    *bars, rest = distribution_table(ledger, n=20)
    assert len(bars) == 20
    assert (rest.label, rest.token_id, rest.rank) == (REST, None, None)
    assert (rest.count, rest.kept_count) == (980, 10)
    for name in ("raw", "final"):
        total = sum(getattr(bar, name) for bar in [*bars, rest])
        assert total == pytest.approx(1.0, abs=1e-6)


def test_nothing_of_a_removed_rest_is_left():
    ledger = SamplingParams(top_k=2).chain().ledger(torch.arange(100.0) / 10)
    rest = distribution_table(ledger, n=5)[-1]
    assert (rest.final, rest.kept, rest.kept_count) == (0.0, False, 0)
    assert rest.raw > 0.5


def test_a_chosen_token_outside_the_top_takes_the_last_place():
    bars = distribution_table(toy_ledger(), tokens=WORDS, chosen=3, n=2)
    assert [(bar.label, bar.rank, bar.chosen) for bar in bars] == [
        ("warm", 1, False),
        ("run", 4, True),
        (REST, None, False),
    ]
    assert bars[-1].raw == pytest.approx(0.232 + 0.104, abs=1e-3)


@pytest.mark.parametrize("change", [torch.Tensor.bfloat16, torch.Tensor.requires_grad_])
def test_half_precision_and_gradients_give_the_same_table(change):
    exact = torch.tensor([2.0, 1.0, 0.25, -1.0])
    other = Chain().ledger(change(exact.clone()))
    assert distribution_table(other) == distribution_table(Chain().ledger(exact))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 25),
    st.integers(0, 10_000),
    st.sampled_from([{}, {"top_k": 3}, {"top_p": 0.7}, {"temperature": 0.0}]),
)
def test_both_masses_add_up_to_one(vocabulary, n, seed, params):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(vocabulary, generator=generator) * 3
    ledger = SamplingParams(**params).chain().ledger(logits)
    chosen = seed % vocabulary
    bars = distribution_table(ledger, chosen=chosen, n=n)
    assert sum(bar.raw for bar in bars) == pytest.approx(1.0, abs=1e-5)
    assert sum(bar.final for bar in bars) == pytest.approx(1.0, abs=1e-5)
    assert sum(bar.count for bar in bars) == vocabulary
    assert len(bars) == min(vocabulary, n + 1)  # no rest of nothing
    assert sum(bar.kept_count for bar in bars if bar.kept) == ledger.kept_count
    assert [bar.token_id for bar in bars if bar.chosen] == [chosen]


# The picture


def test_bars_are_as_long_as_the_probabilities_and_say_so():
    ledger = toy_ledger(temperature=0.5, top_k=3)
    ax = plot_distribution(ledger, tokens=WORDS, chosen=1, alpha=0.5)
    assert ax.collections[1].get_alpha() == 0.5
    raw, final = bars_of(ax)
    assert raw == pytest.approx([0.632, 0.232, 0.104, 0.031], abs=1e-3)
    assert final == pytest.approx([0.860, 0.116, 0.024, 0.0], abs=1e-3)
    labels, raw_texts, final_texts = columns(ax)
    assert labels == ["warm", "▶ hot", "blue", "run"]
    assert raw_texts == ["0.632", "0.232", "0.104", "0.031"]
    assert final_texts == ["0.860", "0.116", "0.024", "top-k"]
    assert "kept 3 of 4" in ax.get_xlabel()


def test_the_chosen_bar_is_accented_and_removed_ones_are_hatched():
    ax = plot_distribution(toy_ledger(top_k=3, top_p=0.8), tokens=WORDS, chosen=0)
    colors = [tuple(color[:3]) for color in ax.collections[1].get_facecolor()]
    assert colors == [to_rgb(CHOSEN)] + [to_rgb(FINAL)] * 3
    hatched = {patch.get_hatch(): patch.get_path() for patch in ax.patches}
    for stage, row, raw in (("top-p", 2, 0.104), ("top-k", 3, 0.031)):
        box = hatched[stage_hatch(stage)].get_extents()
        assert box.x1 == pytest.approx(raw, abs=1e-3)
        assert box.y0 < row < box.y1 and box.height < 1


def test_the_key_explains_what_there_is():
    keys = [
        [text.get_text() for text in plot_distribution(**data).get_legend().texts]
        for data in ({"ledger": toy_ledger()}, {"ledger": toy_ledger(), "chosen": 0})
    ]
    assert keys[0] == ["raw", "final", "removed"]
    assert keys[1] == ["raw", "final", "chosen", "removed"]


def test_colours_differ_in_greyscale():
    def light(color):
        red, green, blue = to_rgb(color)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert light(PAPER) - light(CHOSEN) > 0.25
    assert light(CHOSEN) - light(FINAL) > 0.2


def test_a_long_rest_is_cut_off_and_marked():
    ax = plot_distribution(Chain().ledger(torch.zeros(1000)), n=5)
    assert ax.get_xlim() == (0.0, 0.1)
    (gaps,) = ax.lines
    assert list(gaps.get_ydata()) == [5] and 0.09 < gaps.get_xdata()[0] < 0.1
    assert columns(ax)[1][-1] == "0.995"


@pytest.mark.parametrize(
    ("longest", "limit"), [(0.03, 0.1), (0.1, 0.1), (0.11, 0.2), (0.6, 1.0), (1.0, 1.0)]
)
def test_the_axis_ends_at_a_round_number(longest, limit):
    logits = torch.tensor([longest] + [(1 - longest) / 999] * 999).log()
    bars = distribution_table(Chain().ledger(logits), n=1)
    assert axis_limit(bars) == limit


def test_two_tokens_that_look_alike_have_two_bars():
    ax = plot_distribution(Chain().ledger(torch.zeros(3)), tokens=["�", "a", "�"])
    assert columns(ax)[0] == ["�", "a", "�"]
    assert len(bars_of(ax)[0]) == 3
    rows = [c.rows for c in ax.get_children() if isinstance(c, TextColumn)]
    assert rows.count([0, 1, 2]) == 3  # of the labels, raw and final numbers


def test_any_token_text_is_drawn_visibly_and_without_a_warning():
    logits = torch.linspace(3, 0, len(NASTY))
    ax = plot_distribution(Chain().ledger(logits), tokens=NASTY, chosen=2)
    rendered(ax)
    labels = columns(ax)[0]
    assert len(set(labels)) == len(NASTY)
    assert all(label.strip() for label in labels)
    assert all(len(label) <= 20 for label in labels)
    assert "▶ \\frac$" in labels and "$$" in labels


@pytest.mark.parametrize("text", ["7", "$$", "سلام", "␣", "⏎", "\\u4e2d"])
def test_a_column_leaves_ink_where_it_says(text):
    figure = Figure(figsize=(4, 2), dpi=100)
    ax = figure.add_axes([0.5, 0, 0.5, 1], ylim=(0, 1))
    ax.axis("off")
    column = TextColumn(ax, 0.0, -10.0, [0.5], [text])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ink = np.asarray(canvas.buffer_rgba())[..., 0] < 128
    rows, places = ink.nonzero()
    box = column.get_window_extent()
    assert len(places) > 5
    assert box.x0 - 1 <= places.min() and places.max() <= box.x1 + 1
    assert box.y0 - 1 <= 200 - rows.max() and 200 - rows.min() <= box.y1 + 2
    assert 170 <= places.max() <= 187  # ends 10 points left of the axes


def test_plots_draw_on_given_axes_and_leave_global_state_alone():
    figure = Figure()
    ax = figure.add_subplot()
    before = dict(plt.rcParams)
    assert plot_distribution(toy_ledger(), ax=ax) is ax
    other = figure.add_subplot()
    assert plot_temperature_sweep(TOY, ax=other) is other
    assert plt.get_fignums() == []
    assert dict(plt.rcParams) == before


def test_columns_are_inside_the_figure():
    ax = plot_distribution(toy_ledger(), tokens=WORDS)
    canvas = rendered(ax)
    page = ax.figure.bbox
    for column in (c for c in ax.get_children() if isinstance(c, TextColumn)):
        box = column.get_window_extent(canvas.get_renderer())
        assert page.x0 <= box.x0 and box.x1 <= page.x1


def test_artists_can_be_given_other_numbers():
    ax = Figure().add_subplot()
    artists = DistributionArtists(ax, 4)
    for params in ({"top_k": 2}, {"temperature": 0.0}, {}):
        bars = distribution_table(toy_ledger(**params), tokens=WORDS)
        artists.show(bars)
        assert bars_of(ax)[1] == pytest.approx([bar.final for bar in bars])
    assert columns(ax)[2] == ["0.632", "0.232", "0.104", "0.031"]
    rendered(ax)


# Labels


def test_labels_come_from_a_function_or_a_list_and_are_never_blank():
    assert token_label(lambda token_id: f"t{token_id}", 3) == "t3"
    labels = [token_label([" né", "", "\u0301"], at) for at in range(3)]
    assert labels == ["␣né", "∅", "\\u0301"]


@given(st.text(max_size=60), st.integers(5, 30))
def test_a_shortened_label_fits_and_keeps_both_ends(text, width):
    short = shorten(text, width)
    assert len(short) <= width
    if len(text) > width:
        assert short[0] == text[0] and short[-1] == text[-1]
    else:
        assert short == text


# The sweep


def test_the_sweep_has_the_known_numbers():
    lines = sweep_table(TOY, [0.5, 1.0, 2.0], tokens=WORDS)
    assert [line.label for line in lines] == WORDS
    assert [round(p, 3) for p in lines[0].probabilities] == [0.858, 0.632, 0.447]
    assert [round(p, 3) for p in lines[3].probabilities] == [0.002, 0.031, 0.100]


def test_the_sweep_with_a_cut_keeps_the_removed_at_zero():
    lines = sweep_table(TOY, [0.5, 2.0], params=SamplingParams(top_k=2), tokens=WORDS)
    assert [line.probabilities for line in lines[2:]] == [(0.0, 0.0)] * 2
    assert sum(line.probabilities[1] for line in lines) == pytest.approx(1.0)


def test_sweep_lines_are_drawn_and_named_without_overlap():
    ax = plot_temperature_sweep(
        TOY, [0.0, 0.5, 2.0], tokens=WORDS, params=SamplingParams(top_k=1), current=1.0
    )
    rendered(ax)
    assert [round(y, 3) for y in ax.lines[0].get_ydata()] == [1.0, 1.0, 1.0]
    (column,) = (c for c in ax.get_children() if isinstance(c, TextColumn))
    assert column.texts == ["warm  1.000", "hot  0.000", "blue  0.000", "run  0.000"]
    heights = sorted(column.rows)
    assert all(b - a > 0.06 for a, b in pairwise(heights))
    assert ax.lines[-1].get_xdata()[0] == 1.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_sweep_takes_any_float_logits(dtype):
    (first, *_) = sweep_table(TOY.to(dtype), [1.0])
    assert first.probabilities[0] == pytest.approx(0.632, abs=2e-3)
