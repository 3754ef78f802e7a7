"""An explorer's texts without widgets: which is looked at, and code for each."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from sampling_lab import SamplingParams, generate, load
from sampling_lab.errors import ParameterError, PromptError
from sampling_lab.explorer.session import Session
from sampling_lab.generation.branches import Tree
from tests.fakes import TableModel
from tests.helpers import ROOT, run_cell

XSLM = ROOT / "checkpoints/xslm/model.json"
PROMPT = "Q: is the sky blue?\nA: "
WARM = SamplingParams(temperature=2.5, seed=24)


@pytest.fixture
def session():
    return Session(load(XSLM), XSLM)


def ran(code: str) -> str:
    """Return what a cell prints."""
    return run_cell(code)[1]


def run(session, params=WARM, limit=12):
    session.start(PROMPT, params, limit).to_the_end()
    return session.generation


def fork(session, *where):
    session.fork(*where)
    session.branch.source.to_the_end()


def test_it_looks_at_the_newest_text_and_at_what_is_left_when_one_is_removed(session):
    first = run(session)
    second = run(session, replace(WARM, seed=12))
    assert session.generation is second or session.generation == second
    session.remove()
    assert session.generation == first
    session.remove()
    assert session.generation is None and session.steps == ()
    session.remove()  # there is nothing left, and nothing to complain of


def test_a_fork_without_a_text_says_what_to_do(session):
    with pytest.raises(ParameterError, match="generate one first"):
        session.fork(0, 1, WARM, 5)


def test_a_fork_beyond_the_limit_is_refused_and_nothing_is_lost(session):
    before = run(session)
    with pytest.raises(ParameterError, match="raise max_new_tokens"):
        session.fork(5, 30, WARM, 3)
    assert session.generation == before and len(session.branches) == 1


def test_code_for_a_cell_gives_the_text_that_is_looked_at(session):
    text = run(session).text
    code = session.code("sampling_lab", PROMPT, SamplingParams(), 3)
    assert repr(PROMPT) in code
    assert ran(code) == f"{text}\n"


def test_code_names_token_ids_where_the_prompt_has_changed(session):
    text = run(session).text
    for typed in ("Q: hi\nA: ", ""):
        code = session.code("sampling_lab", typed, SamplingParams(), 3)
        assert "Q: is" not in code and ran(code) == f"{text}\n"


def test_code_of_a_stopped_run_stops_where_it_stopped(session):
    source = session.start(PROMPT, WARM, 60)
    for _ in range(4):
        next(source)
    code = session.code("sampling_lab", PROMPT, SamplingParams(), 60)
    assert ran(code) == f"{session.generation.text}\n"


def test_code_of_a_forked_text_takes_the_same_other_tokens(session):
    run(session)
    fork(session, 2, 12, replace(WARM, temperature=1.5), 12)
    fork(session, 4, 20, WARM, 9)
    assert len(session.branches.path(session.branch.id)) == 3
    code = session.code("sampling_lab", PROMPT, SamplingParams(), 3)
    assert code.count("fork(") == 2
    assert ran(code) == f"{session.generation.text}\n"
    with pytest.raises(ParameterError, match="forked, and this one was at step 5"):
        session.code("transformers", PROMPT, SamplingParams(), 3)


def test_code_before_the_first_text_is_of_the_next_run(session):
    code = session.code("sampling_lab", PROMPT, WARM, 7)
    expected = generate(session.model, PROMPT, WARM, max_new_tokens=7).text
    assert ran(code) == f"{expected}\n"


def test_code_for_a_command_line_has_the_ids_of_a_chat(monkeypatch):
    model = TableModel(torch.zeros(4, 4), [b"a", b"b", b"c", b"d"], chat=True)
    monkeypatch.setattr(model, "chat_ids", lambda messages: [3, 1], raising=False)
    chat = [{"role": "user", "content": "a"}]
    session = Session(model)
    assert "--token-ids 3,1" in session.code("cli", chat, WARM, 4)
    assert "'role': 'user'" in session.code("sampling_lab", chat, WARM, 4)


def test_a_tree_from_a_file_is_taken_up_and_can_be_looked_into(session):
    run(session)
    fork(session, 2, 12, WARM, 12)
    text = session.generation
    again = Session(load(XSLM))
    again.adopt(Tree.from_dict(session.branches.to_dict()))
    assert again.generation == text
    view = again.view(PROMPT, WARM, 3)
    assert torch.equal(view.ledger.final_probs, text.steps[3].ledger().final_probs)
    assert view.chosen == text.steps[3].token_id
    run(again)
    assert len(again.branches) == 3


def test_a_tree_of_another_model_is_refused(session):
    other = TableModel(torch.zeros(2, 2), [b"a", b"b"])
    tree = Tree()
    tree.add(generate(other, "a", WARM, max_new_tokens=2))
    before = run(session)
    with pytest.raises(ParameterError, match="were written by table"):
        session.adopt(tree)
    with pytest.raises(ParameterError, match="it is empty"):
        session.adopt(Tree())
    assert session.generation == before


def test_a_tree_whose_tokens_the_model_lacks_changes_nothing(session):
    before = run(session)
    data = session.branches.to_dict()
    (entry,) = data["branches"]
    entry["generation"]["prompt_ids"][0] = 999
    with pytest.raises(PromptError, match="999"):
        session.adopt(Tree.from_dict(data))
    assert session.generation == before


def test_the_luck_of_a_text_from_a_file_is_that_of_its_seed():
    values = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    model = TableModel(values, [bytes([piece]) for piece in b"abcdef"])
    session = Session(model)
    session.start("ab", WARM, 8).to_the_end()
    luck = session.view("ab", WARM, 5).noise.exponentials
    session.adopt(Tree.from_dict(session.branches.to_dict()))
    assert torch.equal(session.view("ab", WARM, 5).noise.exponentials, luck)
