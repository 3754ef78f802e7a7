"""The toy: typed words and logits, and draws with one seed."""

from __future__ import annotations

import pytest

from sampling_lab import SamplingParams
from sampling_lab.explorer import Toy
from sampling_lab.explorer.pictures.tabs import TABS, Pictures
from tests.explorer.panels import dial


def test_the_toy_has_the_known_numbers():
    toy = Toy({"warm": 2.0, "hot": 1.0, "blue": 0.2, "run": -1.0})
    dial(toy, "temperature").slider.value = 0.5
    final = [round(p, 3) for p in toy.view().ledger.final_probs.tolist()]
    assert final == [0.858, 0.116, 0.023, 0.002]
    assert "kept 4 of 4" in toy.caption.value


def test_the_toy_draws_what_its_seed_draws():
    toy = Toy(params=SamplingParams(seed=7, dialect="xslm"))
    toy.words.value = "a 1.609438, b 1.098612, c 0.693147"
    for _ in range(12):
        toy.draw_once()
    assert "".join(toy.drawn) == "aababaabaaaa"
    toy.draw_many()
    assert len(toy.drawn) == 1012 and toy.drawn[:12] == list("aababaabaaaa")
    assert "1,012 drawn" in toy.status.value
    toy.reset()
    toy.draw_once()
    assert toy.drawn == ["a"]


def test_a_change_begins_the_toys_draws_again():
    toy = Toy()
    toy.draw_many()
    dial(toy, "temperature").slider.value = 2.0
    assert toy.drawn == []
    assert "Draw words" in toy.tally.value


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("warm", "got &#x27;warm&#x27;"),
        ("warm 1, 2", "got &#x27;2&#x27;"),
        ("warm x", "got &#x27;warm x&#x27;"),
        (" , ", "words must not be empty"),
        ("warm inf", "+inf"),
    ],
)
def test_the_toy_says_what_it_cannot_read(words, message):
    toy = Toy()
    toy.words.value = words
    assert 'role="alert"' in toy.status.value
    assert message in toy.status.value
    toy.words.value = "warm 1, very hot 2"
    assert "alert" not in toy.status.value
    assert "kept 2 of 2" in toy.caption.value


def test_hostile_words_are_shown_literally():
    toy = Toy({"<b>x": 1.0, "</script>": 0.0})
    toy.draw_many()
    assert "<b>" not in toy.tally.value and "</script>" not in toy.tally.value
    assert "&lt;b&gt;x" in toy.tally.value


def test_the_toy_has_every_tab_but_the_steps_it_lacks():
    toy = Toy()
    assert toy.tab.options == TABS[:-1]
    for tab in toy.tab.options:
        toy.tab.value = tab
        assert toy.status.value == "0 drawn"
        assert toy.picture.value == Pictures().draw(tab, toy.view()).png
