"""The picture of a text's steps: its rows, its bars, and what is marked in it."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from sampling_lab import SamplingParams, generate, load, plots
from sampling_lab.errors import ParameterError
from sampling_lab.generation.results import Step
from sampling_lab.plots.drawing.style import CHOSEN, FINAL, GRID
from sampling_lab.plots.drawing.text_labels import TextLabel, TextLabels, text_width
from sampling_lab.plots.drawing.ticks import decade_ticks, even_ticks, step_ticks
from sampling_lab.plots.steps import GIVEN as BY_HAND
from sampling_lab.sampling.draws import GIVEN, DrawResult
from tests.helpers import ROOT


def make_steps(count, given=(), raw=None, text="␣word"):
    raw = raw or [2.0 ** -(1 + at % 7) for at in range(count)]
    return [
        Step(
            index=at,
            token_id=100 + at,
            token_text=text,
            text=text,
            raw_prob=raw[at],
            final_prob=0.5,
            rank=at + 1,
            entropy=at % 5 / 2,
            kept_count=1 + 10 * at % 997,
            drawn=DrawResult(100 + at, GIVEN if at in given else "race"),
        )
        for at in range(count)
    ]


def bars(ax):
    """Return the bars of each colour as {colour: [(left, right, low, high)]}."""
    found = {}
    for patch in ax.patches:
        corners = patch.get_path().vertices.reshape(-1, 5, 2)
        sides = np.stack([*corners[:, :2, 0].T, *corners[:, 1:3, 1].T], -1)
        found[to_hex(patch.get_facecolor())] = sides.tolist()
    return found


def notes(ax):
    kinds = [child for child in ax.get_children() if isinstance(child, TextLabels)]
    return [label for kind in kinds for label in kind.labels if label.text]


def texts(ax):
    return [note.text for note in notes(ax)]


def tokens(axes):
    return [note for note in notes(axes[2]) if note.move[1] < -20]


# The table


def test_rows_hold_what_the_steps_hold():
    steps = make_steps(3, given={1}, raw=[0.25, 0.0, 1.0])
    rows = plots.steps_table(steps)
    assert [row["surprisal"] for row in rows] == [2.0, None, 0.0]
    assert [row["is_given"] for row in rows] == [False, True, False]
    names = {"raw": "raw_prob", "final": "final_prob", "token": "token_text"}
    for row, step in zip(rows, steps, strict=True):
        assert row.pop("step") == step.index + 1
        del row["surprisal"]
        assert all(getattr(step, names.get(k, k)) == v for k, v in row.items())


# The bars


def test_three_panels_show_three_measures_over_one_axis():
    steps = make_steps(24)
    axes = plots.plot_steps(steps)
    measures = ([s.surprisal, s.entropy, s.kept_count] for s in steps)
    for ax, values in zip(axes, zip(*measures, strict=True), strict=True):
        drawn = bars(ax)[FINAL]
        assert [high for *_, high in drawn] == pytest.approx(values)
        middles = [(left + right) / 2 for left, right, *_ in drawn]
        assert middles == pytest.approx(range(1, 25))
        assert ax.get_xlim() == (0.5, 24.5)
        assert ax.get_ylim()[1] > max(values)
    assert [ax.get_yscale() for ax in axes] == ["linear", "linear", "log"]
    assert texts(axes[0])[0] == "surprisal, bits"
    assert next(iter(axes[2].get_xticklabels())).get_text() == "1"


def test_a_bar_of_one_kept_token_is_seen_on_the_logarithmic_axis():
    *_, kept = plots.plot_steps(make_steps(1))
    ((_, _, low, high),) = bars(kept)[FINAL]
    assert high == 1.0 and 0 < low < 0.9
    assert kept.get_ylim()[0] == low


def test_the_selected_step_is_marked_in_every_panel():
    for ax in plots.plot_steps(make_steps(24), selected=4):
        ((left, right, *_),) = bars(ax)[CHOSEN]
        assert left < 5 < right
        assert len(bars(ax)[FINAL]) == 23
        ((start, end, _, high),) = bars(ax)[GRID]
        assert start <= left and right <= end and high == ax.get_ylim()[1]


def test_the_selected_step_says_its_values():
    axes = plots.plot_steps(make_steps(24), selected=4)
    assert "step 5 · ␣word · 5.00 bits" in texts(axes[0])
    assert "2.00 bits" in texts(axes[1])
    assert "41 tokens" in texts(axes[2])
    assert "1 token" in texts(plots.plot_steps(make_steps(2), selected=0)[2])


@pytest.mark.parametrize("selected", [None, -1, 24, 1000])
def test_no_step_is_marked_where_none_is_selected(selected):
    axes = plots.plot_steps(make_steps(24), selected=selected)
    assert all(CHOSEN not in bars(ax) or not bars(ax)[CHOSEN] for ax in axes)
    assert not any("step 1" in text for text in texts(axes[0]))


def test_tokens_chosen_by_a_person_have_a_diamond_and_a_key():
    axes = plots.plot_steps(make_steps(24, given={2, 9}))
    for ax in axes:
        assert [left + right for left, right, *_ in bars(ax)[BY_HAND]] == [6, 20]
        (diamonds,) = ax.lines
        assert diamonds.get_marker() == "D"
        assert list(diamonds.get_xdata()) == [3, 10]
    assert "◆ chosen by a person" in texts(axes[0])
    assert "◆ chosen by a person" not in texts(plots.plot_steps(make_steps(24))[0])


def test_infinite_surprisal_reaches_the_top_and_says_so():
    raw = [0.5, 0.0, 0.25]
    top, *others = plots.plot_steps(make_steps(3, given={1}, raw=raw), selected=1)
    assert top.get_ylim()[1] < 4  # the finite ones keep their scale
    ((*_, high),) = bars(top)[CHOSEN]
    assert high == top.get_ylim()[1]
    assert [note.x for note in notes(top) if note.text == "∞"] == [2]
    assert "step 2 · ␣word · ∞ bits" in texts(top)
    assert not any("∞" in texts(ax) for ax in others)


def test_nothing_but_infinite_surprisal_has_an_axis_too():
    top, *_ = plots.plot_steps(make_steps(2, raw=[0.0, 0.0]))
    assert all(np.isfinite(top.get_ylim()))
    assert [high for *_, high in bars(top)[FINAL]] == [top.get_ylim()[1]] * 2


@pytest.mark.parametrize("count", [0, 1, 64, 2000])
def test_any_number_of_steps_draws_without_a_warning(count):
    axes = plots.plot_steps(make_steps(count, given={0}), selected=count // 2)
    FigureCanvasAgg(axes[0].figure).draw()
    shown = sum(len(boxes) for boxes in bars(axes[0]).values())
    assert shown == count + (count > 0)  # and the band
    assert plt.get_fignums() == []


def test_bars_of_thousands_of_steps_are_still_a_point_wide():
    ax, *_ = plots.plot_steps(make_steps(2000))
    left, right, *_ = bars(ax)[FINAL][1000]
    low, high = ax.get_xlim()
    points = 72 * ax.get_position().width * ax.figure.get_figwidth()
    assert (right - left) / (high - low) * points > 0.99


def test_steps_keep_their_numbers_in_a_part_of_a_text():
    axes = plots.plot_steps(make_steps(40)[20:], selected=1)
    assert axes[0].get_xlim() == (20.5, 40.5)
    ((left, right, *_),) = bars(axes[0])[CHOSEN]
    assert (left + right) / 2 == 22


# The tokens


def test_few_tokens_stand_along_the_axis_and_more_read_upwards():
    level = tokens(plots.plot_steps(make_steps(5, text="␣a"), selected=3))
    assert [note.text for note in level] == ["␣a"] * 5
    assert not any(note.turned for note in level)
    assert [note.bold for note in level] == [False, False, False, True, False]
    turned = tokens(plots.plot_steps(make_steps(24)))
    assert [note.x for note in turned] == list(range(1, 25))
    assert all(note.turned and note.align == "right" for note in turned)


def test_many_tokens_are_left_out_and_long_ones_shortened():
    assert tokens(plots.plot_steps(make_steps(64))) == []
    (note, *_) = tokens(plots.plot_steps(make_steps(24, text="internationalisation")))
    assert note.text == "inter…tion"


@pytest.mark.parametrize("text", ["$$", "<b>x", "中", "\x1b[31m", "\n", ""])
def test_any_token_is_drawn_literally(text):
    axes = plots.plot_steps(make_steps(3, text=text), selected=0)
    FigureCanvasAgg(axes[0].figure).draw()
    drawn = plots.steps_table(make_steps(1, text=text))[0]["token"]
    assert {note.text for note in tokens(axes)} == {drawn}
    assert drawn.isprintable() and drawn.strip()


# Axes


def test_three_given_axes_are_used():
    axes = list(Figure().subplots(3, 1))
    assert plots.plot_steps(make_steps(3), axes=axes) == axes
    with pytest.raises(ParameterError, match=r"axes must be 3, .* got 2"):
        plots.plot_steps(make_steps(3), axes=axes[:2])


@pytest.mark.parametrize("last", [1, 12, 64, 999, 2000, 10**6])
def test_marks_are_round_few_and_within(last):
    marks = step_ticks(1, last, 14)
    assert marks[0] == 1 and marks == sorted(set(marks)) and marks[-1] <= last
    assert len(marks) <= 16
    gaps = {b - a for a, b in pairwise(marks[1:])}
    assert len(gaps) <= 1


@pytest.mark.parametrize("highest", [0.0, 0.3, 1.0, 2.99, 7.0, 14.0, 41.0, 700.0])
def test_even_ticks_reach_over_half_of_the_axis(highest):
    marks = even_ticks(highest)
    assert 2 <= len(marks) <= 3 and marks[0] == 0
    assert max(highest, 1.0) / 2 <= marks[-1] <= max(highest, 1.0)


@pytest.mark.parametrize(("low", "high"), [(0.7, 1.2), (1e-9, 1e9), (0.05, 40.0)])
def test_decade_ticks_are_within_and_few(low, high):
    marks = decade_ticks(low, high, 6)
    assert 1 <= len(marks) <= 6
    assert low <= marks[0] and marks[-1] <= high


# Texts as outlines


def test_a_turned_note_reads_upwards_to_its_place():
    figure = Figure(figsize=(2, 2), dpi=72)
    ax = figure.add_axes([0, 0, 1, 1], xlim=(0, 144), ylim=(0, 144))
    written = TextLabels(ax)
    written.write([TextLabel(72, 100, "mmmm", "right", turned=True)])
    box = written.get_window_extent()
    assert box.y1 == pytest.approx(100, abs=2)
    assert box.height == pytest.approx(text_width("mmmm"), abs=3)
    assert abs((box.x0 + box.x1) / 2 - 72) < 2


def test_turned_letters_lie_on_their_backs_and_are_no_mirror_images():
    figure = Figure(figsize=(2, 2), dpi=300)
    ax = figure.add_axes([0, 0, 1, 1])
    ax.axis("off")
    TextLabels(ax).write([TextLabel(0.5, 0.5, "L", turned=True)])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    rows, columns = (np.asarray(canvas.buffer_rgba())[..., 0] < 128).nonzero()
    foot = columns[rows == rows.min()]  # the end of the foot, which is on the right
    assert foot.min() > columns.mean()


@pytest.mark.parametrize(
    ("align", "share"), [("left", 0), ("center", 0.5), ("right", 1)]
)
def test_a_note_is_aligned_and_moved(align, share):
    figure = Figure(figsize=(2, 2), dpi=144)
    ax = figure.add_axes([0, 0, 1, 1], xlim=(0, 288), ylim=(0, 288))
    written = TextLabels(ax)
    written.write([TextLabel(100, 100, "nnn", align, move=(10, 5))])
    box = written.get_window_extent()
    place = box.x0 + share * box.width
    assert place == pytest.approx(100 + 2 * 10, abs=3)
    assert box.y0 < 100 + 2 * 5 < box.y1


def test_bold_texts_are_wider():
    assert text_width("warm", bold=True) > text_width("warm") > text_width("war")


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_is_drawn_as_it_was(version):
    model = load(ROOT / "checkpoints/xslm/model.json")
    params = SamplingParams(mirostat=version, mirostat_tau=1.0, temperature=6.0, seed=4)
    text = generate(model, "Q: hi\nA: ", params, stop_token_ids=())
    rows = plots.mirostat_table(text)
    found = [s.ledger().evidence["mirostat"]["mu"] for s in text.all_steps]
    assert [row["mu"] for row in rows] == pytest.approx(found)
    ax = plots.plot_mirostat(text)
    limit, target = ax.lines
    assert list(limit.get_ydata()) == pytest.approx(found)
    assert set(target.get_ydata()) == {1.0}
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == pytest.approx([s.final_surprisal for s in text.all_steps])
    with pytest.raises(ParameterError, match="must be made with mirostat"):
        plots.plot_mirostat(generate(model, "Q: hi\nA: "))
