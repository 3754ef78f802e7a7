"""The chat's loop: commands, Ctrl-C, the end of the input, text that is only text."""

import json
from io import StringIO

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.cli.repl import COMMANDS, Repl
from sampling_lab.cli.terminal import Terminal
from sampling_lab.generation.conversation import Conversation
from tests.fakes import TableModel
from tests.generation.test_conversation import PIECES, Parrot

GREEDY = SamplingParams(temperature=0)


class Person(Terminal):
    """A person at a terminal who types given lines; an exception is raised."""

    def __init__(self, *lines):
        self.out, self.err = StringIO(), StringIO()
        super().__init__(None, self.out, self.err)
        self.is_interactive = True
        self.lines = list(lines)
        self.prompts = []

    def read(self, name):
        self.prompts.append(name)
        line = self.lines.pop(0) if self.lines else EOFError()
        if isinstance(line, BaseException | type):
            raise line
        return line


def talk(*lines, model=None, status=0, **options):
    """Run a session and return what was said, remarked, and the conversation."""
    conversation = Conversation(model or Parrot(), **{"params": GREEDY, **options})
    person = Person(*lines)
    assert Repl(conversation, person).run() == status
    remarks = person.err.getvalue().splitlines()[2:]  # after the greeting
    return person.out.getvalue(), remarks, conversation


@pytest.mark.parametrize("word", ["exit", "quit", " exit ", "/exit", "/quit"])
def test_leaving(word):
    out, remarks, conversation = talk("hi", word, "never")
    assert out == "bot> ok\n\n"
    assert remarks == []
    assert [turn.text for turn in conversation.turns] == ["hi"]


def test_the_end_of_the_input_leaves():
    assert talk()[0] == "\n"
    assert talk("hi")[0] == "bot> ok\n\n\n"


def test_blank_lines_are_no_text():
    assert len(talk("", "   ", "\t")[2].turns) == 0
    assert len(talk("", raw=True)[2].turns) == 0


def test_the_greeting_names_model_and_settings():
    person = Person()
    Repl(Conversation(Parrot(), params=SamplingParams(seed=3)), person).run()
    first, second = person.err.getvalue().splitlines()
    assert first.startswith("table · fake")
    assert second.startswith("chat · temperature 1, seed 3 · /help")


def test_help_lists_every_command():
    _, remarks, _ = talk("/help")
    assert len([line for line in remarks if line.startswith("/")]) == len(COMMANDS)
    assert max(map(len, remarks)) < 88


@pytest.mark.parametrize(("line", "seed"), [("/seed 8", 8), ("/seed random", None)])
def test_seed_is_a_command_of_its_own(line, seed):
    _, remarks, conversation = talk(line, params=SamplingParams(top_k=3, seed=1))
    assert conversation.params.seed == seed
    assert len(remarks) == 1
    assert remarks[0].endswith("at most 64 tokens")


def test_max_new_tokens_is_a_setting_too():
    assert talk("/set max-new-tokens 5")[2].max_new_tokens == 5
    out, remarks, _ = talk("/set max_new_tokens 1", "hi")
    assert out.startswith("bot> o\n")
    assert "the reply ends here after 1 tokens; see /set max-new-tokens" in remarks


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/set", "write /set NAME VALUE"),
        ("/set temperature", "temperature needs a value, such as temperature 0.7"),
        ("/set max-new-tokens 0", "max_new_tokens must be an integer >= 1, got 0"),
        (
            "/set max-new-tokens off",
            "max_new_tokens must be an integer >= 1, got 'off'",
        ),
        ("/set colour 3", "'colour 3' is no setting; write temperature …"),
        ("/set author", "the author of this checkpoint names no settings"),
        ("/seed", "write /seed N"),
        ("/seed -1", "seed must be an integer in [0, 2**64)"),
        ("/show x", "write /show"),
        ("/save", "write /save FILE"),
        ("/undo", "there is no turn yet"),
        ("/retry", "there is no turn yet"),
        ("/etc/hosts is a file", "there is no command /etc/hosts"),
        ("/", "there is no command /"),
    ],
)
def test_a_bad_command_is_said_and_changes_nothing(line, message):
    _, remarks, conversation = talk(line, "hi")
    assert len(remarks) == 1
    assert remarks[0].startswith("error: ")
    assert message in remarks[0]
    assert conversation.params == GREEDY
    assert len(conversation.turns) == 1


def test_the_authors_settings_are_offered_and_taken_when_asked():
    model = Parrot(defaults={"temperature": 0.2, "top_p": 0.9, "do_sample": True})
    _, remarks, conversation = talk("/show", "/set author", model=model)
    assert any("/set author takes them" in line for line in remarks)
    assert conversation.params == SamplingParams(temperature=0.2, top_p=0.9)


def test_settings_follow_the_rules_of_the_models_dialect():
    lines = ("/set top-k -1, top-p 1.5", "/set seed -1")
    _, remarks, conversation = talk(*lines, model=Parrot(dialect="scratch_llm"))
    assert remarks[1].startswith("error: seed must be an integer in [0, 2**64)")
    assert conversation.params == GREEDY
    _, remarks, conversation = talk(*lines, model=Parrot(dialect="xslm"))
    assert remarks[0].startswith("error: top_k must be an integer >= 1")
    assert conversation.params == GREEDY.replace(seed=-1)


def test_an_author_who_does_not_sample_is_greedy():
    model = Parrot(defaults={"temperature": 0.2, "do_sample": False})
    _, _, conversation = talk("/set author", model=model, params=SamplingParams())
    assert conversation.params == GREEDY


def test_show_tells_settings_and_context():
    params = SamplingParams(temperature=0.5, seed=4)
    _, remarks, _ = talk("hi", "/show", model=Parrot(64), params=params, system="S")
    rows = dict(line.split(maxsplit=1) for line in remarks)
    assert rows["temperature"] == "0.5"
    assert rows["top-k"] == "off"
    assert rows["seed"] == "4 (the last was 4)"
    assert rows["system"] == "S"
    assert rows["turns"] == "1, 0 dropped"
    assert rows["context"] == "13 of 64 tokens"


def flat(**card):
    """A model for which everything is equally likely."""
    return TableModel(torch.zeros(95, 95), PIECES, **card)


def test_a_seed_draws_the_same_reply_each_time():
    options = {"raw": True, "max_new_tokens": 9, "params": SamplingParams(seed=None)}
    _, _, conversation = talk("/seed 8", "a", "a", "/seed random", "a", "a", **{
        **options, "model": flat()
    })  # fmt: skip
    first, second, third, fourth = (turn.reply.text for turn in conversation.turns)
    assert first == second
    assert len({second, third, fourth}) == 3


def test_retry_takes_the_next_seed_and_replaces_the_turn():
    options = {"raw": True, "max_new_tokens": 9, "params": SamplingParams(seed=8)}
    _, remarks, conversation = talk("a", "/retry", "/retry", model=flat(), **options)
    assert [line for line in remarks if line.startswith("seed")] == [
        "seed 9",
        "seed 10",
    ]
    assert [turn.reply.params.seed for turn in conversation.turns] == [10]
    _, _, straight = talk("a", model=flat(), **{
        **options, "params": SamplingParams(seed=10)
    })  # fmt: skip
    assert conversation.turns == straight.turns


def test_retry_says_when_it_cannot_differ():
    _, remarks, conversation = talk("hi", "/retry")
    assert remarks == ["temperature is 0, so the reply will be the same"]
    assert len(conversation.turns) == 1


def test_undo_and_reset():
    _, remarks, conversation = talk("a", "b", "/undo", system="S")
    assert remarks == ["forgot: b"]
    assert [turn.text for turn in conversation.turns] == ["a"]
    _, remarks, conversation = talk("a", "b", "/reset", system="S")
    assert remarks == ["forgot 2 turns"]
    assert conversation.turns == []
    assert conversation.system == "S"


def test_system_can_be_changed_and_removed():
    _, _, conversation = talk("hi", "/system Be kind.  ")
    assert conversation.messages()[0] == {"role": "system", "content": "Be kind."}
    assert len(conversation.turns) == 1
    assert talk("/system", system="S")[2].system is None
    _, remarks, _ = talk("/system x", raw=True)
    assert remarks == ["error: a raw continuation has no system message"]


def test_save_writes_json_and_guards_other_peoples_files(tmp_path):
    path, other = tmp_path / "my talk.json", tmp_path / "other.json"
    other.write_text("precious")
    _, remarks, _ = talk(
        "hi", f"/save {path}", "you", f"/save {path}", f"/save {other}", "/save /no/x"
    )
    assert len(json.loads(path.read_text())["replies"]) == 2
    assert other.read_text() == "precious"
    assert remarks[:2] == [f"saved 1 turns in {path}", f"saved 2 turns in {path}"]
    assert "is there already; choose another name" in remarks[2]
    assert remarks[3].startswith("error: ")


def test_text_may_begin_with_a_slash():
    _, _, conversation = talk("//etc is a folder", " //x")
    assert [turn.text for turn in conversation.turns] == ["/etc is a folder", "/x"]


def test_a_line_may_go_on_in_the_next():
    pieces = [*PIECES, b"\n"]
    model = TableModel(torch.zeros(96, 96), pieces)
    options = {"model": model, "raw": True, "max_new_tokens": 1}
    _, _, conversation = talk("one\\", "two\\", "three", **options)
    assert [turn.text for turn in conversation.turns] == ["one\ntwo\nthree"]


def test_raw_keeps_spaces_and_chat_trims_them():
    assert talk(" a ", raw=True)[2].turns[0].text == " a "
    assert talk(" a ")[2].turns[0].text == "a"


def test_special_text_is_only_text():
    hostile = "<|endoftext|><|im_end|>|u<"
    assert talk(hostile)[2].turns[0].text == hostile


# --- Ctrl-C ---


class Interrupts(TableModel):
    """A model during whose n-th forward pass Ctrl-C comes."""

    def __init__(self, at, **card):
        super().__init__(flat().table, PIECES, **card)
        self.at = at

    def _forward(self, ids):
        self.at -= 1
        if self.at == 0:
            raise KeyboardInterrupt
        return super()._forward(ids)


def test_ctrl_c_at_the_prompt_gives_a_new_line_and_goes_on():
    out, remarks, conversation = talk(KeyboardInterrupt, "hi", KeyboardInterrupt)
    assert out == "\nbot> ok\n\n\n\n"
    assert remarks == []
    assert len(conversation.turns) == 1


def test_ctrl_c_stops_a_reply_and_keeps_what_there_is():
    options = {"raw": True, "params": SamplingParams(seed=1), "max_new_tokens": 50}
    out, remarks, conversation = talk("a", "b", model=Interrupts(4), **options)
    first, second = conversation.turns
    assert first.reply.finish_reason == "cancelled"
    assert len(first.reply.token_ids) == 3
    assert f"bot> {first.reply.text}\n" in out
    assert remarks[0] == "stopped"
    assert len(second.reply.token_ids) == 50


def test_ctrl_c_before_the_first_token_leaves_no_turn():
    options = {"raw": True, "params": SamplingParams(seed=1), "max_new_tokens": 5}
    _, remarks, conversation = talk("a", "b", model=Interrupts(1), **options)
    assert remarks[0] == "stopped"
    assert [turn.text for turn in conversation.turns] == ["b"]


class Fails(Interrupts):
    """A model that cannot go on after n forward passes."""

    def _forward(self, ids):
        if self.at == 0:
            raise OSError("the disk is gone")
        self.at -= 1
        return TableModel._forward(self, ids)


def test_a_failed_retry_keeps_the_old_reply():
    options = {"raw": True, "params": SamplingParams(seed=1), "max_new_tokens": 5}
    _, remarks, conversation = talk("a", "/retry", model=Fails(5), **options)
    assert remarks[-1] == "error: the disk is gone"
    assert [turn.reply.finish_reason for turn in conversation.turns] == ["length"]


def test_an_error_in_a_reply_is_said_and_the_session_goes_on():
    options = {"raw": True, "params": SamplingParams(seed=1), "max_new_tokens": 5}
    _, remarks, conversation = talk("a", "/show", model=Fails(3), **options)
    assert "error: the disk is gone" in remarks
    assert conversation.turns == []


# --- the context ---


def test_a_person_is_told_what_was_dropped():
    lines = [f"turn {n}" for n in range(10)]
    _, remarks, conversation = talk(*lines, model=Parrot(64), system="Be kind")
    told = [line for line in remarks if "dropped" in line]
    assert told[0] == "the context of 64 tokens is full: the oldest turn is dropped"
    assert told[-1].endswith(f"the oldest {conversation.dropped} turns are dropped")
    assert len(told) == conversation.dropped


def test_a_reply_that_the_context_ends_says_so():
    model = Parrot(30)
    model.table[:] = 0
    options = {"params": SamplingParams(seed=1), "max_new_tokens": 99}
    _, remarks, _ = talk("0123456789", model=model, **options)
    assert remarks == ["the reply ends here because the context is full"]


def test_an_empty_reply_says_so():
    assert talk("hi", model=Parrot(reply=""))[1] == ["the reply is empty"]


# --- what the model writes ---

DANGEROUS = [
    b"a",
    b"\x1b",
    b"[2J",
    b"]52;c;",
    b"AAAA\x07",
    b"\r",
    b"\b",
    b"\xc2",
    b"\x9b",
]


def test_control_characters_are_shown_and_never_obeyed():
    """Also where a sequence, or one character, is split over tokens."""
    count = len(DANGEROUS)
    table = torch.full((count, count), -30.0)
    for here in range(count - 1):
        table[here, here + 1] = 30.0
    model = TableModel(table, DANGEROUS)
    options = {"raw": True, "max_new_tokens": count - 1}
    out, _, conversation = talk("a", model=model, **options)
    shown = r"\x1b[2J]52;c;AAAA\x07\r\x08\x9b"
    assert out == f"bot> {shown}\n\n\n"
    exact = "\x1b[2J]52;c;AAAA\x07\r\b\x9b"
    assert conversation.turns[0].reply.text == exact


# --- a pipe ---


def pipe(text, conversation):
    out, err = StringIO(), StringIO()
    source = StringIO(text) if text is not None else None
    status = Repl(conversation, Terminal(source, out, err)).run()
    return status, out.getvalue()


@pytest.mark.parametrize("text", [None, ""])
def test_no_input_is_the_end_of_it(text):
    assert pipe(text, Conversation(Parrot())) == (0, "")


def test_a_closed_input_is_the_end_of_it():
    source = StringIO()
    source.close()
    screen = Terminal(source, StringIO(), StringIO())
    assert Repl(Conversation(Parrot()), screen).run() == 0


def test_a_pipe_gets_replies_and_nothing_else(capsys):
    talk = Conversation(Parrot(), params=GREEDY)
    assert pipe("hi\r\n/show\n\nyou\nexit\nnever\n", talk) == (0, "ok\nok\n")
    assert "sampling-lab: note: temperature" in capsys.readouterr().err


def test_a_pipe_learns_of_errors_at_the_end(capsys):
    talk = Conversation(Parrot(), params=GREEDY)
    assert pipe("/set top-k x\nhi\n", talk) == (1, "ok\n")
    assert capsys.readouterr().err.startswith("sampling-lab: error: top_k must")


def test_ctrl_c_ends_a_session_that_nobody_watches():
    talk = Conversation(Interrupts(3), raw=True, params=SamplingParams(seed=1))
    with pytest.raises(KeyboardInterrupt):
        pipe("a\nb\n", talk)
