"""The token strip without a browser: its chips, what it sends, what it keeps."""

from __future__ import annotations

import json
import math

import pytest
import torch
import traitlets

from sampling_lab import Generation, SamplingParams, fork, generate, score, stream
from sampling_lab.explorer.controls.token_strip import MEASURES, TokenStrip, chip, chips
from tests.fakes import TableModel

PIECES = [b"a", b" b", b"c\n", b"\xf0\x9f", b"</script>", b"<|end|>"]
PARAMS = SamplingParams(temperature=1.5, seed=4, top_k=5)


@pytest.fixture
def model() -> TableModel:
    table = torch.randn(6, 6, generator=torch.Generator().manual_seed(3))
    table[:, 5] = -20.0
    return TableModel(table, PIECES, stop_token_ids=(5,))


@pytest.fixture
def text(model) -> Generation:
    return generate(model, [0, 1], PARAMS, max_new_tokens=12)


class Page:
    """What a page would hear of a strip."""

    def __init__(self, strip: TokenStrip) -> None:
        self.messages: list[dict] = []
        self.whole: list[list] = []
        strip.send = lambda content: self.messages.append(
            json.loads(json.dumps(content))
        )
        strip.observe(lambda change: self.whole.append(list(change.new)), "tokens")


@pytest.fixture
def strip() -> TokenStrip:
    return TokenStrip()


# Chips


def test_a_chip_tells_what_its_step_tells(model, text):
    for step, shown in zip(text.steps, chips(model, text.steps), strict=True):
        assert shown["step"] == step.index
        assert shown["text"] == model.token_text(step.token_id)
        assert bytes.fromhex(shown["bytes"]) == PIECES[step.token_id]
        assert shown["surprisal"] == -math.log2(step.raw_prob)
        assert (shown["raw"], shown["final"]) == (step.raw_prob, step.final_prob)
        assert (shown["rank"], shown["kept"]) == (step.rank, 5)
        assert shown["entropy"] == step.entropy
        assert (shown["given"], shown["stop"]) == (False, False)
        assert set(MEASURES) <= set(shown)


def test_white_space_special_tokens_and_half_characters_are_visible(model):
    shown = chips(model, (), range(6))
    assert [one["text"] for one in shown] == [
        *("a", "␣b", "c⏎", "⟨f0 9f⟩", "</script>", "<|end|>")
    ]
    assert [one["breaks"] for one in shown] == [False, False, True, False, False, False]
    assert shown[3]["bytes"] == "f0 9f"


def test_a_prompt_has_numbers_where_it_was_scored(model):
    ids = [0, 2, 4]
    bare = chips(model, (), ids)
    assert all(set(one) == {"id", "text", "bytes", "breaks"} for one in bare)
    scored = chips(model, (), ids, [*score(model, ids)])
    assert set(scored[0]) == set(bare[0])
    assert scored[1]["raw"] == model.table[0].softmax(-1)[2].item()
    assert all("step" not in one for one in scored)
    assert [one["id"] for one in chips(model, (), ids, [None])] == ids


def test_given_and_stop_tokens_say_so_and_infinity_is_json(model, text):
    child = fork(model, text, 3, 5).to_the_end()
    last = chips(model, child.all_steps)[-1]
    assert (last["given"], last["stop"], last["step"]) == (True, True, 3)
    model.table[:, 5] = -math.inf
    model.reset()
    child = fork(model, text, 3, 5).to_the_end()
    last = chips(model, child.all_steps)[-1]
    assert (last["raw"], last["surprisal"]) == (0.0, None)
    json.dumps(last, allow_nan=False)


def test_a_model_without_a_tokenizer_shows_ids():
    shown = chip(TableModel(torch.zeros(3, 3)), 2)
    assert shown == {"id": 2, "text": "⟨2⟩", "bytes": "", "breaks": False}


# The widget


def test_streaming_sends_each_token_once(model, strip):
    page, run = Page(strip), stream(model, [0, 1], PARAMS, max_new_tokens=12)
    strip.show(model, (), [0, 1])
    for _ in run:
        strip.show(model, run.generation.steps, [0, 1])
    assert len(page.whole) == 1
    assert [message["at"] for message in page.messages] == [*range(2, 14)]
    sent = page.whole[0] + [one for m in page.messages for one in m["tokens"]]
    assert sent == strip.tokens == chips(model, run.generation.steps, [0, 1])
    assert strip.get_state("tokens")["tokens"] == sent  # for a page that opens later
    strip.show(model, run.generation.steps, [0, 1])
    assert len(page.messages) == 12  # nothing new, nothing sent


def test_another_text_is_sent_whole(model, text, strip):
    page = Page(strip)
    strip.show(model, text.steps, [0, 1])
    child = fork(model, text, 3, 5).to_the_end()
    for steps, prompt in ((child.all_steps, [0, 1]), ((), [0, 1]), (text.steps, [0])):
        strip.show(model, steps, prompt)
        assert strip.tokens == page.whole[-1] == chips(model, steps, prompt)
    assert page.messages == []


def test_scores_that_arrive_are_shown(model, text, strip):
    strip.show(model, text.steps, [0, 1])
    strip.show(model, text.steps, [0, 1], [*score(model, [0, 1])])
    assert "raw" in strip.tokens[1]


def test_a_fork_that_goes_on_from_what_is_shown_is_appended(model, text, strip):
    page = Page(strip)
    strip.show(model, text.steps[:4], [0, 1])
    child = fork(model, text, 4, 2).to_the_end()
    strip.show(model, child.steps, [0, 1])
    assert [message["at"] for message in page.messages] == [6]
    assert strip.tokens == chips(model, child.steps, [0, 1])


def test_a_selected_step_stays_while_it_is_there(model, text, strip):
    strip.show(model, text.steps)
    strip.selected = 5
    strip.show(model, text.steps[:8])
    assert strip.selected == 5
    strip.show(model, text.steps[:5])
    assert strip.selected == -1


def test_a_page_that_missed_something_gets_everything(model, text, strip):
    asked = []
    strip.send_state = asked.append
    strip._handle_custom_msg({"kind": "resend"}, [])
    strip._handle_custom_msg({"kind": "other"}, [])
    strip._handle_custom_msg({}, [])
    assert asked == ["tokens"]


def test_the_traits_have_rules(strip):
    with pytest.raises(traitlets.TraitError):
        strip.measure = "beauty"
    with pytest.raises(traitlets.TraitError):
        strip.selected = "1"
    assert strip.measure == "surprisal"


def test_two_strips_share_nothing(model, text):
    first, second = TokenStrip(), TokenStrip()
    first.show(model, text.steps[:3])
    first.show(model, text.steps)
    assert second.tokens == []


def test_the_page_comes_from_the_package_and_asks_no_network(strip):
    source = str(strip._esm)
    assert "export default" in source
    for forbidden in ("http:", "https:", "//cdn", "innerHTML", "import ", "eval("):
        assert forbidden not in source
    assert "url(" not in str(strip._css)
    for measure in MEASURES:
        assert f"  {measure}: {{" in source
