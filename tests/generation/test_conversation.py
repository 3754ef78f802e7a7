"""The conversation: what is remembered, what is dropped, what is saved; the command."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from sampling_lab import Generation, SamplingParams, generate, load
from sampling_lab.cli.main import main
from sampling_lab.errors import PromptError
from sampling_lab.generation.conversation import Conversation
from sampling_lab.models.huggingface.model import HuggingFaceModel
from sampling_lab.text import terminal
from tests import tiny
from tests.fakes import TableModel
from tests.helpers import ROOT

TINY = ROOT / "checkpoints/scratch_llm/tiny_sft.pt"
SMOLLM2 = ROOT / "checkpoints/smollm2-135m-instruct"
GREEDY = SamplingParams(temperature=0)
PIECES = [bytes([n]) for n in range(32, 127)]
END = 0  # a space ends a reply


class Parrot(TableModel):
    """A chat model that answers "ok" to everything; a character is a token."""

    def __init__(self, context=None, reply="ok", **card):
        table = torch.full((len(PIECES), len(PIECES)), -30.0)
        path = [ord(">") - 32, *(ord(c) - 32 for c in reply), END]
        for here, there in pairwise(path):
            table[here, there] = 30.0
        fields = {"context_length": context, "chat": True, "stop_token_ids": (END,)}
        super().__init__(table, PIECES, **{**fields, **card})

    def chat_ids(self, messages):
        said = "".join(f"{m['role'][0]}<{m['content']}|" for m in messages)
        return self.tokenizer.encode(f"{said}a>")


def say(conversation, text):
    """Have one whole turn and return the prompt's text and the reply."""
    run = conversation.start(text)
    list(run)
    conversation.keep(text, run.generation)
    prompt = conversation.model.tokenizer.decode(run.generation.prompt_ids)
    return prompt, run.generation


def test_it_remembers():
    conversation = Conversation(Parrot(), system="S", params=GREEDY)
    assert say(conversation, "hi")[0] == "s<S|u<hi|a>"
    prompt, reply = say(conversation, "you")
    assert prompt == "s<S|u<hi|a<ok|u<you|a>"
    assert (reply.text, reply.finish_reason) == ("ok", "stop")
    assert [turn.text for turn in conversation.turns] == ["hi", "you"]


def test_it_does_not_where_told_so():
    conversation = Conversation(Parrot(), system="S", remembers=False, params=GREEDY)
    say(conversation, "hi")
    assert say(conversation, "you")[0] == "s<S|u<you|a>"
    assert len(conversation.turns) == 2
    assert conversation.dropped == 0


def test_a_reply_ends_where_it_is_told_to():
    stopped = Conversation(Parrot(reply="okay"), params=GREEDY, stop=["ay"])
    assert say(stopped, "hi")[1].text == "ok"
    letter = Conversation(
        Parrot(reply="okay"), params=GREEDY, stop_token_ids=[ord("k") - 32]
    )
    assert say(letter, "hi")[1].text == "o"


def test_the_space_that_joins_a_reply_to_its_prompt_is_no_part_of_it():
    words = tiny.sentence_piece()
    words.chat_template = (
        "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
    )
    model = HuggingFaceModel.wrap(tiny.llama(len(words)), words)
    space, hello = words.convert_tokens_to_ids(["▁", "▁hello"])
    conversation = Conversation(model, params=GREEDY)
    reply = conversation.start("hello").to_the_end()
    for ids, joined in [([hello], " hello"), ([space, hello], "  hello")]:
        reply = replace(reply, token_ids=tuple(ids), text=joined)
        conversation.keep("hello", reply)
        said = conversation.messages()[-1]["content"]
        assert said == model.tokenizer.decode(ids) == joined[1:]


def test_raw_continues_each_text_alone():
    conversation = Conversation(Parrot(chat=False), raw=True, system="S", params=GREEDY)
    say(conversation, "first>")
    prompt, reply = say(conversation, " x>")
    assert prompt == " x>"
    assert reply.text == "ok"


def test_ten_turns_in_a_small_context():
    """Whole oldest turns go, the system message and the newest text stay."""
    conversation = Conversation(Parrot(64), system="Be kind", params=GREEDY)
    dropped = []
    for number_ in range(10):
        prompt, reply = say(conversation, f"turn {number_}")
        assert prompt.startswith("s<Be kind|")
        assert prompt.endswith(f"u<turn {number_}|a>")
        assert len(prompt) + 16 <= 64
        assert reply.text == "ok"
        kept = prompt.count("u<") - 1
        assert kept == number_ - conversation.dropped
        oldest = f"u<turn {conversation.dropped}|"
        assert prompt.index(oldest) == len("s<Be kind|")
        dropped.append(conversation.dropped)
    assert dropped == sorted(dropped)
    assert dropped[0] == 0 < dropped[-1] < 9
    assert len(conversation.turns) == 10


def test_dropped_turns_come_back_when_there_is_room_again():
    conversation = Conversation(Parrot(48), params=GREEDY)
    for number_ in range(6):
        say(conversation, f"turn {number_}")
    before = conversation.dropped
    del conversation.turns[-3:]
    say(conversation, "x")
    assert conversation.dropped < before


def test_a_reply_is_shortened_to_what_fits():
    conversation = Conversation(Parrot(40, reply="k" * 90), params=GREEDY)
    conversation.model.table[ord("k") - 32] = -30.0
    conversation.model.table[ord("k") - 32, ord("k") - 32] = 30.0
    conversation.max_new_tokens = 64
    _, reply = say(conversation, "0123456789")
    assert len(reply.prompt_ids) + len(reply.token_ids) == 40
    assert conversation.is_cut(reply)


def test_a_text_that_alone_does_not_fit_is_refused_with_both_lengths():
    conversation = Conversation(Parrot(20), params=GREEDY)
    with pytest.raises(PromptError, match=r"prompt \(95 tokens\).* 20"):
        conversation.start("x" * 90)
    model = load(TINY)
    conversation = Conversation(model, params=GREEDY)
    _, reply = say(conversation, "word " * 90)
    assert (reply.text, reply.finish_reason) == ("", "context")
    assert "fills the context of 64" in reply.notes[-1]
    assert conversation.turns == []  # nothing was said


def test_turns_without_a_token_are_not_kept_unless_the_model_ended_them():
    conversation = Conversation(Parrot(reply=""), params=GREEDY)
    run = conversation.start("hi")
    assert not conversation.keep("hi", run.generation)  # cancelled at once
    say(conversation, "hi")
    assert conversation.turns[0].reply.text == ""


def test_what_cannot_be_talked_with_is_said():
    with pytest.raises(PromptError, match="table has no chat template; use --raw"):
        Conversation(Parrot(chat=False))
    with pytest.raises(PromptError, match="no tokenizer"):
        Conversation(TableModel(torch.eye(3), chat=True))


def test_the_default_seed_is_fresh_for_each_reply():
    model = TableModel(torch.zeros(95, 95), PIECES)
    conversation = Conversation(model, raw=True, max_new_tokens=8)
    replies = [say(conversation, "a")[1] for _ in range(3)]
    assert len({reply.text for reply in replies}) == 3
    again = generate(model, "a", replies[1].params, max_new_tokens=8)
    assert again.text == replies[1].text


def test_saved_is_exact_and_whole(tmp_path):
    conversation = Conversation(Parrot())
    say(conversation, "hi")
    conversation.system = "é\ud800"  # as a damaged terminal may send it
    conversation.save(tmp_path / "talk.json")
    document = json.loads((tmp_path / "talk.json").read_text(encoding="utf-8"))
    assert [m["role"] for m in document["messages"]] == ["system", "user", "assistant"]
    assert document["messages"][0]["content"] == "é\ud800"
    reply = Generation.from_dict(document["replies"][0])
    assert reply == conversation.turns[0].reply
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]


def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch):
    conversation = Conversation(Parrot())
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        conversation.save(tmp_path / "talk.json")
    assert list(tmp_path.iterdir()) == []


# --- the command ---


def run_chat(capsys, *arguments):
    status = main(["chat", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_one_shot_prints_the_reply_that_the_library_gives(capsys):
    options = ["--ckpt", str(TINY), "--prompt", "Is the sun hot?", "--seed", "375016"]
    options += ["--temperature", "0.5", "--top_p", "0.9", "--max_new_tokens", "200"]
    status, out, err = run_chat(capsys, *options)
    assert (status, out, err) == (0, "Yes, the sun is hot.\n", "")
    params = SamplingParams(temperature=0.5, top_p=0.9, seed=375016)
    messages = [{"role": "user", "content": "Is the sun hot?"}]
    result = generate(load(TINY), messages, params, max_new_tokens=200)
    assert result.text == out.rstrip("\n")


def test_the_command_ends_a_reply_where_it_is_told_to(capsys):
    asked = ["--ckpt", str(TINY), "--prompt", "Is the sun hot?", "--seed", "375016"]
    asked += ["--temperature", "0.5", "--top_p", "0.9", "--max_new_tokens", "200"]
    assert run_chat(capsys, *asked, "--stop", " hot")[1] == "Yes, the sun is\n"
    params = SamplingParams(temperature=0.5, top_p=0.9, seed=375016)
    messages = [{"role": "user", "content": "Is the sun hot?"}]
    first = generate(load(TINY), messages, params, max_new_tokens=1).token_ids[0]
    assert run_chat(capsys, *asked, "--eos-id", str(first))[1] == "\n"
    assert run_chat(capsys, *asked, "--eos-id", "-1")[0] == 1


def test_one_shot_raw_system_greedy(capsys):
    raw = ["--checkpoint", str(TINY), "--raw", "--greedy", "--max-new-tokens", "24"]
    assert run_chat(capsys, *raw, "--prompt", "日本語")[1] == ".. legs sea. is hot\n"
    system = ["--ckpt", str(TINY), "--greedy", "--system", "Be brief."]
    _, out, _ = run_chat(capsys, *system, "--prompt", "Who are you?")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who are you?"},
    ]
    expected = generate(load(TINY), messages, GREEDY, max_new_tokens=256).text
    assert out == f"{expected}\n"


HOT = ["--prompt", "Hi", "--seed", "5", "--max-new-tokens", "20"]


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], SamplingParams(temperature=0.8, top_p=0.95, seed=5)),
        (["--author"], SamplingParams(temperature=0.8, top_p=0.95, seed=5)),
        (["--temperature", "3"], SamplingParams(temperature=3, top_p=0.95, seed=5)),
        (
            ["--temperature=3", "--top_p=0", "--top_k=-1"],
            SamplingParams(temperature=3, seed=5),
        ),
        (["--temperature=3", "--top_p=1.5"], SamplingParams(temperature=3, seed=5)),
    ],
)
def test_the_chat_of_a_scratch_llm_begins_as_its_author_does(capsys, options, params):
    _, out, _ = run_chat(capsys, "--ckpt", str(TINY), *HOT, *options)
    messages = [{"role": "user", "content": "Hi"}]
    expected = generate(load(TINY), messages, params, max_new_tokens=20)
    assert out == f"{terminal(expected.text)}\n"


def test_one_shot_reports_the_seed_that_it_drew(capsys):
    options = ["--ckpt", str(TINY), "--prompt", "Hi", "--temperature", "2"]
    _, out, err = run_chat(capsys, *options)
    seed = err.removeprefix("sampling-lab: note: seed ").strip()
    assert seed.isdecimal()
    assert run_chat(capsys, *options, "--seed", seed)[1] == out


def test_one_shot_says_why_a_reply_is_empty(capsys):
    options = ["--ckpt", str(TINY), "--prompt", "word " * 90, "--seed", "1"]
    status, out, err = run_chat(capsys, *options)
    assert (status, out) == (0, "\n")
    assert "fills the context of 64" in err


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--min-p", "1.5"], 2, "--min-p must be in [0, 1], got 1.5"),
        (["--top-p", "1.5", "--dialect", "xslm"], 2, "--top-p must be in (0, 1], got"),
        (["--top-k", "0.5"], 2, "--top-k must be an integer"),
        (
            ["--temperature", "warm"],
            2,
            "temperature must be a finite number >= 0, got 'warm'",
        ),
        (["--max-new-tokens", "0"], 2, "--max-new-tokens must be an integer >= 1"),
        (["--seed", "-5"], 2, "seed must be an integer in [0, 2**64)"),
        (["--colour", "red"], 2, "unrecognized arguments"),
        (["--device", "abacus"], 2, "device must be"),
    ],
)
def test_bad_values_are_one_line(capsys, options, status, message):
    try:
        code, out, err = run_chat(
            capsys, "--ckpt", str(TINY), "--prompt", "Hi", *options
        )
    except SystemExit as error:
        captured = capsys.readouterr()
        code, out, err = error.code, captured.out, captured.err
    assert (code, out) == (status, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_bad_path_and_a_model_without_a_template_are_one_line(capsys, tmp_path):
    status, out, err = run_chat(capsys, "--ckpt", str(tmp_path / "x.pt"))
    assert (status, out, err.count("\n")) == (1, "", 1)
    xslm = ROOT / "checkpoints/xslm/model.json"
    status, out, err = run_chat(capsys, "--ckpt", str(xslm), "--prompt", "Q: hi")
    assert (status, out) == (1, "")
    assert "has no chat template; use --raw" in err


def test_raw_works_with_a_model_without_a_template(capsys):
    xslm = ROOT / "checkpoints/xslm/model.json"
    prompt = "Q: hi\nA: "
    options = ["--ckpt", str(xslm), "--raw", "--greedy", "--prompt", prompt]
    status, out, _ = run_chat(capsys, *options)
    assert status == 0
    assert out == generate(load(xslm), prompt, GREEDY).text + "\n"


@pytest.mark.skipif(
    not SMOLLM2.joinpath("model.safetensors").exists(),
    reason="SmolLM2 is not there: run `sampling-lab fetch smollm2`",
)
def test_smollm2_answers_as_the_library_does():
    lines = "What is the capital of France?\nAnd of Italy?\n"
    command = [sys.executable, "-m", "sampling_lab", "chat", "--ckpt", str(SMOLLM2)]
    command += ["--greedy", "--max-new-tokens", "8", "--system", "Be brief."]
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    conversation = Conversation(
        load(SMOLLM2), system="Be brief.", params=GREEDY, max_new_tokens=8
    )
    for line in lines.splitlines():
        run = conversation.start(line)
        list(run)
        conversation.keep(line, run.generation)
    replies = [turn.reply.text for turn in conversation.turns]
    assert done.stdout == "".join(f"{reply}\n" for reply in replies)
    assert "Paris" in replies[0]
