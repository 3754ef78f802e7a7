"""The explorer: a model's next token under sliders, and its text as it comes."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..branches import Branch, Tree
from ..generation import stream
from ..luck import History
from ..models import load
from ..models.base import Model, Prompt
from ..params import SamplingParams
from ..results import Generation, Step
from .board import button, group, line
from .controls import label
from .forks import Forks
from .inputs import count_box, example_prompt, prompt_box, typed_prompt
from .panel import BETWEEN_PICTURES, Panel
from .player import Player
from .strip import TokenStrip
from .view import View, first_view, step_view

BETWEEN_STREAMED = 0.1
"""Seconds between pictures of a stream; more would hold the tokens up."""


class Explorer(Panel):
    r"""A panel over one model: move a slider, see the distribution; generate, stop.

    The picture shows the next token after the prompt, and which one the seed draws;
    while text streams in it follows the newest step, until a setting changes. A token
    that is selected in the strip shows its own step instead, and any other token can
    be taken there: the text forks, and every branch can be gone back to.

    Args:
        model: a model, or what `load` takes.
        prompt: the text to begin with; None is an example that fits the model.
        params: the parameters to begin with.
        max_new_tokens: None is the model's own default.

    Attributes:
        model: the loaded model.
        prompt: the text box.
        max_new_tokens: the number box.
        strip: the prompt's tokens and the new ones; one of these can be selected.
        forks: the choice of another token at the selected step, and of a branch.
        branches: every text since the last reset.
        branch: the one on the screen; None before the first.
        player: the run under way or the last one.

    Example:
        >>> explorer = Explorer("checkpoints/xslm/model.json", prompt="Q: hi\nA: ")
        >>> explorer.params = explorer.params.replace(temperature=0)
        >>> explorer.generate()
        >>> explorer.generation.text
        'hello.'
    """

    player: Player | None = None

    def __init__(
        self,
        model: Model | str | Path,
        *,
        prompt: str | None = None,
        params: SamplingParams | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        self.model = model if isinstance(model, Model) else load(model)
        card = self.model.card
        self.prompt = prompt_box(
            example_prompt(self.model) if prompt is None else prompt
        )
        self.max_new_tokens = count_box(max_new_tokens or card.default_max_new_tokens)
        self.strip, self.branches = TokenStrip(), Tree()
        self.branch: Branch | None = None
        self._made_for: tuple[Any, ...] = ()
        self._shows_step = self._asks_what_if = False
        params = params or SamplingParams()
        super().__init__(
            params.replace(dialect=params.dialect or card.dialect), card.vocab_size
        )
        guard = partial(self.guard, what="run")
        self.player = Player(self.model, self.home, guard, self._played)
        self._arrange()
        self.prompt.observe(self._input_changed, "value")
        self.max_new_tokens.observe(self._input_changed, "value")
        self.strip.observe(self._token_selected, "selected")
        self._played()
        self.draw_first()

    @property
    def generation(self) -> Generation | None:
        """The text on the screen, as far as it goes by now; None before the first."""
        return self.branch.generation if self.branch else None

    def generate(self) -> None:
        """Run from the prompt to the end; one run at a time.

        In a notebook this returns at once and the tokens come in afterwards.
        """
        if not self.player.is_playing and self.guard(self._start, "run"):
            self.player.play()

    def step(self) -> None:
        """Draw one token: the next one, or the first after a setting changed."""
        if self.player.is_playing:
            return
        fits = self.player.is_open and self._made_for == self._settings()
        if fits or self.guard(self._start, "run"):
            self.guard(self.player.advance, "run")

    def stop(self) -> None:
        """End the run after the token it is at; what there is stays."""
        self.player.stop()

    def fork(self) -> None:
        """Take the chosen token at the selected step, and go on from there."""
        if not self.player.is_playing and self.guard(self._start_fork, "run"):
            self.player.play()

    def go_to(self, branch_id: int) -> None:
        """Show another branch; a run that is under way ends."""
        if self.branch is not None and branch_id != self.branch.id:
            self.player.stop("stopped: another branch is shown")
            self._show_branch(self.branches[branch_id])

    def remove(self) -> None:
        """Remove the branch on the screen with all that left it."""
        if self.branch is None:
            return
        self.player.stop("stopped: its branch is removed")
        parent = self.branch.parent
        self.branches.remove(self.branch.id)
        rest = [branch.id for branch in self.branches]
        if not rest:
            self.reset()
            return
        self._show_branch(self.branches[rest[-1] if parent is None else parent])

    def reset(self) -> None:
        """End the run, forget all texts and show the token after the prompt."""
        self.player.clear()
        self.branches, self.branch = Tree(), None
        self._input_changed()

    def close(self) -> None:
        """End the run and remove the widgets."""
        if self.player is not None:  # else it is a half-made panel's end
            self.player.stop()
        super().close()

    def view(self) -> View:
        """Return the selected or the newest step, else the first token to come."""
        step = self._step_shown()
        if step is not None:
            params = self.params if self._asks_what_if else None
            return step_view(self.model, self.generation, step, params)
        ids = tuple(self.model.prompt_ids(self._prompt()))
        history = History(ids, len(ids))
        ledger = self.params.chain(*history).ledger(self.model.logits(ids))
        return first_view(
            ledger,
            self.model.token_text,
            self.params,
            "next token after the prompt",
            history=history,
        )

    def redraw(self) -> None:
        """Draw the picture and show the text, at once."""
        self._show_text()
        super().redraw()

    def _start(self) -> None:
        settings = prompt, params, limit = self._settings()
        run = stream(self.model, prompt, params, max_new_tokens=limit)
        self._show_branch(self.branches.add(run))
        self._made_for = settings

    def _start_fork(self) -> None:
        index, token_id = self.strip.selected, self.forks.choice
        if self.branch is None or index < 0 or token_id is None:
            return
        _, params, limit = self._settings()
        self._show_branch(
            self.branches.fork(
                self.model,
                self.branch.id,
                index,
                token_id,
                params,
                max_new_tokens=max(limit, index + 1),
            )
        )

    def _show_branch(self, branch: Branch) -> None:
        """Put a branch on the screen and its run into the player."""
        self.branch, self._made_for = branch, ()
        self.player.start(branch.source)
        self.strip.selected, self._shows_step = -1, True
        self._asks_what_if = False
        self.forget_trouble("run")
        self.refresh.request()

    def _step_shown(self) -> Step | None:
        """Return the step of the selected token, or the newest while it is shown."""
        steps = self.generation.all_steps if self.branch else ()
        newest = steps[-1] if self._shows_step and steps else None
        return self._step_selected(steps) or newest

    def _token_selected(self, change: dict[str, Any]) -> None:
        self._shows_step, self._asks_what_if = True, False
        self.refresh.request()

    def _played(self) -> None:
        """Follow the player: a token came, or playing began or ended."""
        playing = self.player.is_playing
        self.generate_button.disabled = self.step_button.disabled = playing
        self.stop_button.disabled = not playing
        self.forks.disable(playing)
        self.refresh.interval = BETWEEN_STREAMED if playing else BETWEEN_PICTURES
        self.refresh.request()

    def _input_changed(self, change: dict[str, Any] | None = None) -> None:
        """Show what comes now; a run that was started for something else ends."""
        self.player.stop("stopped: a setting changed")
        self.strip.selected = -1
        self._shows_step = False
        self.forget_trouble("run")
        self.refresh.request()

    def _params_changed(self, change: dict[str, Any]) -> None:
        """Show what the settings make of the selected step, else of the first one."""
        if self.strip.selected < 0:
            self._input_changed(change)
            return
        self.player.stop("stopped: a setting changed")
        self._asks_what_if = True
        self.forget_trouble("run")
        self.refresh.request()

    def _settings(self) -> tuple[Prompt, SamplingParams, int]:
        return self._prompt(), self.params, self.max_new_tokens.value

    def _prompt(self) -> Prompt:
        return typed_prompt(self.model, self.prompt.value)

    # What is on the screen

    def _arrange(self) -> None:
        """Put the widgets together; each button is one method of this panel."""
        self.generate_button = button(self.home, self.generate, "Generate", "play")
        self.step_button = button(self.home, self.step, "Step", "step-forward")
        self.stop_button = button(self.home, self.stop, "Stop", "stop")
        self.reset_button = button(self.home, self.reset, "Reset", "undo")
        self.generate_button.button_style = "primary"
        buttons = [
            self.generate_button,
            self.step_button,
            self.stop_button,
            self.reset_button,
        ]
        self.forks = Forks(self.home, self.fork, self.go_to, self.remove)
        self.hint = line("hint")
        self.arrange(
            head=[line("card", html.escape(self.model.card.summary()))],
            inputs=[self.prompt],
            limits=[widgets.HBox([label("new tokens"), self.max_new_tokens])],
            below=[
                group(widgets.HBox, "buttons", buttons),
                self.hint,
                self.strip,
                self.forks,
            ],
        )

    def _show_text(self) -> None:
        result = self.generation
        steps = result.all_steps if result else ()
        self.strip.show(self.model, steps, result.prompt_ids if result else ())
        self.strip.forks = (
            list(self.branches.forks(self.branch.id)) if self.branch else []
        )
        self.forks.show(
            self.model, self.branches, self.branch, self._step_selected(steps)
        )
        if result is None:
            self.hint.value = "Generate runs to the end, Step draws one token."
        else:
            self.hint.value = "Select a token to see its step, and take another there."

    def _step_selected(self, steps: Sequence[Step]) -> Step | None:
        index = self.strip.selected
        return steps[index] if 0 <= index < len(steps) else None

    def _status(self) -> str:
        return self.player.status() or "ready"

    def _subject(self) -> str:
        return self.model.card.name
