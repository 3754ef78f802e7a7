"""The explorer without widgets: a model's texts, and which of them is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..counterfactuals import History, what_would_it_take
from ..errors import ParameterError, PromptError
from ..generation.branches import Branch, Tree
from ..generation.guide import with_guide
from ..generation.loop import Run, stream
from ..generation.results import Generation
from ..models import load
from ..models.base import Model, Prompt
from ..sampling.params import SamplingParams
from ..snippets import as_code
from ..snippets.forked import forked_code, shown_tokens
from .pictures.step_view import StepView, next_token_view, step_view


class Session:
    """A model, the texts it wrote as a tree, and which of them is shown.

    Args:
        model: a model, or what `load` takes.
        checkpoint: its path or name, for code; None is that of `model`.

    Attributes:
        branches: every text since the last reset.
        branch: the text that is shown; None before the first.
        uses_current_settings: whether the selected step, or else the next token after
            the prompt, is shown under the current settings, instead of the selected or
            the newest step as it was.
    """

    def __init__(
        self, model: Model | str | Path, checkpoint: str | Path | None = None
    ) -> None:
        self.model = model if isinstance(model, Model) else load(model)
        self.checkpoint = str(checkpoint or _location(model))
        self.reset()

    def reset(self) -> None:
        """Forget every text."""
        self.branches = Tree()
        self.branch: Branch | None = None
        self.uses_current_settings = True

    @property
    def generation(self) -> Generation | None:
        """The text that is shown, as far as it goes by now."""
        return self.branch.generation if self.branch else None

    def start(self, prompt: Prompt, params: SamplingParams, limit: int) -> Run:
        """Begin a new text and show it."""
        run = stream(self.model, prompt, params, max_new_tokens=limit)
        self.look_at(self.branches.add(run).id)
        return run

    def fork(
        self, index: int, token_id: int, params: SamplingParams, limit: int
    ) -> None:
        """Take another token at a step of the text, and show the new branch.

        Raises:
            ParameterError: there is no text, no such step, or no room for it.
        """
        if self.branch is None:
            raise ParameterError("there is no text to fork; generate one first")
        branch = self.branches.fork(
            self.model, self.branch.id, index, token_id, params, max_new_tokens=limit
        )
        self.look_at(branch.id)

    def look_at(self, branch_id: int) -> None:
        """Show a text by its id."""
        self.branch = self.branches[branch_id]
        self.uses_current_settings = False

    def remove(self) -> None:
        """Remove the text that is shown and all its forks; show another."""
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
        """Replace all texts by those of a tree that was read from a file.

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
        """Return the selected or the newest step, else the next token to come.

        Args:
            prompt: what a next run would continue.
            params: the current settings.
            selected: the index of a step; -1 for none.
        """
        generation = self.generation
        steps = generation.all_steps if generation else ()
        if generation and 0 <= selected < len(steps):
            now = params if self.uses_current_settings else None
            return step_view(self.model, generation, steps[selected], now)
        if generation and steps and not self.uses_current_settings:
            return step_view(self.model, generation, steps[-1])
        ids = tuple(self.model.prompt_ids(prompt))
        history = History(ids, len(ids), self.model.card.stop_token_ids)
        history = with_guide(self.model, params, history)
        ledger = params.chain(*history).ledger(self.model.logits(ids))
        title = "next token after the prompt"
        text = self.model.token_text
        return next_token_view(
            ledger, text, params, title, history=history, steps=steps
        )

    def explain(self, view: StepView, token_id: int) -> list[str]:
        """Explain why a token was not drawn at a step, and which settings draw it.

        Returns:
            One sentence about what the chain does to the token, and one about the
            settings that choose it, or why none does.
        """
        name = self.model.token_text(token_id)
        sentences = [f"{name}: {view.ledger.why(token_id)}"]
        if view.noise is None:
            unknown = "each run draws a new seed; set one to see what it chooses"
            return [*sentences, unknown]
        has_numbers = view.drawn is not None and view.drawn.has_numbers
        needed = what_would_it_take(
            view.ledger.raw_logits,
            view.params,
            token_id,
            drawn=view.drawn if has_numbers else None,
            history=view.history,
        )
        return [*sentences, needed.sentence(self.model.token_text)]

    def code(
        self, target: str, prompt: Prompt, params: SamplingParams, limit: int
    ) -> str:
        """Return code that reproduces the text that is shown, else the next run.

        Args:
            target: as in `as_code`.
            prompt: the prompt in the box; if the text began with another one, the
                code has its token ids.
            params: the current settings; a text has its own.
            limit: the maximum number of tokens of a next run.

        Raises:
            ParameterError: the target cannot express it.
        """
        if self.branch is not None:
            generation, limit = self.branch.generation, shown_tokens(self.branch)
            params = generation.params
            prompt = self._prompt_of(generation, prompt)
        if target in ("cli", "llama.cpp") and not isinstance(prompt, str):
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
        """Return the typed prompt if a text began with it, else the token ids."""
        try:
            is_same = tuple(self.model.prompt_ids(typed)) == generation.prompt_ids
        except PromptError:
            is_same = False
        return typed if is_same else generation.prompt_ids


def _location(source: Model | str | Path) -> str | Path:
    """Return the path of a model's files, or its name if its card has none."""
    if not isinstance(source, Model):
        return source
    files: Sequence[Path] = source.card.files
    if not files:
        return source.card.name
    return files[0] if len(files) == 1 else files[0].parent
