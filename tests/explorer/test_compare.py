"""Compare without a browser: compared with direct calls of `Grid`, its loop, errors."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from html import escape
from html.parser import HTMLParser

import pytest

from sampling_lab import Grid, SamplingParams
from sampling_lab.explorer import Compare
from sampling_lab.explorer.pictures.compare_html import (
    SHOWN_ANSWERS,
    answer_names,
    answers_html,
    table_html,
)
from sampling_lab.models.huggingface.model import HuggingFaceModel
from tests.explorer import panels
from tests.explorer.panels import FailingModel
from tests.fakes import TableModel, walk
from tests.helpers import until
from tests.tiny import llama as tiny_llama

PIECES = [b"a", b"b", b" c", b"\n", b"<b>x", b"</script>", b'"&lt;', b"<|im_end|>"]
SETTINGS = [SamplingParams(temperature=0.6, top_p=0.9), SamplingParams(temperature=2)]


def make_model(kind=TableModel):
    return panels.make_model(kind, PIECES)


def make_compare(model=None, **options):
    defaults = {"prompt": "ab", "settings": SETTINGS, "seeds": [1, 2, 3]}
    options = {**defaults, "max_new_tokens": 12, **options}
    return Compare(model or make_model(), **options)


def texts(compare):
    return [[cell.generation.text for cell in row] for row in compare.cells()]


def lengths(compare):
    return [len(c.generation.token_ids) for row in compare.cells() for c in row]


def marks(html):
    """Return what is marked in each cell, as plain text."""
    cells = re.findall(r"<td.*?</td>", html.split("</table>")[0], re.DOTALL)
    found = [re.search(r"<mark[^>]*>(.*?)</mark>", cell) for cell in cells]
    return [plain(mark[1]) if mark else None for mark in found]


def plain(html):
    return re.sub(r"<[^>]*>", "", html)


class Reader(HTMLParser):
    """What a browser would see in HTML."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes = set(), set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


# What is shown


def test_the_runs_are_those_of_a_direct_grid():
    compare = make_compare()
    compare.compare()
    direct = Grid(make_model(), "ab", SETTINGS, [1, 2, 3], max_new_tokens=12)
    direct.to_the_end()
    shown, known = compare.cells(), direct.cells()
    for row, direct_row in zip(shown, known, strict=True):
        for cell, direct_cell in zip(row, direct_row, strict=True):
            assert cell.generation == direct_cell.generation
            assert cell.first_difference == direct_cell.first_difference
    assert compare.grid.answers() == direct.answers()


def test_the_boxes_say_what_runs():
    compare = make_compare()
    assert compare.settings.value == "temperature 0.6, top-p 0.9\ntemperature 2"
    assert compare.seeds.value == "1 2 3"
    compare.settings.value = "greedy\n\nneutral, dialect xslm\ntop-k 2, seed 99"
    compare.seeds.value = "5-6"
    compare.max_new_tokens.value = 4
    compare.prompt.value = "b"
    compare.compare()
    expected = [
        SamplingParams(temperature=0),
        SamplingParams(dialect="xslm"),
        SamplingParams(top_k=2),
    ]
    direct = Grid(make_model(), "b", expected, [5, 6], max_new_tokens=4).to_the_end()
    assert texts(compare) == [
        [cell.generation.text for cell in row] for row in direct.cells()
    ]
    assert [row[0].params.dialect for row in compare.cells()][1] == "xslm"
    heads = re.findall(r'<th scope="(\w+)">(.*?)</th>', compare.table.value)
    assert [plain(text) for kind, text in heads if kind == "col"] == [
        "seed 5",
        "seed 6",
    ]
    rows = [plain(text) for kind, text in heads if kind == "row"]
    assert rows[0].startswith("temperature 0temperature is 0 (greedy)")
    assert rows[1:] == ["dialect xslm", "top-k 2"]


def test_the_first_difference_is_marked_and_the_shared_tokens_are_dimmed():
    closer = [SETTINGS[0], SETTINGS[0].replace(temperature=0.9, top_p=1)]
    compare = make_compare(settings=closer)
    compare.compare()
    cells = [cell for row in compare.cells() for cell in row]
    expected = [
        None
        if cell.first_difference is None
        else cell.generation.all_steps[cell.first_difference].token_text
        for cell in cells
    ]
    found = marks(compare.table.value)
    assert found == [None if text is None else escape(text) for text in expected]
    assert sum(mark is not None for mark in found) >= 3
    for cell in cells[1:]:
        if cell.first_difference:
            assert f"≠ at token {cell.first_difference + 1}" in compare.table.value
    assert compare.table.value.count("class=reference") == 1
    steps = sum(len(cell.generation.all_steps) for cell in cells)
    assert compare.table.value.count('class="t"') == steps
    shared = re.findall(r'class="shared">(.*?)(?:<mark|</div>)', compare.table.value)
    assert sum(part.count('class="t"') for part in shared) == sum(
        len(cell.generation.all_steps)
        if cell.first_difference is None
        else cell.first_difference
        for cell in cells[1:]
    )
    assert shared


def test_any_run_can_be_the_reference_and_stays_it():
    compare = make_compare()
    compare.compare()
    labels = [label for label, _ in compare.reference.options]
    assert labels[1] == "seed 2 · temperature 0.6, top-p 0.9"
    assert labels[5] == "seed 3 · temperature 2"
    before, passes = compare.table.value, compare.model.forward_passes
    compare.reference.value = (1, 2)
    assert compare.model.forward_passes == passes
    assert compare.table.value != before
    assert marks(compare.table.value)[5] is None
    assert marks(compare.table.value)[0] is not None
    compare.settings.value = "temperature 0.9\ntemperature 1.9"
    compare.compare()
    assert compare.reference.value == (1, 2)
    compare.seeds.value = "1"
    compare.compare()
    assert compare.reference.value == (0, 0)


def test_equal_runs_are_said_to_be_equal_and_share_a_name():
    compare = make_compare(seeds=[4, 4, 4], settings=SETTINGS[:1])
    compare.compare()
    assert marks(compare.table.value) == [None, None, None]
    assert compare.table.value.count("= reference") == 2
    assert "1 distinct answer</b> in 3 runs" in compare.answers.value
    assert "3 of 3" in compare.answers.value
    assert [label for label, _ in compare.reference.options] == [
        "seed 4 · temperature 0.6, top-p 0.9"
    ] * 3
    compare.reference.value = (0, 2)
    assert compare.reference.value == (0, 2)


def test_answers_are_counted_and_the_rare_ones_summed_up():
    answers = {"<b>x\n": 3, "": 2, **{f"answer {i}": 1 for i in range(30)}}
    names = answer_names(answers)
    assert list(names.values())[:3] == ["A", "B", "C"]
    assert list(names.values())[25:28] == ["Z", "A2", "B2"]
    assert len(set(names.values())) == len(answers)
    html = answers_html(answers, names)
    assert "32 distinct answers</b> in 35 runs" in html
    assert "3 of 35" in html and ">∅</td>" in html and ">answer 3</td>" in html
    assert "&lt;b&gt;x⏎" in html and "<b>x" not in html
    assert html.count("<tr>") == SHOWN_ANSWERS
    assert f"… and {32 - SHOWN_ANSWERS} more" in html


def test_the_status_tells_tokens_rows_and_passes():
    model = HuggingFaceModel.wrap(tiny_llama())
    compare = make_compare(model, prompt="3, 1, 4", max_new_tokens=5)
    compare.compare()
    status = compare.status.value
    steps = sum(len(c.generation.all_steps) for row in compare.cells() for c in row)
    assert f"all have ended · {steps} tokens · " in status
    assert "tok/s · 6 rows in one batch · 5 forward passes" in status
    assert compare.answers.value == ""  # no tokenizer, no texts
    one_by_one = make_compare()
    one_by_one.compare()
    assert "one row after another" in one_by_one.status.value
    passes = one_by_one.model.forward_passes
    assert f"{passes} forward passes" in one_by_one.status.value


def test_hostile_tokens_are_shown_literally():
    path = [0, 4, 5, 6, 7, 4]
    compare = make_compare(walk(PIECES, path), prompt="a", max_new_tokens=6)
    compare.compare()
    shown = compare.table.value + compare.answers.value
    assert "&lt;b&gt;x" in shown and "&quot;&amp;lt;" in shown
    reader = Reader()
    reader.feed(shown)
    tags = {
        "br",
        "div",
        "table",
        "tr",
        "th",
        "td",
        "span",
        "b",
        "s",
        "mark",
        "wbr",
        "small",
    }
    assert reader.tags <= tags
    assert reader.attributes <= {"class", "style", "title", "scope", "aria-label"}
    compare.settings.value = "<img src=x onerror=alert(1)>"
    compare.compare()
    assert "<img" not in compare.status.value
    assert "&lt;img" in compare.status.value


def test_a_run_that_ended_before_its_reference_says_so():
    grid = Grid(make_model(), "ab", SETTINGS[:1], [1, 2], max_new_tokens=3)
    next(grid)
    for _ in range(2):
        next(grid.runs[0][0])
    grid.runs[0][1] = Grid(make_model(), "ab", SETTINGS[:1], [1]).runs[0][0]
    html = table_html(["neutral"], [1, 2], grid.cells())
    assert marks(html) == [None, "nothing more"]


# Its loop


def test_tokens_stream_in_and_stop_keeps_them():
    async def scenario():
        compare = make_compare(max_new_tokens=500)
        compare.compare()
        assert not compare.stop_button.disabled
        await until(lambda: min(lengths(compare)) >= 5)
        await until(lambda: "generating" in compare.status.value)
        compare.stop()
        before = lengths(compare)
        await until(lambda: not compare.player.is_playing)
        after = lengths(compare)
        assert all(a - b in (0, 1) for a, b in zip(after, before, strict=True))
        await until(lambda: "stopped · " in compare.status.value)
        assert compare.stop_button.disabled
        assert compare.table.value.count('class="t"') == sum(after)

    asyncio.run(scenario())


def test_starting_again_cancels_the_old_run():
    async def scenario():
        compare = make_compare(max_new_tokens=500)
        compare.compare()
        old, play, played = compare.grid, compare.player.play, []
        compare.player.play = lambda: (played.append(1), play())
        await until(lambda: min(lengths(compare)) >= 3)
        compare.seeds.value, compare.max_new_tokens.value = "7 8", 6
        compare.compare_button.click()
        await until(lambda: compare.grid is not old)
        kept = [len(run.ids) for run in old._all()]
        await until(lambda: not compare.player.is_playing)
        await until(lambda: "all have ended" in compare.status.value)
        assert lengths(compare) == [6] * 4
        assert played == []  # one loop plays on; two would each take every other token
        assert [len(run.ids) for run in old._all()] == kept

    asyncio.run(scenario())


def test_a_slip_while_it_runs_ends_the_run_and_is_said():
    async def scenario():
        compare = make_compare(max_new_tokens=500)
        compare.compare()
        await until(lambda: min(lengths(compare)) >= 3)
        compare.seeds.value = "x"
        compare.compare()
        await until(lambda: not compare.player.is_playing)
        await asyncio.sleep(0.3)
        assert "seeds must be" in compare.status.value
        assert 3 <= min(lengths(compare)) < 500

    asyncio.run(scenario())


def test_updates_are_paced():
    async def scenario():
        compare = make_compare(max_new_tokens=60)
        drawn, redraw = [], compare.redraw
        compare.redraw = lambda: (drawn.append(1), redraw())
        compare.compare()
        await until(lambda: not compare.player.is_playing)
        await until(lambda: "all have ended" in compare.status.value)
        assert len(drawn) < 30
        assert compare.table.value.count('class="t"') == 6 * 60

    asyncio.run(scenario())


def test_an_interrupt_stops_the_run_within_a_token_and_leaves_it_usable():
    class Interrupted(TableModel):
        def _forward(self, ids):
            if len(ids) == 6 and armed:
                armed.clear()
                os.kill(os.getpid(), signal.SIGINT)
            return super()._forward(ids)

    armed = [True]
    handler = signal.getsignal(signal.SIGINT)
    compare = make_compare(make_model(Interrupted), max_new_tokens=500)
    compare.compare()
    assert set(lengths(compare)) == {5}
    assert "stopped" in compare.status.value
    assert signal.getsignal(signal.SIGINT) is handler
    compare.max_new_tokens.value = 7
    compare.compare()
    assert set(lengths(compare)) == {7}


# Errors


@pytest.mark.parametrize(
    ("box", "text", "message"),
    [
        ("settings", "temperature 1\ntop-p 7", "settings, line 2: top_p must be"),
        (
            "settings",
            "warmth 1",
            "settings, line 1: &#x27;warmth 1&#x27; is no setting",
        ),
        ("settings", " \n", "settings must hold at least one line"),
        ("seeds", "one", "seeds must be integers or ranges"),
        ("seeds", "", "seeds must hold at least one"),
        ("seeds", "99999999999999999999", "seed must be"),
        ("seeds", "1-40", "settings × seeds must be &lt;= 64 runs, got 2 × 40"),
        ("prompt", "", "the prompt is empty"),
    ],
)
def test_what_cannot_run_is_said_in_red_and_corrected(box, text, message):
    compare = make_compare()
    getattr(compare, box).value, good = text, getattr(compare, box).value
    compare.compare()
    assert f'<span role="alert">{message}' in compare.status.value
    assert compare.model.forward_passes == 0
    getattr(compare, box).value = good
    compare.compare()
    assert "all have ended" in compare.status.value


def test_a_model_that_raises_is_reported_and_the_tokens_stay():
    compare = make_compare(make_model(FailingModel))
    compare.compare()
    assert '<span role="alert">RuntimeError: out of &lt;memory&gt;' in (
        compare.status.value
    )
    assert set(lengths(compare)) == {3}
    assert not compare.player.is_playing
    compare.max_new_tokens.value = 2
    compare.compare()
    assert "all have ended" in compare.status.value


def test_a_model_without_a_tokenizer_takes_ids():
    model = HuggingFaceModel.wrap(tiny_llama())
    compare = make_compare(model, prompt="3, 1,4", max_new_tokens=2)
    compare.compare()
    assert compare.cells()[0][0].generation.prompt_ids == (3, 1, 4)
    compare.prompt.value = "three"
    compare.compare()
    assert "type token ids" in compare.status.value


def test_an_unknown_character_is_a_warning_in_the_status_line():
    async def scenario():
        prompt = "Q: Zoë?\nA: "
        compare = Compare("checkpoints/xslm/model-20-steps.json", prompt=prompt)
        compare.compare()
        assert "becomes �" in compare.status.value
        compare.stop()
        await compare.finished()

    asyncio.run(scenario())


# Where it stands


def test_nothing_is_printed_and_a_saved_notebook_keeps_the_table(capfd):
    compare = make_compare()
    assert repr(compare) == "Compare(table)"
    assert "text/html" not in compare._repr_mimebundle_()[0]
    compare.compare()
    data = compare._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert compare.table.value in data["text/html"]
    assert capfd.readouterr() == ("", "")


def test_only_core_widgets_are_used():
    modules = {widget._model_module for widget in panels.tree(make_compare())}
    assert modules == {"@jupyter-widgets/controls"}
