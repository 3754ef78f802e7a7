"""The toy: typed words and logits, and draws with one seed."""

from __future__ import annotations

import pytest

from sampling_lab import SamplingParams
from sampling_lab.explorer import Toy
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from tests.explorer.panels import (
    Case,
    alert,
    call,
    cases,
    count,
    enter,
    has,
    press,
    slide,
)


@cases(
    Case(
        "it draws what its seed draws",
        [
            enter("words", "a 1.609438, b 1.098612, c 0.693147"),
            *[press("Draw 1")] * 12,
            {"drawn": list("aababaabaaaa")},
            press("Draw 1,000"),
            {"drawn": count(1012), "status": has("1,012 drawn")},
            press("Reset"),
            press("Draw 1"),
        ],
        {"drawn": ["a"]},
        given=lambda: Toy(params=SamplingParams(seed=7, dialect="xslm")),
    ),
    Case(
        "a change starts its draws again",
        [call("draw_many"), {"drawn": count(1000)}, slide("temperature", 2.0)],
        {"drawn": [], "tally": has("Draw words")},
        given=Toy,
    ),
    Case(
        "hostile words are shown literally",
        [call("draw_many")],
        {"tally.value": has("&lt;b&gt;x", "&lt;/script&gt;")},
        given=lambda: Toy({"<b>x": 1.0, "</script>": 0.0}),
    ),
)
def test_toy(case):
    case.check()


def test_it_has_the_known_numbers():
    toy = Toy({"warm": 2.0, "hot": 1.0, "blue": 0.2, "run": -1.0})
    slide("temperature", 0.5)(toy)
    final = [round(p, 3) for p in toy.view().ledger.final_probs.tolist()]
    assert final == [0.858, 0.116, 0.023, 0.002]
    assert "kept 4 of 4" in toy.caption.value


def test_a_thousand_draws_go_on_after_those_before():
    toy = Toy(params=SamplingParams(seed=7, dialect="xslm"))
    toy.words.value = "a 1.609438, b 1.098612, c 0.693147"
    for _ in range(12):
        toy.draw_once()
    toy.draw_many()
    assert toy.drawn[:12] == list("aababaabaaaa")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("warm", "got 'warm'"),
        ("warm 1, 2", "got '2'"),
        ("warm x", "got 'warm x'"),
        (" , ", "words must not be empty"),
        ("warm inf", "+inf"),
    ],
)
def test_it_says_what_it_cannot_read(words, message):
    toy = Toy()
    toy.words.value = words
    assert message in alert(toy)
    toy.words.value = "warm 1, very hot 2"
    assert alert(toy) == ""
    assert "kept 2 of 2" in toy.caption.value


def test_hostile_words_are_no_markup():
    toy = Toy({"<b>x": 1.0, "</script>": 0.0})
    toy.draw_many()
    assert "<b>" not in toy.tally.value and "</script>" not in toy.tally.value


def test_it_has_every_tab_but_the_steps_it_lacks():
    toy = Toy()
    assert toy.tab.options == TABS[:-1]
    for tab in toy.tab.options:
        toy.tab.value = tab
        assert toy.status.value == "0 drawn"
        assert toy.picture.value == Pictures().draw(tab, toy.view()).png
