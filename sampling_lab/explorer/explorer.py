"""The explorer: a model's next token under sliders, and the text it generates."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..generation import saved_json
from ..generation.branches import Branch, Tree
from ..generation.loop import Run
from ..generation.results import Generation
from ..models.base import Model, Prompt
from ..sampling.one_thread import one_thread
from ..sampling.params import SamplingParams
from ..text import counted
from .controls.export import save_files
from .explorer_widgets import ExplorerWidgets
from .panel.lab_widget import LabWidget
from .panel.parts import part
from .panel.player import PromptScorer, RunPlayer
from .pictures.picture_panel import BETWEEN_PICTURES, PicturePanel
from .pictures.step_view import StepView
from .pictures.tab import Picture
from .presets import presets, starting_params
from .session import Session

BETWEEN_STREAMED = 0.1
"""Minimum seconds between redraws while streaming; more often slows generation."""


class Explorer(LabWidget):
    r"""A panel over one model: move a slider, see the distribution; generate, stop.

    The picture shows the next token after the prompt, and which one the seed draws;
    while text streams in it follows the newest step, until a setting changes. A token
    that is selected in the strip shows its own step as it was, and then, when a
    setting changes, the same step under that setting. Any other token can be taken
    there: the text forks, and every branch can be shown again.

    Args:
        model: a model, or what `load` takes.
        prompt: the first prompt; None is an example that fits the model.
        params: the first parameters.
        max_new_tokens: None is the model's own default.

    Attributes:
        session: the model, its texts, and which of them is shown.
        model: the loaded model.
        branches: every text since the last reset.
        branch: the text that is shown; None before the first.
        generation: the same, as far as it goes by now.
        panel: the controls and the picture. Its controls, tab, title and caption, its
            image as `picture`, and what follows here are attributes of this too.
        params: the current parameters; setting them moves the controls.
        shown: the picture on the screen, with its caption and the rows behind it.
        refresh: request a redraw from it.
        parts: the other widgets, each an attribute of this too.
        player: the run in progress or the last one.
        scorer: the scores of the prompt's tokens.

    Example:
        >>> explorer = Explorer("checkpoints/xslm/model.json", prompt="Q: hi\nA: ")
        >>> explorer.params = explorer.params.replace(temperature=0)
        >>> explorer.generate()
        >>> explorer.generation.text
        'hello.'
    """

    model: Model = part("session.model")
    branches: Tree = part("session.branches")
    branch: Branch | None = part("session.branch")
    generation: Generation | None = part("session.generation")
    params: SamplingParams = part("panel.params", settable=True)
    shown: Picture | None = part("panel.shown")

    def __init__(
        self,
        model: Model | str | Path,
        *,
        prompt: str | None = None,
        params: SamplingParams | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        self.session = Session(model)  # first: a failure closes no earlier panel
        super().__init__()
        self._made_for: tuple[Any, ...] = ()
        self._notice = ""
        card = self.model.card
        params = params or starting_params(card)
        params = params.replace(dialect=params.dialect or card.dialect)
        panel = PicturePanel(self, params, card.vocab_size, presets(card))
        self.panel, self.refresh = panel, panel.refresh
        self.controls, self.tab, self.picture = panel.controls, panel.tab, panel.image
        self.title, self.caption = panel.title, panel.caption
        self.parts = ExplorerWidgets(self, prompt, max_new_tokens)
        self.__dict__.update(vars(self.parts))
        guard = partial(self.run_showing_errors, what="run")
        self.player = RunPlayer(self.loop, guard, self._played)
        guard = partial(self.run_showing_errors, what="score")
        self.scorer = PromptScorer(self.loop, guard, self.refresh.request)
        self.picker.show(card.summary(), self.session.checkpoint)
        self.lay_out(*self.parts.layout())
        self.add_class("sampling-lab-wide")
        self.controls.observe(self._params_changed, "params")
        self.prompt_box.on_change(self._input_changed)
        self.max_new_tokens.observe(self._input_changed, "value")
        self.strip.observe(self._token_selected, "selected")
        self._played()
        panel.draw_now()

    # What is shown

    @property
    def state(self) -> dict[str, Any]:
        """What is on the screen, as plain data."""
        generation = self.generation
        return {
            "model": self.model.card.name,
            "checkpoint": self.session.checkpoint,
            "mode": self.prompt_box.mode.value,
            "system": self.prompt_box.system.value,
            "prompt": self.prompt.value,
            "params": self.params.to_dict(),
            "max_new_tokens": self.max_new_tokens.value,
            "tab": self.tab.value,
            "title": html.unescape(self.title.value),
            "caption": html.unescape(self.caption.value),
            "selected": self.strip.selected,
            "measure": self.strip.measure,
            "branch": self.branch.id if self.branch else None,
            "text": generation.text if generation else "",
            "token_ids": list(generation.token_ids) if generation else [],
            "finish_reason": generation.finish_reason if generation else None,
            "is_playing": self.player.is_playing,
            "problems": self.problems(),
        }

    def view(self) -> StepView:
        """Return the selected or the newest step, else the next token to come."""
        selected = self.strip.selected
        return self.session.view(self.prompt_box.prompt(), self.params, selected)

    def redraw(self) -> None:
        """Show the text and draw the picture, at once."""
        self.parts.show_text(self.session, self.scorer, self.player.is_playing)
        self.panel.show(self.view())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        text = self.generation.text if self.generation else ""
        bundle = super()._repr_mimebundle_(**options)
        return self.panel.add_static_image(bundle, prompt=self.prompt.value, text=text)

    def _status(self) -> str:
        return self._notice or self.player.status() or "ready"

    def _subject(self) -> str:
        return self.model.card.name

    # What the buttons do

    def generate(self) -> None:
        """Run from the prompt to the end; one run at a time.

        In a notebook this returns at once and the tokens come in afterwards.
        """
        if not self.player.is_playing and self._act(self._start):
            self.player.play()

    def step(self) -> None:
        """Draw one token: the next one, or the first after a setting changed."""
        if not self.player.is_playing:
            self._act(self._step)

    async def finished(self) -> Generation | None:
        """Wait for the run in progress, and return the text on the screen.

        In a notebook, ``await explorer.finished()`` in the cell that began it.
        """
        await self.player.finished()
        self.panel.draw_now()
        return self.generation

    def stop(self) -> None:
        """End the run after the token it is at; the text so far stays."""
        self.player.stop()

    def reset(self) -> None:
        """Forget all text; the settings stay."""
        self.session.reset()
        self._show_branch()

    def fork(self) -> None:
        """Take the chosen token at the selected step, and go on from there."""
        is_ready = self.forks.choice is not None and not self.player.is_playing
        if is_ready and self._act(self._start_fork):
            self.player.play()

    def explain(self) -> None:
        """Say why the chosen token was not drawn, and which settings draw it."""
        if self.forks.choice is not None:
            self._act(self._explain)

    def go_to(self, branch_id: int) -> None:
        """Show another branch; a run in progress ends."""
        is_shown = self.branch is not None and self.branch.id == branch_id
        if not is_shown and self._act(lambda: self.session.look_at(branch_id)):
            self._show_branch()

    def remove(self) -> None:
        """Remove the branch on the screen and all branches that fork from it."""
        self.session.remove()
        self._show_branch()

    def copy_code(self) -> None:
        """Show code that reproduces the text on the screen, in the box below."""
        self.export.show_code("")
        self._act(lambda: self.export.show_code(self.code()))

    def code(self, target: str | None = None) -> str:
        """Return code that reproduces the text; None is the selected target."""
        target = self.export.target.value if target is None else target
        return self.session.code(target, *self._settings())

    def save(self) -> None:
        """Save the picture, its table and all texts as files."""
        self._act(self._save)

    def load_branches(self, content: bytes, name: str = "the file") -> None:
        """Replace all texts by those in a file that `save` wrote.

        Args:
            content: the bytes of its .json file.
            name: its name, for error messages.
        """
        read = partial(saved_json.parse, content, name)
        if self._act(lambda: self.session.adopt(Tree.from_dict(read()))):
            self._show_branch()

    def load_model(self, source: Model | str | Path) -> None:
        """Change the model; prompt and settings stay where they make sense.

        In a notebook this returns at once, before the model is loaded.
        """
        self.player.stop("stopped: another model is loaded")
        name = source.card.name if isinstance(source, Model) else str(source)
        if self._act(lambda: self.picker.show_loading(name)):
            self.loop.post(lambda: self._change_model(source))

    # How it is done

    def _act(self, action: Callable[[], None]) -> bool:
        """Run what a person asked for; forget errors and notices of earlier actions."""
        self._forget()
        return self.run_showing_errors(action)

    def _forget(self) -> None:
        self._notice = ""
        self.clear_error("action")
        self.clear_error("run")

    def _step(self) -> None:
        if not self.player.is_open or self._made_for != self._settings():
            self._start()
        self.player.advance()

    def _start(self) -> None:
        settings = self._settings()
        self.session.start(*settings)
        self._show_branch()
        self._made_for = settings

    def _start_fork(self) -> None:
        _, params, limit = self._settings()
        self.session.fork(self.strip.selected, self.forks.choice, params, limit)
        self._show_branch()

    def _explain(self) -> None:
        with one_thread():
            why = self.session.explain(self.view(), self.forks.choice)
        self.forks.show_why(why)

    def _show_branch(self) -> None:
        """Show the session's branch, and put its run into the player.

        A run in progress ends, and that of the other branch does not go on by itself.
        """
        self._made_for, was_playing = (), self.player.is_playing
        source = self.session.branch.source if self.session.branch else None
        if isinstance(source, Run):
            self.player.start(source)
        else:
            self.player.clear()  # there is none, or it is from a file
        if was_playing:
            self.player.stop("stopped: another text is shown")
        self.strip.selected = -1
        self._forget()
        self._played()

    def _save(self) -> None:
        if self.shown is None:
            raise ParameterError("there is no picture to save; correct the settings")
        trace = self.branches.to_dict() if len(self.branches) else None
        name, folder = self.model.card.name, self.export.folder.value
        files = save_files(folder, name, self.shown.png, self.shown.table, trace)
        self._notice = f"saved {', '.join(map(str, files))}"

    def _change_model(self, source: Model | str | Path) -> None:
        """Load a model and fit everything to it; after an error the old one stays."""
        before, texts = self.model.card, len(self.branches)
        with self.refresh.held():
            if self._act(lambda: self._take_model(source)):
                self.parts.fit(self.model, before)
                self._input_changed()
                self.picker.path.value = ""
                if texts:
                    dropped = f"{counted(texts, 'text')} of {before.name}"
                    self._notice = f"dropped {dropped}; Save before a change keeps them"
            self.picker.show(self.model.card.summary(), self.session.checkpoint)
            self._played()

    def _take_model(self, source: Model | str | Path) -> None:
        self.session = Session(source)
        self.player.clear()
        self.scorer.stop()

    def _played(self) -> None:
        """Follow the player: a token came, or playing began or ended."""
        playing = self.player.is_playing
        self.scorer.is_paused = playing
        self.parts.show_playing(playing)
        self.export.show_code("")  # the screen no longer shows that text
        self.refresh.interval = BETWEEN_STREAMED if playing else BETWEEN_PICTURES
        self.refresh.request()

    def _token_selected(self, change: dict[str, Any]) -> None:
        self.session.uses_current_settings = False
        self.refresh.request()

    def _input_changed(self, change: dict[str, Any] | None = None) -> None:
        """Show the next token after the prompt; a run in progress ends."""
        self.strip.selected = -1
        self._params_changed()

    def _params_changed(self, change: dict[str, Any] | None = None) -> None:
        """Show the selected step under the new settings, else the next token."""
        self.session.uses_current_settings = True
        self.player.stop("stopped: a setting changed")
        self._forget()
        self._played()

    def _settings(self) -> tuple[Prompt, SamplingParams, int]:
        return self.prompt_box.prompt(), self.params, self.max_new_tokens.value
