"""What an explorer is about, without widgets: a model's texts, and the one shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..counterfactuals import History, what_would_it_take
from ..errors import ParameterError, PromptError
from ..generation.branches import Tree
from ..generation.loop import Run, stream
from ..generation.results import Generation, Step
from ..models.base import Model, Prompt
from ..sampling.params import SamplingParams
from ..snippets import as_code
from ..snippets.forked import forked_code, shown_tokens
from .pictures.step_view import StepView, next_token_view, step_view


class Session:
    """A model, the texts it wrote as a tree, and which of them is looked at.

    Args:
        model: the loaded model.
        checkpoint: where it came from, as code is to name it; None asks the card.

    Attributes:
        branches: every text since the last reset.
        branch: the one that is looked at; None before the first.
        follows: whether the newest step is shown while none is selected; otherwise
            what is shown is the first token to come.
        asks_what_if: whether a selected step is shown under the settings there are
            now, instead of as it was.
    """

    def __init__(self, model: Model, checkpoint: str | Path | None = None) -> None:
        self.model = model
        self.checkpoint = str(checkpoint or _place(model))
        self.reset()

    def reset(self) -> None:
        """Forget every text."""
        self.branches, self.branch = Tree(), None
        self.follows_newest = self.uses_current_settings = False

    @property
    def generation(self) -> Generation | None:
        """The text that is looked at, as far as it goes by now."""
        return self.branch.generation if self.branch else None

    @property
    def steps(self) -> tuple[Step, ...]:
        """Its steps, that of a stop token too."""
        return self.generation.all_steps if self.branch else ()

    def start(self, prompt: Prompt, params: SamplingParams, limit: int) -> Run:
        """Begin a new text and look at it."""
        run = stream(self.model, prompt, params, max_new_tokens=limit)
        self.look_at(self.branches.add(run).id)
        return run

    def fork(
        self, index: int, token_id: int, params: SamplingParams, limit: int
    ) -> Run:
        """Take another token at a step of the text, and look at what comes of it.

        Raises:
            ParameterError: there is no text or no such step, or no room for it.
        """
        if self.branch is None:
            raise ParameterError("there is no text to fork; generate one first")
        branch = self.branches.fork(
            self.model, self.branch.id, index, token_id, params, max_new_tokens=limit
        )
        self.look_at(branch.id)
        return branch.source

    def look_at(self, branch_id: int) -> None:
        """Look at a text by its id."""
        self.branch = self.branches[branch_id]
        self.follows_newest, self.uses_current_settings = True, False

    def remove(self) -> None:
        """Remove the text that is looked at with all that left it; look at another."""
        if self.branch is None:
            return
        parent = self.branch.parent
        self.branches.remove(self.branch.id)
        rest = [branch.id for branch in self.branches]
        if rest:
            self.look_at(rest[-1] if parent is None else parent)
        else:
            self.reset()

    def adopt(self, tree: Tree) -> None:
        """Take up a tree from a file, in place of what there is.

        Raises:
            ParameterError: it is empty, or another model wrote it.
            PromptError: a token outside the vocabulary.
        """
        names = {branch.generation.model for branch in tree}
        if names != {self.model.card.name}:
            wrote = ", ".join(sorted(names)) or "nobody: it is empty"
            raise ParameterError(
                f"the branches must be of {self.model.card.name}, and were written by "
                f"{wrote}; choose that model first"
            )
        tree.attach(self.model)
        self.branches = tree
        self.look_at(max(branch.id for branch in tree))

    def view(self, prompt: Prompt, params: SamplingParams, selected: int) -> StepView:
        """Return what there is to see.

        Args:
            prompt: what a next run would continue.
            params: the settings there are now.
            selected: the index of a step; -1 for none.
        """
        generation = self.generation
        steps = generation.all_steps if generation else ()
        if 0 <= selected < len(steps):
            now = params if self.uses_current_settings else None
            return step_view(self.model, generation, steps[selected], now)
        if self.follows_newest and steps:
            return step_view(self.model, generation, steps[-1])
        ids = tuple(self.model.prompt_ids(prompt))
        history = History(ids, len(ids))
        ledger = params.chain(*history).ledger(self.model.logits(ids))
        title = "next token after the prompt"
        return next_token_view(
            ledger,
            self.model.token_text,
            params,
            title,
            history=history,
            steps=steps,
        )

    def explain(
        self, token_id: int, prompt: Prompt, params: SamplingParams, selected: int
    ) -> list[str]:
        """Return what became of a token at a step, and what the seed would need.

        Args:
            token_id: the token.
            prompt: as in `view`.
            params: as in `view`.
            selected: as in `view`.

        Returns:
            One sentence on what the chain does to it, and one on the settings that
            choose it, or on why none does.
        """
        view = self.view(prompt, params, selected)
        name = self.model.token_text(token_id)
        told = [f"{name}: {view.ledger.why(token_id)}"]
        if view.noise is None:
            return [*told, "the seed is drawn anew each run; set one to see its luck"]
        has_numbers = view.drawn is not None and view.drawn.has_numbers
        reach = what_would_it_take(
            view.ledger.raw_logits,
            view.params,
            token_id,
            drawn=view.drawn if has_numbers else None,
            history=view.history,
        )
        return [*told, reach.sentence(self.model.token_text)]

    def code(
        self, target: str, prompt: Prompt, params: SamplingParams, limit: int
    ) -> str:
        """Return code that gives the text looked at, or else the next run's.

        Args:
            target: as in `as_code`.
            prompt: what the box holds; where the text came from something else, the
                code has its token ids.
            params: the settings there are now; a text has its own.
            limit: tokens of a next run.

        Raises:
            ParameterError: the target cannot do it.
        """
        if self.branch is not None:
            generation, limit = self.generation, shown_tokens(self.branch)
            params = generation.params
            prompt = self._prompt_of(generation, prompt)
        if _is_chat(prompt) and target in ("cli", "llama.cpp"):
            prompt = self.model.prompt_ids(prompt)
        path = self.branches.path(self.branch.id) if self.branch else ()
        if len(path) < 2:
            return as_code(
                params,
                target,
                prompt=prompt,
                checkpoint=self.checkpoint,
                max_new_tokens=limit,
            )
        if target != "sampling_lab":
            raise ParameterError(
                f"code for {target} must be of a text that was not forked, and this "
                f"one was at step {path[-1].index + 1}; choose the notebook cell"
            )
        return forked_code(path, prompt, self.checkpoint)

    def _prompt_of(self, generation: Generation, typed: Prompt) -> Prompt:
        """Return what is typed if a text came from that, else its token ids."""
        try:
            is_same = tuple(self.model.prompt_ids(typed)) == generation.prompt_ids
        except PromptError:
            is_same = False
        return typed if is_same else generation.prompt_ids


def _is_chat(prompt: Prompt) -> bool:
    return not isinstance(prompt, str) and bool(prompt) and isinstance(prompt[0], dict)


def _place(model: Model) -> str:
    """Return where a model's files lie, as far as its card tells."""
    files: Sequence[Path] = model.card.files
    if not files:
        return model.card.name
    return str(files[0] if len(files) == 1 else files[0].parent)
