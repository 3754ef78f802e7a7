"""The loop: steps, text, stops, budgets, cancelling, replay."""

import json
import math
import random
import tracemalloc

import numpy as np
import pytest
import torch

from sampling_lab import Generation, SamplingParams, fork, generate, replay, stream
from sampling_lab.counterfactuals import noise_of_step
from sampling_lab.errors import (
    LogitsError,
    ParameterError,
    PromptError,
    SamplingLabError,
)
from tests.fakes import LETTERS, TableModel, letters, walk
from tests.formats import FORMATS

GREEDY = SamplingParams(temperature=0)


@pytest.fixture(name="letters")
def letters_():
    return letters()


def test_streamed_equals_generated(letters):
    params = SamplingParams(temperature=0.8, top_p=0.9, seed=3)
    run = stream(letters, "ab", params, max_new_tokens=20)
    pieces = [step.text for step in run]
    whole = generate(letters, "ab", params, max_new_tokens=20)
    assert run.generation == whole
    assert "".join(pieces) == whole.text
    assert [step.index for step in whole.steps] == list(range(20))
    assert whole.finish_reason == "length"


def test_a_step_says_what_the_ledger_says(letters):
    params = SamplingParams(temperature=0.7, top_k=5, seed=2)
    for step in generate(letters, "q", params, max_new_tokens=8).steps:
        ledger = step.ledger()
        assert step.raw_prob == ledger.raw_probs[step.token_id].item()
        assert step.final_prob == ledger.final_probs[step.token_id].item()
        assert step.rank == ledger.rank(step.token_id) <= 5
        assert step.kept_count == ledger.kept_count == 5
        assert step.entropy == pytest.approx(math.log2(ledger.effective_count))


def memory_and_decoded(count):
    """Return the bytes that a run keeps, and how many ids its text was decoded from."""
    decoded = 0
    model = walk(
        [b"<", b"warm ", b"sun ", b"\xf0", b"\x9f\x8c\x8a"], [0, 1, 2, 3, 4, 1]
    )
    decode = model.tokenizer.decode

    def counting(ids):
        nonlocal decoded
        decoded += len(ids)
        return decode(ids)

    model.tokenizer.decode = counting
    tracemalloc.start()
    result = generate(model, [0], SamplingParams(seed=1), max_new_tokens=count)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(result.steps) == count
    return kept, decoded


def test_memory_and_work_grow_with_the_text_and_not_with_its_square():
    short, long = memory_and_decoded(400), memory_and_decoded(1600)
    for few, many in zip(short, long, strict=True):
        assert 3.5 * few < many < 4.5 * few


def test_tokens_equal_a_loop_by_hand(letters):
    params = SamplingParams(temperature=0.9, seed=11)
    ids, generator = [3], torch.Generator().manual_seed(11)
    for _ in range(15):
        probs = (letters.table[ids[-1]] / 0.9).softmax(-1)
        ids.append(int(torch.multinomial(probs, 1, generator=generator)))
    result = generate(letters, [3], params, max_new_tokens=15)
    assert list(result.token_ids) == ids[1:]


def test_the_same_seed_repeats_and_global_state_is_untouched(letters):
    random.seed(5)
    torch.manual_seed(5)
    before = random.getstate(), torch.get_rng_state()
    runs = [
        generate(letters, "a", SamplingParams(seed=3), max_new_tokens=12)
        for _ in range(3)
    ]
    assert runs[0] == runs[1] == runs[2]
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


def test_no_seed_draws_one_and_reports_it(letters):
    open_seed = SamplingParams(seed=None)
    first, second = (
        generate(letters, "a", open_seed, max_new_tokens=30) for _ in range(2)
    )
    assert first.params.seed != second.params.seed
    again = generate(letters, "a", first.params, max_new_tokens=30)
    assert again.token_ids == first.token_ids


def test_greedy_ignores_the_seed_and_says_so(letters):
    one, two = (
        generate(letters, "a", GREEDY.replace(seed=seed), max_new_tokens=9)
        for seed in (1, 2)
    )
    assert one.token_ids == two.token_ids
    assert one.notes == ("temperature is 0 (greedy): the seed has no effect",)


def test_top_k_above_the_vocabulary_reports_the_effective_k(letters):
    params = SamplingParams(top_k=50, seed=1)
    result = generate(letters, "a", params, max_new_tokens=9)
    off = generate(letters, "a", SamplingParams(seed=1), max_new_tokens=9)
    assert result.token_ids == off.token_ids
    assert result.params.effective(26)["top_k"] == 26
    assert "effective k is 26" in result.notes[0]


def test_emoji_split_over_tokens_is_held_back():
    family = [bytes([b]) for b in "👨‍👩‍👧".encode()]
    pieces = [b"<", *family]
    model = walk(pieces, range(len(pieces)))
    result = stream(model, [0], GREEDY, max_new_tokens=len(family))
    texts = [step.text for step in result]
    assert "".join(texts) == "👨‍👩‍👧"
    assert "\ufffd" not in "".join(texts)


def test_incomplete_bytes_come_out_with_the_last_step():
    model = walk([b"<", b"a", b"\xf0", b"\x9f"], [0, 1, 2, 3, 0])
    texts = [step.text for step in stream(model, [0], GREEDY, max_new_tokens=3)]
    assert texts == ["a", "", "\ufffd"]


def test_stop_string_over_several_tokens():
    model = walk([b"al", b"pha be", b"ta ga", b"mma x", b"!"], [4, 0, 1, 2, 3, 4])
    run = stream(model, [4], GREEDY, stop="beta gamma", max_new_tokens=20)
    assert [step.text for step in run] == ["al", "pha ", "", ""]
    assert run.generation.text == "alpha "
    assert run.generation.finish_reason == "stop"


@pytest.mark.parametrize("end", [2, 3])
def test_any_stop_token_ends_and_is_no_part_of_the_text(end):
    pieces = [b"<", b"a", b"</s>", b"<end>"]
    model = walk(pieces, [0, 1, end], stop_token_ids=(2, 3))
    result = generate(model, [0], GREEDY)
    assert (result.text, result.token_ids) == ("a", (1,))
    assert result.finish_reason == "stop"
    assert result.stop_step.token_id == end
    assert result.stop_step.is_stop


def test_given_stop_ids_win_even_when_zero():
    model = walk([b"a", b"b"], [1, 0, 1], stop_token_ids=(1,))
    result = generate(model, [1], GREEDY, stop_token_ids=[0])
    assert (result.token_ids, result.stop_step.token_id) == ((), 0)


def test_an_answer_can_be_empty():
    model = walk([b"<", b"</s>"], [0, 1], stop_token_ids=(1,))
    assert generate(model, [0], GREEDY).text == ""


@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "3", math.nan, [1]])
def test_max_new_tokens_has_one_rule(letters, bad):
    with pytest.raises(ParameterError, match="max_new_tokens must be an integer >= 1"):
        stream(letters, "a", max_new_tokens=bad)
    assert len(generate(letters, "a", max_new_tokens=np.int64(3)).steps) == 3


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ([], "the prompt is empty"),
        ("", "the prompt is empty"),
        ([26], r"in \[0, 26\), got 26 at position 0"),
        ([1, -1], "got -1 at position 1"),
        ([1, True], "must be integers, got True at position 1"),
        ([1.0], r"must be integers, got 1\.0 at position 0"),
        ([{"role": "user", "content": "hi"}], "no chat template"),
    ],
)
def test_bad_prompts_are_refused_before_anything_runs(letters, prompt, problem):
    with pytest.raises(PromptError, match=problem):
        stream(letters, prompt)
    assert letters.forward_passes == 0


@pytest.mark.parametrize("name", FORMATS)
def test_several_prompts_give_what_each_gives_alone(name):
    model = FORMATS[name].load()
    vocab = model.card.vocab_size
    prompts = [[1, 2, 3], (1, 2), [vocab - 1], np.array([3, 1]).tolist()]
    if model.tokenizer is not None:
        prompts += ["a", "a b"]
    if model.card.chat:
        prompts += [[{"role": "user", "content": "Hi"}]]
    for params in (GREEDY, SamplingParams(temperature=2, seed=7)):
        together = generate(model, prompts, params, max_new_tokens=4)
        alone = [generate(model, one, params, max_new_tokens=4) for one in prompts]
        assert [r.to_dict() for r in together] == [r.to_dict() for r in alone]


@pytest.mark.parametrize(
    ("prompts", "problem"),
    [
        (["a", ""], "the prompt is empty"),
        ([[1, 2], [26]], r"in \[0, 26\), got 26 at position 0"),
        (["a", 3], "a prompt must be text, a list of token ids"),
        (["a", None], "a prompt must be text, a list of token ids"),
        (["a", {"role": "user", "content": "hi"}], "a prompt must be text"),
        (["a", ["b"]], "a prompt must be text, a list of token ids"),
        ([[1], [{"role": "user", "content": "hi"}]], "no chat template"),
        ([1, "a"], "a prompt must be text, a list of token ids"),
    ],
)
def test_all_of_several_prompts_are_checked_first(letters, prompts, problem):
    with pytest.raises(PromptError, match=problem):
        generate(letters, prompts, GREEDY, max_new_tokens=2)
    assert letters.forward_passes == 0


@pytest.mark.parametrize("prompt", [["a", "b"], [[1], [2]], [[{"role": "user"}]], 3])
def test_a_stream_takes_one_prompt(letters, prompt):
    with pytest.raises(PromptError, match=r"a prompt must be text, .*`generate` takes"):
        stream(letters, prompt)


def test_an_interrupt_ends_all_of_several_prompts(letters, monkeypatch):
    whole = generate(letters, ["a", "b", "c"], GREEDY, max_new_tokens=3)
    letters.reset()
    answers = iter([letters.logits([n]) for n in range(4)])

    def logits(_):
        if (answer := next(answers, None)) is None:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(letters, "logits", logits)
    results = generate(letters, ["a", "b", "c"], GREEDY, max_new_tokens=3)
    assert [len(result.token_ids) for result in results] == [3, 1, 0]
    reasons = [result.finish_reason for result in results]
    assert reasons == [whole[0].finish_reason, "cancelled", "cancelled"]


def test_empty_prompt_starts_from_the_beginning_of_text_token():
    model = walk([b"<s>", b"a"], [0, 1, 1], bos_token_id=0)
    assert generate(model, "", GREEDY, max_new_tokens=2).prompt_ids == (0,)


@pytest.mark.parametrize("stop", ["", [""], [3]])
def test_bad_stop_strings(letters, stop):
    with pytest.raises(ParameterError, match="stop must be non-empty strings"):
        stream(letters, "a", stop=stop)


@pytest.mark.parametrize("length", [15, 16, 17, 100])
def test_default_context_rule_refuses_with_both_lengths(length):
    model = TableModel(torch.zeros(2, 2), [b"a", b"b"], context_length=16)
    with pytest.raises(PromptError, match=rf"{length} tokens.*\(2\).*context of 16"):
        stream(model, [0] * length, max_new_tokens=2)


class Shortens(TableModel):
    """A format whose context rule shortens the budget."""

    def budget(self, prompt_length, max_new_tokens):
        return min(max_new_tokens, self.card.context_length - prompt_length)


def test_a_shortened_budget_ends_with_context():
    model = Shortens(torch.zeros(2, 2), [b"a", b"b"], context_length=6)
    result = generate(model, [0, 1], max_new_tokens=9)
    assert (len(result.token_ids), result.finish_reason) == (4, "context")


def test_a_prompt_that_fills_the_context_gives_nothing_and_says_why():
    model = Shortens(torch.zeros(2, 2), [b"a", b"b"], context_length=2)
    result = generate(model, [0, 1], max_new_tokens=9)
    assert (result.text, result.finish_reason) == ("", "context")
    assert "no room for a reply" in result.notes[-1]


def test_leaving_early_keeps_what_there_is(letters):
    run = stream(letters, "a", max_new_tokens=500)
    first = [next(run) for _ in range(10)]
    partial = run.generation
    assert partial.finish_reason == "cancelled"
    assert partial.steps == tuple(first)
    assert partial.text == "".join(step.text for step in first)


def test_ctrl_c_keeps_what_there_is(letters):
    class Interrupts(TableModel):
        def _forward(self, ids):
            if len(ids) == 5:
                raise KeyboardInterrupt
            return super()._forward(ids)

    result = generate(Interrupts(letters.table, LETTERS), "ab", max_new_tokens=50)
    assert (len(result.token_ids), result.finish_reason) == (3, "cancelled")
    assert len(result.text) == 3


@pytest.mark.parametrize("params", [GREEDY, SamplingParams()])
def test_nan_from_the_model_is_an_error_in_greedy_too(params):
    table = torch.tensor([[0.0, 5.0, math.nan]] * 3)
    with pytest.raises(LogitsError, match="1 NaN"):
        generate(TableModel(table, [b"a", b"b", b"c"]), [0], params)


def test_asking_again_with_other_parameters_runs_no_forward_pass(letters):
    params = SamplingParams(temperature=0.8, seed=3)
    first = generate(letters, "abc", params, max_new_tokens=20)
    passes = letters.forward_passes
    assert passes == 20
    again = generate(letters, "abc", params, max_new_tokens=20)
    for step in again.steps:
        step.ledger()
    generate(letters, "abc", params.replace(temperature=0.1), max_new_tokens=1)
    assert again == first
    assert letters.forward_passes == passes


def test_json_round_trip_is_strict(letters):
    params = SamplingParams(temperature=0.5, top_k=2, top_p=0.5, seed=9)
    result = generate(letters, "zz", params, max_new_tokens=6, stop=["??"])
    text = json.dumps(result.to_dict(), allow_nan=False)
    back = Generation.from_dict(json.loads(text))
    assert back == result
    with pytest.raises(ParameterError, match="replay"):
        back.steps[0].ledger()


@pytest.mark.parametrize("dialect", ["transformers", "xslm", "scratch_llm"])
def test_replay_gives_the_same_tokens(letters, dialect):
    params = SamplingParams(temperature=0.9, seed=4, dialect=dialect)
    first = generate(letters, "hi", params, max_new_tokens=12)
    again = replay(first, letters)
    assert (again.same, again.why) == (True, "the same 12 tokens")


def test_replay_names_the_first_difference(letters):
    result = generate(letters, "hi", GREEDY, max_new_tokens=6)
    other = TableModel(letters.table.clone(), LETTERS)
    other.table[result.token_ids[1]] = torch.linspace(0, 9, 26).flip(0)
    if result.token_ids[2] == 0:
        other.table[result.token_ids[1]] = torch.linspace(0, 9, 26)
    again = replay(result, other)
    assert (again.same, again.first_difference) == (False, 2)
    assert again.why.startswith("step 2 drew ")


def test_hostile_tokens_stay_text_in_html():
    pieces = [b"<b>x", b"</script>", b"&lt;", b'<img src=x onerror="y">', b"\n"]
    model = walk(pieces, [4, 0, 1, 2, 3, 4])
    shown = generate(model, [4], GREEDY, max_new_tokens=5)._repr_html_()
    for piece in ("<b>", "</script>", "<img"):
        assert piece not in shown
    assert "&lt;b&gt;x" in shown
    assert "⏎" in shown


def test_ids_alone_need_no_tokenizer():
    model = TableModel(torch.eye(4) * 9)
    result = generate(model, [2], GREEDY, max_new_tokens=2)
    assert (result.token_ids, result.text) == ((2, 2), "")
    assert result.steps[0].token_text == "⟨2⟩"
    with pytest.raises(PromptError, match="no tokenizer"):
        generate(model, "text")


# Forks

FORKED = [
    SamplingParams(temperature=0.9, seed=5),
    SamplingParams(temperature=0.9, seed=5, dialect="xslm"),
    SamplingParams(temperature=0.9, seed=5, draw_method="keyed"),
    SamplingParams(temperature=1.2, seed=5, draw_method="choices", top_p=0.9),
    SamplingParams(seed=2, repetition_penalty=1.3, frequency_penalty=0.4),
    SamplingParams(seed=2, no_repeat_ngram_size=2, draw_method="keyed"),
    SamplingParams(seed=8, xtc_probability=0.5, xtc_threshold=0.05),
    GREEDY.replace(presence_penalty=0.5),
]


def numbers(step):
    """Return what a step says, except who chose."""
    return {**step.to_dict(), "drawn": None}


@pytest.mark.parametrize("params", FORKED, ids=SamplingParams.describe)
@pytest.mark.parametrize("index", [0, 1, 7, 14])
def test_a_fork_with_the_token_that_was_drawn_is_the_same_run(letters, params, index):
    parent = generate(letters, "abcab", params, max_new_tokens=15)
    run = fork(letters, parent, index, parent.token_ids[index])
    again = run.to_the_end()
    assert again.token_ids == parent.token_ids
    assert again.text == parent.text
    assert [*map(numbers, again.steps)] == [*map(numbers, parent.steps)]
    assert again.steps[:index] == parent.steps[:index]
    assert again.steps[index].is_given
    assert again.steps[index].drawn.to_dict() == {"method": "given"}
    assert again.steps[index + 1 :] == parent.steps[index + 1 :]  # the same luck


@pytest.mark.parametrize("params", FORKED, ids=SamplingParams.describe)
def test_after_a_fork_only_the_choice_differs(letters, params):
    """Step by step: the luck of the step, and a chain that knows the new history."""
    parent = generate(letters, "ab", params, max_new_tokens=12)
    other = (parent.token_ids[4] + 1) % 26
    child = fork(letters, parent, 4, other).to_the_end()
    assert child.token_ids[:5] == (*parent.token_ids[:4], other)
    assert len(child.token_ids) == 12
    for step in child.steps[5:]:
        ids = [*child.prompt_ids, *child.token_ids[: step.index]]
        logits = letters.logits(ids)
        ledger = params.resolve("transformers").chain(ids, 2).ledger(logits)
        assert step.final_prob == ledger.final_probs[step.token_id].item()
        if not params.is_greedy:
            luck = noise_of_step(logits, child.params, step=step.index)
            assert step.token_id == luck.choose(ledger.final.logits)


@pytest.mark.parametrize("params", FORKED, ids=SamplingParams.describe)
def test_a_step_recalls_its_ledger_when_the_text_has_gone_on(letters, params):
    for step in generate(letters, "abcab", params, max_new_tokens=15).steps:
        ledger = step.ledger()
        assert step.final_prob == ledger.final_probs[step.token_id].item()
        assert step.kept_count == ledger.kept_count


def test_a_fork_asks_the_model_only_for_what_is_new(letters):
    parent = generate(letters, "ab", SamplingParams(seed=1), max_new_tokens=20)
    letters.forward_passes = 0
    run = fork(letters, parent, 12, (parent.token_ids[12] + 1) % 26)
    assert letters.forward_passes == 0
    assert next(run).index == 12
    assert run.generation.steps[:12] == parent.steps[:12]
    assert len(run.to_the_end().token_ids) == 20
    assert letters.forward_passes == 7


def test_a_fork_can_have_other_parameters_and_another_length(letters):
    parent = generate(letters, "ab", SamplingParams(seed=1), max_new_tokens=6)
    child = fork(letters, parent, 6, 3, GREEDY, max_new_tokens=9).to_the_end()
    assert child.token_ids[:7] == (*parent.token_ids, 3)
    assert [step.finish_reason for step in child.steps] == [None] * 8 + ["length"]
    assert child.params.is_greedy
    assert all(step.rank == 1 for step in child.steps[7:])


def test_the_text_of_a_fork_is_exact_across_split_characters():
    pieces = [b"<", b"\xf0", b"\x9f\x8c", b"\x8a", b"\x8b", b"."]
    model = walk(pieces, [0, 1, 2, 3, 5])
    parent = generate(model, [0], GREEDY, max_new_tokens=4)
    assert parent.text == "🌊."
    child = fork(model, parent, 2, 4, max_new_tokens=3)
    assert [step.text for step in child] == ["🌋"]
    assert child.generation.text == "🌋"
    # A run that ended within a character shows what it had; its fork completes it.
    cut = generate(model, [0], GREEDY, max_new_tokens=2)
    assert cut.text == "\ufffd"
    whole = fork(model, cut, 2, 3, max_new_tokens=4).to_the_end()
    assert whole.text == "🌊."
    assert "".join(step.text for step in whole.steps) == whole.text


def test_stop_strings_and_stop_tokens_hold_in_a_fork_too():
    model = walk([b"<", b"a", b"b", b"</s>"], [0, 1, 1], stop_token_ids=(3,))
    parent = generate(model, [0], GREEDY, max_new_tokens=4, stop="aba")
    assert parent.text == "aaaa"
    cut = fork(model, parent, 2, 2, max_new_tokens=4).to_the_end()
    assert (cut.token_ids, cut.finish_reason) == ((1, 1, 2, 0), "length")
    model.table[2] = model.table[0]  # after b comes a: the stop string is complete
    model.reset()
    stopped = fork(model, parent, 2, 2).to_the_end()
    assert (stopped.text, stopped.finish_reason) == ("a", "stop")
    ended = fork(model, parent, 1, 3).to_the_end()
    assert (ended.text, ended.stop_step.is_given) == ("a", True)
    on = fork(model, ended, 1, 1, max_new_tokens=3).to_the_end()
    assert (on.token_ids, on.stop_step) == ((1, 1, 1), None)


def test_a_removed_token_can_be_given(letters):
    params = SamplingParams(top_k=1, seed=1)
    parent = generate(letters, "ab", params, max_new_tokens=3)
    removed = (parent.token_ids[1] + 1) % 26
    step = next(fork(letters, parent, 1, removed))
    assert (step.token_id, step.final_prob, step.kept_count) == (removed, 0.0, 1)
    assert step.raw_prob > 0
    assert step.ledger().removed_by(removed).stage.name == "top-k"


def test_forks_replay_and_go_through_json(letters):
    params = SamplingParams(seed=3, repetition_penalty=1.2)
    parent = generate(letters, "ab", GREEDY, max_new_tokens=12)
    child = fork(letters, parent, 4, 9, params).to_the_end()
    grandchild = fork(letters, child, 8, 2, params.replace(seed=4)).to_the_end()
    for generation in (child, grandchild):
        data = json.loads(json.dumps(generation.to_dict(), allow_nan=False))
        back = Generation.from_dict(data)
        assert back == generation
        again = replay(back, letters)
        assert (again.same, again.generation) == (True, generation)


@pytest.mark.parametrize(
    ("index", "token_id", "problem"),
    [
        (-1, 0, "index must be an integer >= 0"),
        (True, 0, "index must be an integer >= 0"),
        (7, 0, "index must be a step from 0 to 6, got 7"),
        (6, 0, "step 6 must be one of the 6 there is room for; raise max_new_tokens"),
        (2, 26, r"in \[0, 26\), got 26"),
        (2, "a", "token_id must be an integer >= 0, got 'a'"),
    ],
)
def test_bad_forks_are_refused_in_one_sentence(letters, index, token_id, problem):
    parent = generate(letters, "ab", GREEDY, max_new_tokens=6)
    with pytest.raises(SamplingLabError, match=problem):
        fork(letters, parent, index, token_id)
