"""The explorer's tabs: tables against the library, pictures against fresh ones."""

from __future__ import annotations

import json
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from sampling_lab import SamplingParams, fork, generate, load, plots
from sampling_lab.counterfactuals import (
    History,
    race_rows,
    temperature_map,
    wheel_slices,
)
from sampling_lab.errors import ParameterError
from sampling_lab.explorer.pictures import noise_tabs
from sampling_lab.explorer.pictures.step_view import (
    StepView,
    next_token_view,
    step_view,
)
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from sampling_lab.plots.drawing.style import CHOSEN, FINAL, GRID, INK, PAPER
from sampling_lab.plots.drawing.text_labels import TextLabels
from sampling_lab.plots.stages_rows import stages_rows
from sampling_lab.plots.steps import GIVEN
from sampling_lab.sampling.dialects import DIALECTS
from sampling_lab.sampling.draws import uniform_result
from sampling_lab.sampling.parameters import ADJUSTMENTS, stage_order
from tests.fakes import TableModel
from tests.helpers import pixels

WORDS = ["warm", " hot", "$$", "<b>x", "中", "\x1b[31m", "\n", ""]
TOY = torch.tensor([2.0, 1.0, 0.2, -1.0, 0.7, 1.9, -0.3, 0.1])
RACE = SamplingParams(temperature=0.8, top_k=6, seed=34, dialect="transformers")
WHEEL = RACE.replace(dialect="xslm")


def toy_view(params=RACE, logits=TOY, tokens=WORDS, **place):
    return StepView(params.chain().ledger(logits), tokens, params, **place)


def table_model(size=40):
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(size, size, generator=generator) * 2
    return TableModel(table, [f" t{at}".encode() for at in range(size)])


MODEL = table_model()
TEXT = generate(MODEL, [1, 2], RACE, max_new_tokens=12)


def text_view(index=4, params=None, text=TEXT):
    return step_view(MODEL, text, text.all_steps[index], params)


def forked_view():
    text = fork(MODEL, TEXT, 3, 39).to_the_end()
    return text_view(3, text=text)


VIEWS = {
    "a race": lambda: toy_view(),
    "a wheel": lambda: toy_view(WHEEL),
    "no stage": lambda: toy_view(SamplingParams(seed=1, dialect="transformers")),
    "greedy": lambda: toy_view(RACE.replace(temperature=0)),
    "no seed": lambda: toy_view(RACE.replace(seed=None)),
    "many stages": lambda: toy_view(
        RACE.replace(
            top_p=0.9,
            min_p=0.01,
            typical_p=0.95,
            repetition_penalty=1.1,
            banned_token_ids=[2],
            logit_bias={1: 0.5},
            dialect="llama.cpp",
        )
    ),
    "one token kept": lambda: toy_view(RACE.replace(top_k=1)),
    "two words": lambda: toy_view(logits=TOY[:2]),
    "a step": lambda: text_view(),
    "another step": lambda: text_view(9),
    "what if": lambda: text_view(4, RACE.replace(temperature=2.0, top_p=0.7)),
    "a fork": forked_view,
}
"""One view of each kind; every tab draws each of them."""


def colors_in(png):
    found = np.unique(pixels(png).reshape(-1, 3), axis=0)
    return {f"#{r:02x}{g:02x}{b:02x}" for r, g, b in found}


@pytest.fixture
def written(monkeypatch):
    """Return a list to which the texts of all pictures drawn from now on are added."""
    texts, write = [], TextLabels.write

    def noted(self, labels):
        labels = list(labels)
        texts.extend(label.text for label in labels if label.text)
        write(self, labels)

    monkeypatch.setattr(TextLabels, "write", noted)
    return texts


# Each tab against the library


@pytest.mark.parametrize("name", VIEWS)
def test_the_table_of_distribution_holds_its_bars(name):
    view = VIEWS[name]()
    picture = Pictures().draw("Distribution", view)
    bars = plots.distribution_table(
        view.ledger, tokens=view.tokens, chosen=view.chosen, n=20
    )
    assert picture.table == [vars(bar) for bar in bars]
    assert picture.caption == plots.caption(view.ledger)


@pytest.mark.parametrize("name", VIEWS)
def test_the_table_of_stages_says_what_removed_each_token(name):
    view = VIEWS[name]()
    rows = Pictures().draw("Stages", view).table
    ids = view.ledger.top(12)
    columns = plots.stages_table(view.ledger, n=12)
    assert [row["token_id"] for row in rows] == ids
    for at, (row, known) in enumerate(zip(rows, view.ledger.table(12), strict=True)):
        assert row["rank"] == known["rank"]
        assert row["removed_by"] == (known["removed_by"] or "kept")
        assert [row[c.title] for c in columns] == [c.after[at] for c in columns]
        last = columns[-1].title
        assert row[last] == pytest.approx(known["final"], abs=1e-6)


def test_the_stages_picture_names_what_removed_each_token(written):
    picture = Pictures().draw("Stages", toy_view())
    assert "removed by" in written
    verdicts = [row["removed_by"] for row in picture.table]
    at = written.index(verdicts[0])
    assert written[at : at + 8] == verdicts
    assert verdicts.count("top-k") == 2 and verdicts.count("kept") == 6
    assert picture.caption == (
        "8 tokens · top-k removes 2 · 6 kept, 95.0 % of raw mass"
    )


def test_without_a_stage_raw_stands_alone_beside_a_sentence(written):
    picture = Pictures().draw("Stages", VIEWS["no stage"]())
    assert "raw" in written and "removed by" not in written
    assert "No stage acts:" in " ".join(written)
    assert {row["removed_by"] for row in picture.table} == {"kept"}
    assert picture.caption == "8 tokens, all kept · 2.44 bits"


def test_two_stages_alike_have_a_column_each():
    columns = plots.stages_table(toy_view().ledger, n=2)
    twice = [*columns, columns[-1]]
    rows = stages_rows(twice, [0, 1], ["kept", "kept"], WORDS)
    assert len(rows[0]) == 4 + len(twice)


@pytest.mark.parametrize("name", ["a race", "a step", "what if", "a fork"])
def test_the_table_of_a_race_holds_its_best(name):
    view = VIEWS[name]()
    picture = Pictures().draw("Draw", view)
    rows = race_rows(view.ledger.final.logits, view.noise, 8)
    found = [(r["token_id"], r["p"], r["q"], r["p/q"]) for r in picture.table]
    assert found == [tuple(row) for row in rows]
    assert f"q = {rows[0].exponential:.3g}" in picture.caption
    assert f"p/q = {rows[0].score:.3g}, the next best" in picture.caption
    assert f"{rows[1].score:.3g}" in picture.caption


def test_a_race_is_won_by_the_token_that_was_drawn():
    view = text_view(5)
    assert Pictures().draw("Draw", view).table[0]["token_id"] == view.drawn.token_id


def test_a_fork_tells_both_the_choice_and_what_the_luck_would_have_chosen():
    view = forked_view()
    picture = Pictures().draw("Draw", view)
    winner = MODEL.token_text(view.noise.choose(view.ledger.final.logits))
    assert picture.caption.startswith(
        f"a person chose {MODEL.token_text(39)}; the draw alone: {winner}: q ="
    )


def test_the_table_of_a_wheel_holds_its_slices():
    view = toy_view(WHEEL)
    picture = Pictures().draw("Draw", view)
    logits = view.ledger.final.logits
    drawn = uniform_result("choices", view.noise.uniform, logits)
    parts = wheel_slices(logits, 12)
    assert [(r["token_id"], r["from"], r["to"]) for r in picture.table] == [
        tuple(part) for part in parts
    ]
    hits = [row["token_id"] for row in picture.table if row["is_hit"]]
    assert hits == [drawn.token_id] == [view.chosen]
    low, high = drawn.segment
    assert picture.caption.startswith(f"{drawn.uniform:.4f} falls on ")
    assert picture.caption.endswith(f"from {low:.4f} to {high:.4f}")


def test_a_wheel_marks_the_number_that_a_step_drew():
    model = table_model(8)
    text = generate(model, [1], WHEEL, max_new_tokens=3)
    view = step_view(model, text, text.steps[2])
    picture = Pictures().draw("Draw", view)
    assert picture.caption.startswith(f"{text.steps[2].drawn.uniform:.4f} falls on")


@pytest.mark.parametrize(
    "params",
    [
        RACE,
        RACE.replace(top_k=None, top_p=0.8),
        RACE.replace(top_p=0.7, min_p=0.02),
        RACE.replace(repetition_penalty=1.5, banned_token_ids=[3]),
        RACE.replace(temperature=0),
        RACE.replace(dialect="llama.cpp", top_p=0.9),
        RACE.replace(xtc_probability=1.0, typical_p=0.9),
        RACE.replace(draw_method="keyed"),
        WHEEL,
        WHEEL.replace(top_p=0.9),
        WHEEL.replace(top_k=None, min_p=0.1),
    ],
    ids=lambda params: params.describe(),
)
def test_the_map_is_the_librarys(params):
    history = History((0, 5, 5), 1)
    ledger = params.chain(*history).ledger(TOY)
    view = StepView(ledger, WORDS, params, history=history)
    picture = Pictures().draw("Temperature map", view)
    found = temperature_map(TOY, params, history=history)
    ids = [row["token_id"] for row in picture.table]
    assert ids == [segment.token_id for segment in found.segments]
    ends = [(row["from"], row["to"]) for row in picture.table]
    for mine, segment in zip(ends, found.segments, strict=True):
        assert mine == segment[:2]
    count = len(found.flips)
    assert picture.caption.startswith(f"{count} change")
    assert picture.caption.endswith(found.note)


def test_the_map_of_a_step_is_that_of_its_draw():
    view = text_view(7)
    picture = Pictures().draw("Temperature map", view)
    found = temperature_map(
        view.ledger.raw_logits, view.params, drawn=view.drawn, history=view.history
    )
    assert [row["token_id"] for row in picture.table] == [
        segment.token_id for segment in found.segments
    ]
    here = next(r for r in picture.table if r["from"] <= 0.8 <= r["to"])
    assert here["token_id"] == view.drawn.token_id


def test_the_map_marks_the_temperature_and_says_when_it_is_outside(written):
    pictures = Pictures()
    pictures.draw("Temperature map", toy_view())
    assert "T = 0.8" in written
    written.clear()
    told = pictures.draw("Temperature map", toy_view(RACE.replace(temperature=9.0)))
    assert "T = 9 is outside" in told.caption
    assert not any(text.startswith("T =") for text in written)


def test_a_temperature_slider_searches_no_map_anew(monkeypatch):
    searched = []

    def counted(*args, **options):
        searched.append(args)
        return temperature_map(*args, **options)

    monkeypatch.setattr(noise_tabs, "temperature_map", counted)
    pictures = Pictures()
    drawn = [
        pictures.draw("Temperature map", toy_view(RACE.replace(temperature=t / 10)))
        for t in range(12)
    ]
    assert len(searched) == 1
    assert len({picture.png for picture in drawn}) == 12  # the mark moves
    for changed in (
        toy_view(RACE.replace(top_k=3)),
        toy_view(RACE.replace(seed=1)),
        toy_view(logits=TOY.flip(0)),
        toy_view(WHEEL),
        toy_view(history=History((1, 2), 1)),
    ):
        before = len(searched)
        pictures.draw("Temperature map", changed)
        assert len(searched) == before + 1


def test_other_luck_at_the_same_step_has_another_map():
    pictures = Pictures()
    params = RACE.replace(top_k=None)
    tables = []
    for seed in (34, 2):
        drawn = params.replace(seed=seed).draw()(params.chain()(TOY))
        view = toy_view(params, drawn=drawn)
        tables.append(pictures.draw("Temperature map", view).table)
        found = temperature_map(TOY, params, drawn=drawn)
        assert [row["token_id"] for row in tables[-1]] == [
            segment.token_id for segment in found.segments
        ]
    assert tables[0] != tables[1]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_adjusts_before_temperature(name):
    """Else a map could not be searched for among fewer tokens."""
    order = stage_order(DIALECTS[name])
    after = order[order.index("temperature") :]
    assert not set(after) & set(ADJUSTMENTS)


@pytest.mark.parametrize("name", ["a step", "another step", "a fork"])
def test_the_table_of_steps_holds_its_rows(name):
    view = VIEWS[name]()
    picture = Pictures().draw("Steps", view)
    assert picture.table == plots.steps_table(view.steps)
    mean = sum(step.surprisal for step in view.steps) / len(view.steps)
    assert f"mean surprisal {mean:.2f} bits" in picture.caption
    assert f"perplexity {2**mean:.3g}" in picture.caption
    assert ("1 chosen by a person" in picture.caption) == (name == "a fork")


def test_the_selected_step_is_marked(written):
    pictures = Pictures()
    told = []
    for view in (text_view(4), text_view(9), replace(text_view(4), selected=-1)):
        written.clear()
        pictures.draw("Steps", view)
        told.append([text for text in written if text.startswith("step ")])
    token = TEXT.steps[4].token_text
    assert told[0][0].startswith(f"step 5 · {token} ·")
    assert told[1][0].startswith("step 10 ·")
    assert told[2] == []


def test_a_token_of_probability_0_is_no_number_and_left_out_of_the_means():
    steps = list(TEXT.steps)
    steps[2] = replace(steps[2], raw_prob=0.0)
    picture = Pictures().draw("Steps", replace(text_view(), steps=steps))
    rest = [step for step in TEXT.steps if step.index != 2]
    mean = sum(step.surprisal for step in rest) / len(rest)
    assert picture.table[2]["surprisal"] is None
    assert f"mean surprisal {mean:.2f} bits" in picture.caption
    assert picture.caption.endswith("1 of probability 0 left out of the means")


def test_nothing_but_tokens_of_probability_0_has_no_mean():
    steps = [replace(TEXT.steps[0], raw_prob=0.0)]
    told = Pictures().draw("Steps", replace(text_view(0), steps=steps)).caption
    assert "perplexity" not in told and told.startswith("1 step ·")


# Sentences


@pytest.mark.parametrize(
    ("tab", "name", "sentence"),
    [
        ("Draw", "greedy", "the highest logit is taken, and no random number"),
        ("Draw", "no seed", "Set a seed"),
        ("Temperature map", "no seed", "Set a seed"),
        ("Steps", "a race", "Generate first"),
    ],
)
def test_a_sentence_stands_where_there_is_nothing_to_draw(tab, name, sentence, written):
    picture = Pictures().draw(tab, VIEWS[name]())
    assert sentence in " ".join(written)
    assert sentence in picture.caption
    assert picture.table == []
    assert colors_in(picture.png) > {INK, PAPER}


def test_a_map_that_cannot_be_says_why_in_the_picture(written):
    view = toy_view(WHEEL.replace(top_k=None), torch.zeros(600), None)
    picture = Pictures().draw("Temperature map", view)
    with pytest.raises(ParameterError) as refusal:
        temperature_map(view.ledger.raw_logits, view.params)
    assert picture.caption == str(refusal.value)
    assert " ".join(written) == str(refusal.value)
    assert len(written) > 1


def test_there_is_no_other_tab():
    with pytest.raises(ParameterError, match=r"tab must be one of Distribution, .*'x'"):
        Pictures().draw("x", toy_view())


# Any view, in any order


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("name", VIEWS)
def test_every_tab_draws_every_view_as_plain_data(tab, name):
    picture = Pictures().draw(tab, VIEWS[name]())
    assert json.loads(json.dumps(picture.table, allow_nan=False)) == picture.table
    assert picture.caption and "\n" not in picture.caption
    height, width, _ = pixels(picture.png).shape
    assert width == 960 and 100 <= height <= 1200
    assert plt.get_fignums() == []


def test_nothing_of_a_picture_depends_on_what_was_drawn_before():
    used = Pictures()
    views = [make() for make in VIEWS.values()]
    fresh = {
        (tab, at): Pictures().draw(tab, view)
        for tab in TABS
        for at, view in enumerate(views)
    }
    order = torch.randperm(2 * len(fresh), generator=torch.Generator().manual_seed(0))
    for place in order.tolist():
        tab, at = list(fresh)[place % len(fresh)]
        assert used.draw(tab, views[at]) == fresh[tab, at], (tab, at)


@pytest.mark.parametrize("tab", ["Distribution", "Stages", "Draw"])
def test_hostile_tokens_are_drawn_literally(tab, written):
    Pictures().draw(tab, toy_view(RACE.replace(top_k=None)))
    texts = {text.removeprefix("▶ ") for text in written}
    assert texts >= {"$$", "<b>x", "\\u4e2d", "\\x1b[31m", "⏎", "∅", "␣hot"}


def test_tokens_are_whole_in_tables_and_shortened_in_pictures(written):
    long = "internationalisation of everything"
    picture = Pictures().draw("Stages", toy_view(tokens=[long] * 8))
    assert {row["token"] for row in picture.table} == {long.replace(" ", "␣")}
    assert any("…" in text for text in written)


def test_ids_stand_where_there_are_no_texts():
    pictures = Pictures()
    picture = pictures.draw("Draw", toy_view(tokens=None))
    assert picture.table[0]["token"] == f"⟨{picture.table[0]['token_id']}⟩"


# What the pictures are made of


@pytest.mark.parametrize(
    ("tab", "name", "colors"),
    [
        ("Distribution", "a step", {FINAL, CHOSEN, GRID, INK, PAPER}),
        ("Stages", "a step", {FINAL, CHOSEN, INK, PAPER}),
        ("Draw", "a step", {FINAL, CHOSEN, GRID, INK, PAPER}),
        ("Draw", "a wheel", {FINAL, CHOSEN, INK, PAPER}),
        ("Steps", "a fork", {FINAL, CHOSEN, GIVEN, GRID, INK, PAPER}),
    ],
)
def test_each_picture_has_its_colours(tab, name, colors):
    assert colors <= colors_in(Pictures().draw(tab, VIEWS[name]()).png)


def test_a_narrower_page_has_narrower_pictures():
    pictures = Pictures(480)
    for tab in TABS:
        assert pixels(pictures.draw(tab, text_view()).png).shape[1] == 720


def test_the_height_of_distribution_follows_from_its_bars():
    pictures, heights = Pictures(), []
    for vocabulary in (2, 5, 100):
        view = toy_view(SamplingParams(), torch.zeros(vocabulary), None)
        heights.append(pixels(pictures.draw("Distribution", view).png).shape[0])
    assert heights == sorted(set(heights))


def test_only_the_title_of_steps_is_that_of_the_text():
    pictures, view = Pictures(), text_view(4, RACE.replace(temperature=2.0))
    titles = {tab: pictures.title(tab, view) for tab in TABS}
    assert titles.pop("Steps") == "the text, as it was written"
    assert set(titles.values()) == {view.title}
    assert pictures.title("Steps", text_view(4)) == text_view(4).title


# A real model


def test_the_bundled_model_has_all_tabs(root):
    model = load(root / "checkpoints/xslm/model.json")
    params = SamplingParams(temperature=2.0, top_k=12, seed=7)
    text = generate(model, "Q: is the sky blue?\nA: ", params, max_new_tokens=8)
    pictures = Pictures()
    view = step_view(model, text, text.steps[1])
    for tab in TABS:
        picture = pictures.draw(tab, view)
        assert picture.table, tab
    ids = tuple(text.prompt_ids)
    history = History(ids, len(ids))
    ledger = text.params.chain(*history).ledger(model.logits(ids))
    coming = next_token_view(ledger, model.token_text, text.params, "", history=history)
    assert pictures.draw("Draw", coming).table != pictures.draw("Draw", view).table
