"""Pictures of stages and random numbers: the artists show the numbers behind them."""

import operator
from itertools import pairwise

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from sampling_lab import Chain, SamplingParams, Temperature, TopP, plots
from sampling_lab.counterfactuals import (
    Segment,
    TemperatureMap,
    compare_frequencies,
    noise_of_step,
    race_rows,
    seed_grid,
    temperature_map,
    wheel_slices,
)
from sampling_lab.errors import ParameterError
from sampling_lab.plots.drawing.style import CHOSEN, FINAL, stage_hatch
from sampling_lab.plots.drawing.text import ink_on, points_wide
from sampling_lab.plots.drawing.text_labels import TextLabels, text_width
from sampling_lab.plots.stages_rows import removed_by
from sampling_lab.plots.temperature_map import FILLS, OTHER, token_colors

TOY = torch.tensor([2.0, 1.0, 0.2, -1.0])
NAMES = ["warm", " hot", "$x_$", "\n"]
SHOWN = ["warm", "␣hot", "$x_$", "⏎"]
SEED = 34
"""At this seed the choice is warm, then hot from T 0.79, then run from T 1.14."""


def large(size=2000):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(size, generator=generator) * 2


def written(ax):
    """Return the notes on axes, in order."""
    found = [child for child in ax.get_children() if isinstance(child, TextLabels)]
    return [label for labels in found for label in labels.labels if label.text]


def texts(ax):
    """Return all that is written on axes, as texts or as notes."""
    plain = [text.get_text() for text in ax.texts if text.get_visible()]
    return plain + [note.text for note in written(ax)]


def boxes(ax):
    """Return the boxes on axes as (left, right, colour), collection by collection."""
    found = []
    for shapes in ax.collections:
        pairs = zip(shapes.get_paths(), shapes.get_facecolor(), strict=True)
        sides = [(path.vertices[:2, 0].tolist(), color) for path, color in pairs]
        found.append([(*side, to_hex(color)) for side, color in sides])
    return found


def region(patch):
    """Return the boxes of one path as (left, right)."""
    corners = patch.get_path().vertices.reshape(-1, 5, 2)
    return [(box[:, 0].min(), box[:, 0].max()) for box in corners]


def everything():
    """Return each picture, drawn on axes of its own."""
    params = SamplingParams(temperature=0.8, top_k=3, top_p=0.9, seed=SEED)
    noise = noise_of_step(TOY, params)
    wheel = params.replace(dialect="xslm")
    named = {"tokens": NAMES}
    return {
        "stages": plots.plot_stages(params.chain().ledger(TOY), **named)[0],
        "staircase": plots.plot_staircase(TOY, 0.8, **named),
        "wheel": plots.plot_wheel(TOY, wheel.draw()(TOY), **named),
        "race": plots.plot_race(params.chain()(TOY), noise, **named),
        "lines": plots.plot_race_lines(TOY, noise, range(4), **named),
        "map": plots.plot_temperature_map(temperature_map(TOY, params), **named),
        "theory": plots.plot_frequencies(compare_frequencies(TOY, params, 50), **named),
        "grid": plots.plot_seed_grid(seed_grid(TOY, params, [1, 2], [0, 1.0]), **named),
    }


def test_every_picture_draws_literal_text_without_a_global_figure_or_a_warning():
    before = dict(matplotlib.rcParams)
    for name, ax in everything().items():
        assert isinstance(ax.figure, Figure), name
        ax.figure.draw_without_rendering()
        for text in [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels()]:
            assert "$" not in text.get_text() or not text.get_parse_math(), name
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("plot", "data"),
    [
        (plots.plot_staircase, (TOY, 0.8)),
        (plots.plot_wheel, (TOY,)),
        (plots.plot_race, (TOY, noise_of_step(TOY, SamplingParams()))),
        (plots.plot_frequencies, (compare_frequencies(TOY, SamplingParams(), 9),)),
    ],
)
def test_axes_in_axes_out(plot, data):
    ax = Figure().add_subplot()
    assert plot(*data, ax=ax) is ax
    ticks = [*ax.get_xticklabels(), *ax.get_yticklabels()]
    assert "⟨0⟩" in [*texts(ax), *(tick.get_text() for tick in ticks)]


# Stages


def test_each_stage_has_a_panel_with_its_numbers():
    ledger = Chain((Temperature(0.5), TopP(0.8))).ledger(TOY)
    raw, warm, cut = plots.stages_table(ledger)
    assert (raw.title, warm.title) == ("raw", "temperature 0.5")
    assert raw.before == raw.after
    assert raw.after == pytest.approx((0.632, 0.232, 0.104, 0.031), abs=6e-4)
    assert warm.before == raw.after and cut.before == warm.after
    assert warm.after == pytest.approx((0.858, 0.116, 0.023, 0.002), abs=6e-4)
    assert cut.after == (1.0, 0.0, 0.0, 0.0)
    assert cut.removed == (False, True, True, True)
    assert (cut.kept_count, cut.entropy) == (1, 0.0)
    axes = plots.plot_stages(ledger, tokens=NAMES)
    assert texts(axes[0])[-4:] == SHOWN
    assert [ax.get_ylim() for ax in axes] == [axes[0].get_ylim()] * 3
    assert [ax.get_xlim() for ax in axes] == [axes[0].get_xlim()] * 3
    assert texts(axes[2])[:4] == ["1.000", "removed", "removed", "removed"]
    assert texts(axes[2])[4:] == ["top-p 0.8", "1 kept · 0.00 bits"]
    fills, accent, hatched, outlines = axes[2].patches
    assert [right for _, right in region(fills)] == list(cut.after)
    assert region(accent) == []
    assert [right for _, right in region(outlines)] == pytest.approx(cut.before)
    assert hatched.get_hatch() == stage_hatch("top-p")
    assert [right for _, right in region(hatched)] == pytest.approx(cut.before[1:])


def test_what_an_earlier_stage_removed_is_not_removed_again():
    params = SamplingParams(top_k=2, top_p=0.99, dialect="transformers")
    *_, last = plots.plot_stages(params.chain().ledger(TOY))
    assert texts(last)[2:4] == ["–", "–"]


def test_beside_the_last_panel_stands_what_removed_each_token():
    params = SamplingParams(top_k=3, top_p=0.8, dialect="transformers")
    logits = torch.tensor([2.0, 1.0, 0.2, -1.0, -torch.inf])
    ledger = params.chain().ledger(logits)
    verdicts = ["kept", "kept", "top-p", "top-k", "-inf"]
    assert removed_by(ledger, range(5)) == verdicts
    *others, last = plots.plot_stages(ledger, explain=True)
    assert texts(last)[-6:] == [*verdicts, "removed by"]
    assert not any("kept" in texts(ax) for ax in others)
    assert "removed by" not in texts(plots.plot_stages(ledger)[-1])


def test_the_chosen_token_is_accented_in_every_panel():
    ledger = Chain((Temperature(0.5),)).ledger(TOY)
    columns = plots.stages_table(ledger)
    axes = plots.plot_stages(ledger, tokens=NAMES, chosen=1)
    for ax, column in zip(axes, columns, strict=True):
        fills, accent, *_ = ax.patches
        assert to_hex(fills.get_facecolor()) == FINAL
        assert to_hex(accent.get_facecolor()) == CHOSEN
        assert region(accent) == [(0.0, column.after[1])]
        assert len(region(fills)) == 3
    first, _ = axes
    assert texts(first)[-4:] == ["warm", "▶ ␣hot", "$x_$", "⏎"]


def test_narrow_panels_break_their_headings_into_lines():
    ledger = Chain((Temperature(0.5), TopP(0.8))).ledger(TOY)
    axes = list(Figure((4.0, 3.0)).subplots(1, 3))
    plots.plot_stages(ledger, axes=axes)
    lines = [note for note in written(axes[1]) if note.move[1] > 0]
    shown = [line.text for line in lines]
    assert shown == ["temp…ture", "0.5", "4 kept", "0.70 bits"]
    heights = [line.move[1] for line in lines]
    assert heights == sorted(set(heights), reverse=True) and heights[-1] > 0
    assert text_width(shown[0]) <= points_wide(axes[1]) + 4


def test_panels_in_two_rows_name_their_tokens_in_both():
    ledger = Chain((Temperature(0.5), TopP(0.8), Temperature(2.0))).ledger(TOY)
    axes = list(Figure().subplots(2, 2).flat)
    plots.plot_stages(ledger, tokens=NAMES, axes=axes)
    assert [set(SHOWN) <= set(texts(ax)) for ax in axes] == [True, False, True, False]


def test_stages_need_as_many_axes():
    ledger = Chain((Temperature(2.0),)).ledger(TOY)
    axes = list(Figure().subplots(1, 2))
    assert plots.plot_stages(ledger, axes=axes) == axes
    with pytest.raises(ParameterError, match=r"axes must be 2, .* got 1"):
        plots.plot_stages(ledger, axes=axes[:1])


# Staircase


def test_the_staircase_climbs_to_the_token_that_crosses():
    stairs = plots.staircase_table(TOY, 0.8, tokens=NAMES)
    assert [s.label for s in stairs] == SHOWN
    assert [s.cumulative for s in stairs] == pytest.approx(
        [0.632, 0.864, 0.969, 1.0], abs=6e-4
    )
    assert [s.kept for s in stairs] == [True, True, False, False]
    assert [s.crosses for s in stairs] == [False, True, False, False]
    ax = plots.plot_staircase(TOY, 0.8, tokens=NAMES)
    (threshold,) = ax.lines
    assert set(threshold.get_ydata()) == {0.8}
    heights = [(bar.get_y(), bar.get_height()) for bar in ax.patches[1::2]]
    assert heights[1] == pytest.approx((0.632, 0.232), abs=6e-4)
    assert to_hex(ax.patches[3].get_facecolor()) == CHOSEN
    assert ax.get_xlabel() == "kept 2 of 4 tokens"


def test_a_nucleus_longer_than_the_picture_crosses_outside_it():
    stairs = plots.staircase_table(large(), 0.9, n=8)
    assert len(stairs) == 8
    assert all(s.kept and not s.crosses for s in stairs)


def test_the_staircase_keeps_what_the_rule_keeps():
    case = torch.tensor([0.3, 0.1, 0.1, 0.5]).log()
    for rule in ("descending", "ascending"):
        kept = TopP(0.8, rule=rule)(case) > -torch.inf
        for stair in plots.staircase_table(case, 0.8, rule=rule):
            assert stair.kept == bool(kept[stair.token_id])


# Wheel


def test_the_number_stands_in_the_accented_slice():
    params = SamplingParams(seed=7, dialect="xslm")
    drawn = params.draw()(TOY)
    ax = plots.plot_wheel(TOY, drawn, tokens=NAMES)
    ((*slices, (low, high, color)),) = boxes(ax)
    assert color == CHOSEN
    assert low <= drawn.uniform < high
    assert (low, high) == pytest.approx(drawn.segment)
    assert {x for line in ax.lines for x in line.get_xdata()} == {drawn.uniform}
    assert texts(ax)[-1] == f"{drawn.uniform:.3f}"
    assert texts(ax).count("warm") == 1
    cuts = wheel_slices(TOY)
    ends = [end for box in slices for end in box[:2]]
    assert ends == pytest.approx([end for s in cuts for end in (s.low, s.high)])
    assert all(a[2] != b[2] for a, b in pairwise(slices))


def test_a_wheel_without_a_draw_marks_nothing():
    ax = plots.plot_wheel(TOY, tokens=NAMES)
    assert CHOSEN not in {color for *_, color in boxes(ax)[0]}
    assert not any(line.get_xdata() for line in ax.lines)
    assert texts(ax)[:4] == ["warm", "0.632", "␣hot", "0.232"]


def test_a_narrow_slice_is_named_beside_the_number():
    drawn = SamplingParams(seed=7, dialect="xslm").draw()(large())
    ax = plots.plot_wheel(large(), drawn, tokens=lambda i: f"token {i}")
    assert texts(ax)[-1].endswith(f"→ token␣{drawn.token_id}")
    assert "everything else" in texts(ax)


# Race


def test_bars_of_the_race_reach_from_p_to_p_over_q():
    noise = noise_of_step(TOY, SamplingParams(seed=SEED))
    rows = race_rows(TOY, noise)
    ax = plots.plot_race(TOY, noise, tokens=NAMES)
    (bars,) = boxes(ax)
    for bar, row in zip(bars, rows, strict=True):
        assert bar[:2] == pytest.approx(sorted((row.prob, row.score)))
    colors = [bar[2] for bar in bars]
    assert colors.index(CHOSEN) == 0 and colors.count(CHOSEN) == 1
    starts, ends, winner = ax.lines
    assert list(starts.get_xdata()) == [row.prob for row in rows]
    assert [*winner.get_xdata(), *ends.get_xdata()] == [row.score for row in rows]
    assert ax.get_xscale() == "log"
    first = rows[0]
    assert texts(ax)[:4] == ["▶ ␣hot", "⏎", "warm", "$x_$"]
    numbers = [f"{n:.3f}" for n in (first.prob, first.exponential, first.score)]
    assert texts(ax)[4:7] == numbers
    assert [note.bold for note in written(ax)[4:8]] == [True] * 3 + [False]


def test_races_on_one_axis_can_be_compared():
    noise = noise_of_step(TOY, SamplingParams(seed=SEED))
    axes = [plots.plot_race(TOY / t, noise, limits=(1e-3, 2)) for t in (0.5, 2)]
    assert [ax.get_xlim() for ax in axes] == [(1e-3, 2)] * 2
    ratios = [{round(bar[1] / bar[0], 4) for bar in boxes(ax)[0]} for ax in axes]
    assert ratios[0] == ratios[1]


def test_a_race_of_one_has_a_winner_and_an_axis():
    logits = torch.tensor([0.0, -torch.inf])
    ax = plots.plot_race(logits, noise_of_step(logits, SamplingParams()))
    assert [list(line.get_xdata()) for line in ax.lines[:2]] == [[1.0], []]
    low, high = ax.get_xlim()
    assert 0 < low < 1 < high


def test_the_highest_line_of_the_race_is_the_winner():
    params = SamplingParams(seed=SEED)
    noise = noise_of_step(TOY, params)
    found = temperature_map(TOY, params)
    ax = plots.plot_race_lines(TOY, noise, range(4), tokens=NAMES, low=0.5)
    *lines, envelope = ax.lines
    beta = lines[0].get_xdata()
    for at in (0, 60, 130, 199):
        scores = [line.get_ydata()[at] for line in lines]
        assert scores.index(max(scores)) == found.winner(1 / beta[at])
        assert envelope.get_ydata()[at] == max(scores)
    assert [text.strip() for text in texts(ax)] == SHOWN


def test_a_wheel_has_no_lines():
    noise = noise_of_step(TOY, SamplingParams(seed=SEED, dialect="xslm"))
    with pytest.raises(ParameterError, match="random numbers of a race, got choices"):
        plots.plot_race_lines(TOY, noise, range(4))


# Temperature map


def test_the_band_is_cut_where_the_choice_changes():
    found = temperature_map(TOY, SamplingParams(seed=SEED))
    ax = plots.plot_temperature_map(found, tokens=NAMES, current=0.9)
    (band,) = boxes(ax)
    for (low, high, _), segment in zip(band, found.segments, strict=True):
        assert (low, high) == pytest.approx((segment.low, segment.high))
    assert [s.token_id for s in found.segments] == [0, 1, 3]
    assert texts(ax) == ["warm", "␣hot", "⏎", "0.79", "1.14", "T = 0.9"]
    assert len({color for *_, color in band}) == 3
    assert ax.get_xscale() == "log" and ax.get_xlim() == (0.05, 5.0)
    assert {x for line in ax.lines for x in line.get_xdata()} == {0.9}


@pytest.mark.parametrize("temperature", [0, 7.0, None])
def test_a_current_temperature_outside_the_map_is_not_marked(temperature):
    found = temperature_map(TOY, SamplingParams(seed=SEED))
    ax = plots.plot_temperature_map(found, current=temperature)
    assert not any(line.get_xdata() for line in ax.lines)
    assert not any(text.startswith("T = ") for text in texts(ax))


def test_labels_that_do_not_fit_are_shortened():
    found = temperature_map(TOY, SamplingParams(seed=SEED))
    ax = plots.plot_temperature_map(found, tokens=lambda i: "a very long token")
    assert texts(ax)[0] == "a␣very␣long␣token"
    assert "…" in texts(ax)[1] and len(texts(ax)[1]) < 10


def test_names_of_narrow_segments_read_upwards_or_are_left_out():
    ends = (0.05, 0.06, 0.0605, 5.0)
    segments = tuple(map(Segment, ends, ends[1:], (0, 1, 2)))
    ax = plots.plot_temperature_map(TemperatureMap(segments, True, ""), tokens=NAMES)
    names = [note for note in written(ax) if note.bold]
    assert [(note.text, note.turned) for note in names] == [
        ("warm", True),
        ("$x_$", False),
    ]


# Theory


def test_theory_and_draws_stand_side_by_side():
    check = compare_frequencies(large(), SamplingParams(top_k=40), 400)
    ax = plots.plot_frequencies(check, tokens=lambda i: f"t{i}")
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx([row.prob for row in check.rows])
    bands, dots = ax.lines[::2], ax.lines[1::2]
    for row, band, dot in zip(check.rows, bands, dots, strict=True):
        assert list(band.get_xdata()) == [row.low, row.high]
        assert list(dot.get_xdata()) == [row.frequency]
        assert dot.get_marker() == ("o" if row.is_inside else "X")
    assert ax.get_yticklabels()[-1].get_text() == "everything else"
    assert f"p-value {check.p_value:.2f}" in ax.get_xlabel()


# Seeds and temperatures


def test_cells_of_the_grid_show_their_tokens():
    grid = seed_grid(TOY, SamplingParams(), [SEED, 0], [0, 0.9, 2.0])
    ax = plots.plot_seed_grid(grid, tokens=NAMES)
    flat = [token_id for row in grid.token_ids for token_id in row]
    assert texts(ax) == [SHOWN[token_id] for token_id in flat]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "0.9", "2"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["34", "0"]
    colors = [to_hex(bar.get_facecolor()) for bar in ax.patches]
    assert len(set(zip(flat, colors, strict=True))) == len(set(flat))


# Colours


def grey(color):
    return sum(map(operator.mul, to_rgb(color), (0.299, 0.587, 0.114)))


def test_the_first_fills_differ_in_greyscale():
    first = [grey(color) for color in FILLS[:5]]
    gaps = [abs(a - b) for i, a in enumerate(first) for b in first[:i]]
    assert min(gaps) > 0.06
    assert all(abs(grey(a) - grey(b)) > 0.2 for a, b in pairwise(FILLS[:4]))


@pytest.mark.parametrize("color", [*FILLS, OTHER])
def test_text_on_a_fill_is_legible(color):
    def luminance(value):
        linear = [((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(value)]
        return sum(map(operator.mul, linear, (0.2126, 0.7152, 0.0722)))

    light, dark = sorted((luminance(color), luminance(ink_on(color))))[::-1]
    assert (light + 0.05) / (dark + 0.05) >= 3.4


def test_tokens_beyond_the_colours_are_grey():
    colors = token_colors([*range(9), 0])
    assert list(colors.values()) == [*FILLS, OTHER, OTHER]


def test_axes_are_measured_in_points():
    ax = Figure((5.0, 2.0)).add_axes([0.25, 0, 0.5, 1])
    assert points_wide(ax) == pytest.approx(180)
