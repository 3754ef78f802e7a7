"""The prompt of the explorer: raw, chat, token ids, and its tokens in the strip."""

from __future__ import annotations

import asyncio

from sampling_lab import generate, load, score
from sampling_lab.explorer import Explorer
from tests.explorer.panels import WideModel, generated, make_explorer, make_model
from tests.helpers import ROOT, until

SCRATCH = ROOT / "checkpoints/scratch_llm/tiny_sft.pt"


def test_typing_a_prompt_shows_its_next_token():
    explorer = make_explorer()
    before = explorer.caption.value
    explorer.prompt.value = "a c"
    assert explorer.caption.value != before
    assert explorer.model.forward_passes == 2


def test_a_model_without_a_tokenizer_takes_ids():
    explorer = Explorer(WideModel(100), prompt="1, 2,3", max_new_tokens=3)
    assert "kept 100 of 100" in explorer.caption.value
    explorer.generate()
    assert explorer.generation.prompt_ids == (1, 2, 3)
    explorer.prompt.value = "one"
    assert "type token ids" in explorer.status.value


def test_an_unknown_character_is_a_warning_in_the_status_line():
    explorer = Explorer("checkpoints/xslm/model-20-steps.json", prompt="Q: Zoë?\nA: ")
    assert "becomes �" in explorer.status.value
    explorer.generate()
    assert explorer.generation is not None


def test_the_prompt_deselects_and_shows_what_comes_first():
    explorer = generated()
    explorer.strip.selected = 1
    explorer.prompt.value = "b"
    assert explorer.strip.selected == -1
    assert "next token after the prompt" in explorer.title.value


def test_chat_asks_by_the_template_with_its_system_line():
    explorer = Explorer(load(SCRATCH), prompt="What is 2 + 2?", max_new_tokens=4)
    raw = explorer.model.prompt_ids("What is 2 + 2?")
    assert [chip["id"] for chip in explorer.strip.tokens] == raw
    explorer.prompt_box.mode.value = "chat"
    explorer.generate()
    chat = [{"role": "user", "content": "What is 2 + 2?"}]
    expected = generate(explorer.model, chat, explorer.params, max_new_tokens=4)
    assert explorer.generation == expected
    assert explorer.state["mode"] == "chat"


def test_a_model_without_a_template_offers_no_chat():
    explorer = make_explorer()
    assert explorer.prompt_box.mode.disabled and explorer.prompt_box.mode.value == "raw"
    assert explorer.prompt_box.system.layout.visibility == "hidden"


def test_the_system_line_is_a_separate_message(monkeypatch):
    asked = []
    model = make_model(chat=True)
    monkeypatch.setattr(
        model, "chat_ids", lambda m: asked.append(m) or [0], raising=False
    )
    explorer = Explorer(model, prompt="a")
    explorer.prompt_box.mode.value = "chat"
    explorer.prompt_box.system.value = "be brief"
    assert [m["role"] for m in asked[-1]] == ["system", "user"]
    explorer.prompt_box.system.value = ""
    assert [m["role"] for m in asked[-1]] == ["user"]


def test_the_prompts_tokens_are_shown_scored_or_hidden():
    explorer = generated()
    prompt = explorer.generation.prompt_ids
    assert len(explorer.strip.tokens) == len(prompt) + 6
    assert "raw" not in explorer.strip.tokens[1]
    explorer.strip.prompt = "scored"
    _, *expected = score(explorer.model, prompt, explorer.params)
    shown = explorer.strip.tokens[1 : len(prompt)]
    assert [chip["raw"] for chip in shown] == [step.raw_prob for step in expected]
    explorer.strip.prompt = "hidden"
    assert len(explorer.strip.tokens) == 6


def test_a_newer_prompt_is_scored_and_the_older_one_given_up():
    async def scenario():
        explorer = make_explorer(prompt="ab" * 200)
        explorer.strip.prompt = "scored"
        await until(lambda: len(explorer.scorer.scores) > 3)
        assert len(explorer.scorer.scores) < 400
        explorer.prompt.value = "ba c"
        await until(lambda: len(explorer.scorer.scores) == 3)
        await until(lambda: "raw" in explorer.strip.tokens[-1])
        assert [chip["text"] for chip in explorer.strip.tokens] == ["b", "a", "␣c"]

    asyncio.run(scenario())


def test_nothing_is_scored_while_tokens_come_in():
    async def scenario():
        explorer = make_explorer(prompt="ab" * 400, max_new_tokens=10_000)
        explorer.strip.prompt = "scored"
        await until(lambda: len(explorer.scorer.scores) > 3)
        explorer.generate()
        await until(lambda: len(explorer.generation.steps) > 3)
        count = len(explorer.scorer.scores)
        await until(lambda: len(explorer.generation.steps) > 30)
        assert len(explorer.scorer.scores) == count < 800
        explorer.stop()
        await until(lambda: len(explorer.scorer.scores) == 800)

    asyncio.run(scenario())
