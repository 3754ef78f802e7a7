"""A tree of texts, each a run or a fork of another; saved in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..models.base import Model
from ..sampling.params import SamplingParams
from . import saved_json
from .guide import with_guide
from .loop import Run, fork
from .results import Generation, Step, first_difference, ledger_after

_FORMAT, _VERSION = "sampling_lab branches", 1
_FIELDS = ("id", "parent", "index", "token_id", "generation")


@dataclass(frozen=True, eq=False)
class Branch:
    """One text in a tree.

    Attributes:
        id: its number in the tree.
        parent: the id of the branch it was forked from; None for a text from the
            prompt on.
        index: the first step that it does not share with its parent.
        token_id: the token chosen there; None for a text from the prompt on.
        source: the run that generates it, or a finished generation.
    """

    id: int
    parent: int | None
    index: int
    token_id: int | None
    source: Run | Generation

    @property
    def generation(self) -> Generation:
        """The whole text from the prompt on, as far as it is generated."""
        source = self.source
        return source.generation if isinstance(source, Run) else source

    @property
    def label(self) -> str:
        """Where it was forked and the token chosen there: "step 3: ␣warm"."""
        if self.parent is None:
            return f"run {self.id}"
        steps = self.generation.all_steps[self.index :]
        chosen = steps[0].token_text if steps else f"⟨{self.token_id}⟩"
        return f"step {self.index + 1}: {chosen}"


@dataclass(frozen=True)
class Difference:
    """The first step at which two branches differ; None for one that has ended."""

    index: int
    first: Step | None
    second: Step | None


class Tree:
    r"""Branches by id, each a run from the prompt on or a fork of another branch.

    Example:
        >>> from sampling_lab import generate, load, SamplingParams
        >>> model = load("checkpoints/xslm/model.json")
        >>> tree, greedy = Tree(), SamplingParams(temperature=0)
        >>> root = tree.add(generate(model, "Q: hi\nA: ", greedy))
        >>> branch = tree.fork(model, root.id, 2, root.generation.token_ids[0])
        >>> _ = next(branch.source)
        >>> tree.breadcrumb(branch.id)
        ['run 1', 'step 3: he']
    """

    def __init__(self) -> None:
        self._branches: dict[int, Branch] = {}
        self._newest = 0

    def __len__(self) -> int:
        """Return how many branches there are."""
        return len(self._branches)

    def __iter__(self) -> Iterator[Branch]:
        """Go through the branches, every parent before its children."""
        return iter(tuple(self._branches.values()))

    def __contains__(self, branch_id: object) -> bool:
        """Return whether there is a branch with this id."""
        return branch_id in self._branches

    def __getitem__(self, branch_id: int) -> Branch:
        """Return a branch by its id.

        Raises:
            ParameterError: there is no such branch.
        """
        if branch_id not in self._branches:
            known = ", ".join(map(str, self._branches)) or "none yet"
            raise ParameterError(
                f"branch must be one of those in the tree ({known}), got {branch_id!r}"
            )
        return self._branches[branch_id]

    def add(self, source: Run | Generation) -> Branch:
        """Add a text from the prompt on: a run, finished or not, or a generation."""
        return self._keep(Branch(self._newest + 1, None, 0, None, source))

    def fork(
        self,
        model: Model,
        branch_id: int,
        index: int,
        token_id: int,
        params: SamplingParams | None = None,
        **options: Any,
    ) -> Branch:
        """Fork a branch; the new one's `source` is a run that starts at step `index`.

        Where the branch shares that step with its parent, or begins with it, the new
        branch becomes a child of the ancestor to which the step belongs.

        Args:
            model: the model that generated the branch.
            branch_id: the branch.
            index: the step to take another token at.
            token_id: that token.
            params: for what follows; None is the branch's own.
            options: as in `sampling_lab.fork`.
        """
        branch = self[branch_id]
        run = fork(model, branch.generation, index, token_id, params, **options)
        while branch.parent is not None and index <= branch.index:
            branch = self[branch.parent]
        return self._keep(Branch(self._newest + 1, branch.id, index, token_id, run))

    def path(self, branch_id: int) -> tuple[Branch, ...]:
        """Return the branches from the first ancestor down to this one."""
        path = [self[branch_id]]
        while path[0].parent is not None:
            path.insert(0, self[path[0].parent])
        return tuple(path)

    def breadcrumb(self, branch_id: int) -> list[str]:
        """Return the labels along `path`."""
        return [branch.label for branch in self.path(branch_id)]

    def children(self, branch_id: int | None = None) -> tuple[Branch, ...]:
        """Return the forks of a branch, oldest first; None gives the unforked texts."""
        return tuple(branch for branch in self if branch.parent == branch_id)

    def forks(self, branch_id: int) -> tuple[int, ...]:
        """Return the steps of a branch's text at which there is another branch.

        Other branches are forked from this text there, or it was forked from another.
        """
        path = self.path(branch_id)
        ends = [*(branch.index for branch in path[1:]), math.inf]
        indices = {
            child.index
            for branch, end in zip(path, ends, strict=True)
            for child in self.children(branch.id)
            if child.index <= end
        }
        return tuple(sorted(indices))

    def remove(self, branch_id: int) -> tuple[int, ...]:
        """Remove a branch with all its descendants; return the ids."""
        removed = [self[branch_id].id]
        for parent in removed:  # grows during the loop
            removed += [child.id for child in self.children(parent)]
        for gone in removed:
            del self._branches[gone]
        return tuple(removed)

    def compare(self, first: int, second: int) -> Difference | None:
        """Return the first step at which two branches have different tokens.

        A stop token counts. None means that they are the same to the end.
        """
        texts = self[first].generation, self[second].generation
        index = first_difference(*texts)
        if index is None:
            return None
        at_index = (text.all_steps[index : index + 1] for text in texts)
        return Difference(index, *(steps[0] if steps else None for steps in at_index))

    def attach(self, model: Model) -> None:
        """Give the steps of a tree from a file their ledgers again.

        Raises:
            PromptError: a token outside the model's vocabulary.
        """
        attached: dict[int, Branch] = {}
        for branch in self:
            above = attached[branch.parent].generation.steps if branch.parent else ()
            attached[branch.id] = _attach(model, branch, above)
        self._branches = attached

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON data; `from_dict` gives an equal tree."""
        branches = [
            {name: getattr(branch, name) for name in _FIELDS}
            | {"generation": branch.generation.to_dict()}
            for branch in self
        ]
        return {"format": _FORMAT, "version": _VERSION, "branches": branches}

    @classmethod
    def from_dict(cls, data: Any) -> Tree:
        """Return the tree that `to_dict` gave; a run is what it was at that time.

        Raises:
            ParameterError: anything else, in one sentence.
        """
        tree = cls()
        for entry in _entries(data):
            tree._keep(tree._read(entry))
        return tree

    def save(self, path: str | Path) -> None:
        """Write the tree as a JSON file, whole or not at all."""
        saved_json.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Tree:
        """Read the tree that `save` wrote; `attach` makes its ledgers available.

        Raises:
            ParameterError: no such file, or not a tree.
        """
        return cls.from_dict(saved_json.read(path))

    def _keep(self, branch: Branch) -> Branch:
        self._branches[branch.id] = branch
        self._newest = max(self._newest, branch.id)
        return branch

    def _read(self, entry: Any) -> Branch:
        """Return a branch from JSON data that fits the branches so far."""
        if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
            raise ParameterError(
                f"a saved branch must have {', '.join(sorted(_FIELDS))}, "
                f"got {str(entry)[:60]!r}"
            )
        entry = dict(entry)
        source = saved_json.read_generation(entry.pop("generation"))
        branch = Branch(**entry, source=source)
        if type(branch.id) is not int or branch.id < 1 or branch.id in self:
            raise ParameterError(
                f"id of a saved branch must be its own, from 1 on, got {branch.id!r}"
            )
        if not self._fits(branch):
            raise ParameterError(
                f"branch {branch.id} must be a fork of an earlier one: its parent, "
                "index, token_id and first tokens do not fit together"
            )
        return branch

    def _fits(self, branch: Branch) -> bool:
        """Return whether a branch is what its parent, index and token say."""
        index, generation = branch.index, branch.generation
        if type(index) is not int or index < 0:
            return False
        if branch.parent is None:
            return index == 0 and branch.token_id is None
        if type(branch.parent) is not int or branch.parent not in self:
            return False
        parent = self[branch.parent].generation
        shared = parent.prompt_ids + parent.token_ids[:index]
        ids = generation.prompt_ids + generation.token_ids
        own = [step.token_id for step in generation.all_steps[index:][:1]]
        return (
            index <= min(len(parent.token_ids), len(generation.token_ids))
            and ids[: len(shared)] == shared
            and type(branch.token_id) is int
            and own in ([], [branch.token_id])
        )


def _entries(data: Any) -> list[Any]:
    """Return the list of branches in the data of a file."""
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise ParameterError(
            f"this must be JSON of the format {_FORMAT!r}, "
            f"got {str(data)[:60]!r}; give a file that a tree saved"
        )
    version, entries = data.get("version"), data.get("branches")
    if type(version) is not int or version != _VERSION:
        raise ParameterError(
            f"version of a branches file must be {_VERSION}, got {version!r}; "
            "save it again with this version of the lab"
        )
    if not isinstance(entries, list):
        raise ParameterError(f"branches must be a list, got {str(entries)[:60]!r}")
    return entries


def _attach(model: Model, branch: Branch, above: Sequence[Step]) -> Branch:
    """Return a branch whose steps have ledgers; shared steps use their parent's."""
    if isinstance(branch.source, Run):
        return branch
    text = branch.source
    model.check_ids(text.history().token_ids)
    history = with_guide(model, text.params, text.history())

    def attached(step: Step) -> Step:
        if step.index < branch.index:
            return replace(step, _ledger=above[step.index]._ledger)
        length = history.prompt_length + step.index
        again = partial(ledger_after, model, text.params, history, length)
        return replace(step, _ledger=again)

    steps = tuple(map(attached, text.steps))
    stop_step = text.stop_step and attached(text.stop_step)
    return replace(branch, source=replace(text, steps=steps, stop_step=stop_step))
