"""The tree of branches: forks, paths, marks, comparing, removing, files."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab import SamplingParams, generate, stream
from sampling_lab.errors import ParameterError, PromptError, SamplingLabError
from sampling_lab.generation.branches import Tree
from tests.fakes import TableModel, letters

PARAMS = SamplingParams(temperature=0.9, seed=3, presence_penalty=0.2)


def grown(model: TableModel) -> Tree:
    """Return run 1, forked at 5 (branch 2) and 8 (3); 2 forked at 7 (4); and run 5."""
    tree = Tree()
    tree.add(generate(model, "ab", PARAMS, max_new_tokens=10))
    for parent, index, token_id in ((1, 5, 25), (1, 8, 24), (2, 7, 23)):
        tree.fork(model, parent, index, token_id).source.to_the_end()
    tree.add(generate(model, "ab", PARAMS.replace(seed=4), max_new_tokens=4))
    return tree


@pytest.fixture
def model() -> TableModel:
    return letters()


@pytest.fixture
def tree(model) -> Tree:
    return grown(model)


def test_branches_go_on_from_what_they_left(tree):
    root, branch, _, deep, _ = (branch.generation.token_ids for branch in tree)
    assert branch[:6] == (*root[:5], 25)
    assert deep[:8] == (*branch[:7], 23)
    assert all(len(ids) == 10 for ids in (root, branch, deep))


def test_a_branch_is_there_while_it_is_written(model):
    tree = Tree()
    run = stream(model, "ab", PARAMS, max_new_tokens=10)
    root = tree.add(run)
    assert root.generation.token_ids == ()
    next(run)
    next(run)
    branch = tree.fork(model, root.id, 1, 7)
    assert (branch.generation.token_ids, branch.label) == (
        run.generation.token_ids[:1],
        "step 2: ⟨7⟩",
    )
    assert next(branch.source).index == 1
    assert (len(branch.generation.steps), branch.label) == (2, "step 2: h")
    next(run)
    assert len(root.generation.steps) == 3


def test_the_breadcrumb_says_where_each_was_forked(tree):
    assert tree.breadcrumb(1) == ["run 1"]
    assert tree.breadcrumb(4) == ["run 1", "step 6: z", "step 8: x"]
    assert [branch.id for branch in tree.path(4)] == [1, 2, 4]
    assert [branch.id for branch in tree.children(1)] == [2, 3]
    assert [branch.id for branch in tree.children()] == [1, 5]


def test_marks_stand_where_a_text_was_forked(tree):
    assert tree.forks(1) == (5, 8)
    assert tree.forks(2) == (5, 7)  # 8 is after it left run 1
    assert tree.forks(3) == (5, 8)
    assert tree.forks(4) == (5, 7)
    assert tree.forks(5) == ()


def test_a_fork_hangs_where_its_step_belongs(model, tree):
    """A step that was taken over is its ancestor's, and so is the place of a choice."""
    assert tree.fork(model, 4, 2, 0).parent == 1
    assert tree.fork(model, 4, 5, 0).parent == 1  # a third way at step 5
    assert tree.fork(model, 4, 6, 0).parent == 2
    assert tree.fork(model, 4, 7, 0).parent == 2
    late = tree.fork(model, 4, 8, 0)
    assert late.parent == 4
    assert late.generation.token_ids == tree[4].generation.token_ids[:8]


def test_other_parameters_hold_from_the_fork_on(model, tree):
    branch = tree.fork(model, 1, 3, 9, SamplingParams(temperature=0), max_new_tokens=6)
    result = branch.source.to_the_end()
    assert result.steps[:3] == tree[1].generation.steps[:3]
    assert all(step.drawn.method == "greedy" for step in result.steps[4:])
    assert len(result.steps) == 6


def test_comparing_names_the_first_token_that_differs(model, tree):
    found = tree.compare(1, 4)
    assert (found.index, found.second.token_text) == (5, "z")
    assert found.first == tree[1].generation.steps[5]
    assert tree.compare(2, 4).index == 7
    assert tree.compare(3, 3) is None
    shorter = tree.add(generate(model, "ab", PARAMS, max_new_tokens=4))
    found = tree.compare(1, shorter.id)
    assert (found.index, found.first.index, found.second) == (4, 4, None)
    assert tree.compare(shorter.id, 1).first is None


def test_removing_takes_what_left_it_along(tree):
    assert tree.remove(2) == (2, 4)
    assert [branch.id for branch in tree] == [1, 3, 5]
    assert tree.forks(1) == (8,)
    assert 2 not in tree
    with pytest.raises(ParameterError, match=r"in the tree \(1, 3, 5\), got 4"):
        tree[4]
    assert tree.remove(5) == (5,)
    assert tree.add(tree[1].generation).id == 6  # an id is not used twice
    assert tree.remove(6) == (6,)
    assert tree.remove(1) == (1, 3)
    assert len(tree) == 0
    with pytest.raises(ParameterError, match="none yet"):
        tree.compare(1, 1)


def test_a_refused_fork_leaves_no_branch(model, tree):
    for bad in ((1, 99, 0), (1, 2, 26), (9, 0, 0)):
        with pytest.raises(SamplingLabError):
            tree.fork(model, *bad)
    assert [branch.id for branch in tree] == [1, 2, 3, 4, 5]


# Files


def outline(tree: Tree) -> list[tuple]:
    return [
        (branch.id, branch.parent, branch.index, branch.token_id, branch.generation)
        for branch in tree
    ]


def test_a_file_gives_the_same_tree(tree, tmp_path):
    path = tmp_path / "tree.json"
    tree.save(path)
    back = Tree.load(path)
    assert outline(back) == outline(tree)
    assert back.to_dict() == tree.to_dict()
    assert back.breadcrumb(4) == tree.breadcrumb(4)
    assert [file.name for file in tmp_path.iterdir()] == ["tree.json"]
    assert Tree.from_dict(Tree().to_dict()).to_dict() == Tree().to_dict()


def test_a_tree_from_a_file_grows_and_explains_itself(model, tree, tmp_path):
    tree.save(tmp_path / "tree.json")
    back = Tree.load(tmp_path / "tree.json")
    with pytest.raises(ParameterError, match="no model to ask"):
        back[4].generation.steps[0].ledger()
    other = letters()
    back.attach(other)
    assert outline(back) == outline(tree)
    for before, after in zip(tree, back, strict=True):
        for old, new in zip(
            before.generation.steps, after.generation.steps, strict=True
        ):
            assert torch.equal(old.ledger().final_probs, new.ledger().final_probs)
    assert other.forward_passes
    ids = (4, 9, 11)
    fresh, old = (t.fork(model, *ids).source.to_the_end() for t in (back, tree))
    assert fresh == old
    assert back.fork(model, *ids).id == 7


def test_shared_steps_keep_the_parameters_they_were_drawn_with(model, tree):
    tree.fork(model, 1, 3, 9, SamplingParams(top_k=2)).source.to_the_end()
    back = Tree.from_dict(tree.to_dict())
    back.attach(letters())
    counts = [step.ledger().kept_count for step in back[6].generation.steps]
    assert counts == [26] * 3 + [2] * 7
    assert counts == [step.kept_count for step in back[6].generation.steps]


def test_a_running_branch_is_saved_as_it_is_and_stays_a_run(model):
    tree = Tree()
    run = stream(model, "ab", PARAMS, max_new_tokens=10)
    tree.add(run)
    next(run)
    back = Tree.from_dict(tree.to_dict())
    assert back[1].generation == run.generation
    assert back[1].generation.finish_reason == "cancelled"
    tree.attach(model)
    assert tree[1].source is run


def test_a_tree_of_another_model_is_refused(tree):
    with pytest.raises(PromptError, match=r"must be in \[0, 3\)"):
        Tree.from_dict(tree.to_dict()).attach(TableModel(torch.zeros(3, 3)))


def test_saving_that_fails_leaves_the_file_as_it_was(tree, tmp_path, monkeypatch):
    path = tmp_path / "tree.json"
    tree.save(path)
    before = path.read_bytes()

    def fails(*paths):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="disk full"):
        Tree().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["tree.json"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\x80abc",
        b'{"version": NaN}',
        b"[" * 100_000,
        b"9" * 5_000,
        b"version https://git-lfs.github.com/spec/v1\n",
    ],
)
def test_what_is_no_json_is_refused_with_its_path(content, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=r"bad\.json is not a JSON file"):
        Tree.load(path)


def test_a_file_that_cannot_be_read_is_refused_with_its_path(tmp_path):
    with pytest.raises(ParameterError, match=r"gone\.json cannot be read: No such"):
        Tree.load(tmp_path / "gone.json")
    with pytest.raises(ParameterError, match="cannot be read: Is a directory"):
        Tree.load(tmp_path)


DATA = grown(letters()).to_dict()
FIRST = ("branches", 0, "generation")
STEP = (*FIRST, "steps", 3)
DRAWN = (*STEP, "drawn")
SECOND = ("branches", 1)
HOSTILE = {
    "format 'sampling_lab branches'": [("format", "sampling_lab trace")],
    **{
        f"version of a branches file must be 1, got {value!r}": [("version", value)]
        for value in (2, True, "1")
    },
    "branches must be a list": [("branches", {})],
    "a saved branch must have": [("branches", 0, 7), ("branches", 0, "extra", 7)],
    "id of a saved branch must be its own": [
        *((*SECOND, "id", value) for value in (1, True, []))
    ],
    "branch 2 must be a fork of an earlier one": [
        *((*SECOND, "parent", value) for value in (4, [], None)),
        *((*SECOND, "index", value) for value in (-1, 99, 6, None)),
        *((*SECOND, "token_id", value) for value in ("25", 24)),
        (*FIRST, "prompt_ids", [1, 2]),
    ],
    "branch 1 must be a fork": [("branches", 0, "token_id", 1)],
    "a generation must have the fields": [
        *((*FIRST, value) for value in (None, [])),
        *((*FIRST, "steps", value) for value in ({}, [7])),
        (*FIRST, "params", 3),
        (*FIRST, "params", "magic", 1),
        (*FIRST, "token_ids", "abcdefghij"),
        (*STEP, "extra", 7),
        (*STEP, "_ledger", "os.system"),
        (*STEP, "entropy", float("inf")),
        (*DRAWN, "race"),
        (*DRAWN, "_state", 1),
    ],
    "method of a saved draw must be str": [(*DRAWN, {"method": 7})],
    "uniform of a saved draw must be": [(*DRAWN, "uniform", "x")],
    "rank of a saved step must be int": [(*STEP, "rank", True)],
    "raw_prob of a saved step must be": [(*STEP, "raw_prob", "0.5")],
    "token_text of a saved step": [(*STEP, "token_text", ["<b>"])],
    "steps of a saved generation must be one": [
        *((*STEP, name, 4) for name in ("index", "token_id"))
    ],
    "prompt_ids of a saved generation must be": [(*FIRST, "prompt_ids", ["a"])],
    "text of a saved generation must be str": [(*FIRST, "text", None)],
    "temperature must be": [(*FIRST, "params", "temperature", -1)],
}


@pytest.mark.parametrize(
    ("damage", "problem"),
    [(damage, problem) for problem, rows in HOSTILE.items() for damage in rows],
)
def test_a_hostile_file_is_refused_in_one_sentence(damage, problem):
    data = at = copy.deepcopy(DATA)
    *path, last, value = damage
    for key in path:
        at = at[key]
    at[last] = value
    with pytest.raises(ParameterError, match=problem) as caught:
        Tree.from_dict(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [None, 7, "tree", [], [[]], {}, {"version": 1}])
def test_json_of_something_else_is_refused(data):
    with pytest.raises(ParameterError, match="give a file that a tree saved"):
        Tree.from_dict(data)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@given(st.data())
def test_any_damage_is_harmless_or_an_error_of_ours(data):
    """Whatever is put anywhere, it loads to what it says or is refused by name."""
    damaged = copy.deepcopy(DATA)
    at, parent, key = damaged, None, None
    while (
        isinstance(at, dict | list)
        and at
        and (parent is None or data.draw(st.booleans()))
    ):
        keys = sorted(at) if isinstance(at, dict) else range(len(at))
        key = data.draw(st.sampled_from(list(keys)))
        parent, at = at, at[key]
    parent[key] = data.draw(JUNK)
    try:
        tree = Tree.from_dict(damaged)
    except SamplingLabError:
        return
    assert tree.to_dict() == damaged
    json.dumps(tree.to_dict(), allow_nan=False)
    tree.attach(letters())
