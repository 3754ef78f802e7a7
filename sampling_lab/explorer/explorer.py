"""The explorer: a model's next token under sliders, and the text it generates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..generation.branches import Branch, Tree
from ..generation.loop import Run
from ..generation.results import Generation
from ..models.base import Model, ModelCard, Prompt
from ..models.list_checkpoints import list_checkpoints
from ..sampling.one_thread import one_thread
from ..sampling.params import SamplingParams
from .controls.branch_list import BranchList
from .controls.export import Export, save_files
from .controls.fork import AlternativeTokens
from .controls.model_picker import ModelPicker
from .controls.prompt import PromptBox, count_box
from .explorer_widgets import ExplorerWidgets
from .panel.lab_widget import LabWidget
from .panel.parts import button
from .panel.player import RunPlayer, counted
from .panel.prompt_scorer import PromptScorer
from .pictures.picture_panel import BETWEEN_PICTURES, PicturePanel
from .pictures.static_image import Words
from .pictures.step_view import StepView
from .pictures.tab import Picture
from .presets import presets, starting_params
from .session import Session

BETWEEN_STREAMED = 0.1
"""Minimum seconds between redraws while streaming; more often slows generation."""

_ACTIONS = ("run", "explain", "code", "save", "branches", "model")
"""What a person asks for; the error of one is shown until the next."""


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
        parts: all widgets. Those that scripts use most are attributes here too:
            controls, tab, picture, title, caption, picker, prompt_box, prompt (its
            text box), max_new_tokens, strip, forks, branch_list, export, hint.
        panel: the controls and the picture.
        refresh: request a redraw from it.
        player: the run in progress or the last one.
        scorer: the scores of the prompt's tokens.

    Example:
        >>> explorer = Explorer("checkpoints/xslm/model.json", prompt="Q: hi\nA: ")
        >>> explorer.params = explorer.params.replace(temperature=0)
        >>> explorer.generate()
        >>> explorer.generation.text
        'hello.'
    """

    def __init__(
        self,
        model: Model | str | Path,
        *,
        prompt: str | None = None,
        params: SamplingParams | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        self.session = Session.open(model)  # first: a failure closes no earlier panel
        super().__init__()
        self._made_for: tuple[Any, ...] = ()
        self._notice = ""
        card = self.model.card
        params = params or starting_params(card)
        params = params.replace(dialect=params.dialect or card.dialect)
        self.panel = PicturePanel(
            self, self.redraw, params, card.vocab_size, presets(card)
        )
        self.refresh = self.panel.refresh
        self.parts = self._make_widgets(prompt, max_new_tokens)
        self._name_widgets()
        self.player = self._new_player()
        self.scorer = PromptScorer(
            self.loop,
            partial(self.run_showing_errors, what="score"),
            self.refresh.request,
        )
        self.picker.show(card.summary(), self.session.checkpoint)
        self.lay_out(*self.parts.layout())
        self.add_class("sampling-lab-wide")
        self.controls.observe(self._params_changed, "params")
        self.prompt_box.on_change(self._input_changed)
        self.max_new_tokens.observe(self._input_changed, "value")
        self.strip.observe(self._token_selected, "selected")
        self.strip.observe(self._prompt_mode_changed, "prompt")
        self._played()
        self.panel.draw_now()

    def _make_widgets(
        self, prompt: str | None, max_new_tokens: int | None
    ) -> ExplorerWidgets:
        loop, redraw, card = self.loop, self.refresh.request, self.model.card
        return ExplorerWidgets(
            panel=self.panel,
            picker=ModelPicker(loop, self.load_model, list_checkpoints()),
            prompt_box=PromptBox(self.model, prompt),
            max_new_tokens=count_box(max_new_tokens or card.default_max_new_tokens),
            generate_button=button(loop, self.generate, "Generate", "play"),
            step_button=button(loop, self.step, "Step", "step-forward"),
            stop_button=button(loop, self.stop, "Stop", "stop"),
            reset_button=button(loop, self.reset, "Reset", "undo"),
            forks=AlternativeTokens(loop, self.fork, self.explain, redraw),
            branch_list=BranchList(
                loop, self.go_to, self.remove, redraw, self.load_branches
            ),
            export=Export(loop, self.copy_code, self.save),
        )

    def _name_widgets(self) -> None:
        panel, made = self.panel, self.parts
        self.controls, self.tab, self.picture = panel.controls, panel.tab, panel.image
        self.title, self.caption = panel.title, panel.caption
        self.picker, self.prompt_box = made.picker, made.prompt_box
        self.prompt, self.max_new_tokens = made.prompt_box.text, made.max_new_tokens
        self.strip, self.forks, self.hint = made.strip, made.forks, made.hint
        self.branch_list, self.export = made.branch_list, made.export
        self.generate_button, self.step_button = made.generate_button, made.step_button
        self.stop_button, self.reset_button = made.stop_button, made.reset_button

    # What is shown

    @property
    def model(self) -> Model:
        """The loaded model."""
        return self.session.model

    @property
    def branches(self) -> Tree:
        """Every text since the last reset."""
        return self.session.branches

    @property
    def branch(self) -> Branch | None:
        """The text that is shown; None before the first."""
        return self.session.branch

    @property
    def generation(self) -> Generation | None:
        """The text that is shown, as far as it goes by now; None before the first."""
        return self.session.generation

    @property
    def params(self) -> SamplingParams:
        """The current parameters; setting them moves the controls."""
        return self.panel.params

    @params.setter
    def params(self, params: SamplingParams) -> None:
        self.panel.params = params

    @property
    def shown(self) -> Picture | None:
        """The picture on the screen, with its caption and the rows behind it."""
        return self.panel.shown

    @property
    def state(self) -> dict[str, Any]:
        """What is on the screen, as plain data."""
        generation = self.generation
        return {
            "model": self.model.card.name,
            "checkpoint": self.session.checkpoint,
            **self.parts.state(),
            "branch": self.branch.id if self.branch else None,
            "text": generation.text if generation else "",
            "token_ids": list(generation.token_ids) if generation else [],
            "finish_reason": generation.finish_reason if generation else None,
            "is_playing": self.player.is_playing,
            "problems": [problem for problem in self.problems() if problem],
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
        words = [Words("prompt", self.prompt.value), Words("text", text)]
        return self.panel.add_static_image(super()._repr_mimebundle_(**options), words)

    def _status(self) -> str:
        return self._notice or self.player.status() or "ready"

    def _subject(self) -> str:
        return self.model.card.name

    # What the buttons do

    def generate(self) -> None:
        """Run from the prompt to the end; one run at a time.

        In a notebook this returns at once and the tokens come in afterwards.
        """
        if not self.player.is_playing and self._act(self._start, "run"):
            self.player.play()

    def step(self) -> None:
        """Draw one token: the next one, or the first after a setting changed."""
        if not self.player.is_playing:
            self._act(self._step, "run")

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
        self.player.clear()
        self.session.reset()
        self._input_changed()

    def fork(self) -> None:
        """Take the chosen token at the selected step, and go on from there."""
        if not self.player.is_playing and self._act(self._start_fork, "run"):
            self.player.play()

    def explain(self) -> None:
        """Say why the chosen token was not drawn, and which settings draw it."""
        self._act(self._explain, "explain")

    def go_to(self, branch_id: int) -> None:
        """Show another branch; a run in progress ends."""
        if self.session.branch is None or branch_id != self.session.branch.id:
            self.player.stop("stopped: another branch is shown")
            if self._act(lambda: self.session.look_at(branch_id), "branches"):
                self._show_branch()

    def remove(self) -> None:
        """Remove the branch on the screen and all branches that fork from it."""
        self.player.stop("stopped: its branch is removed")
        self.session.remove()
        if self.session.branch is None:
            self.reset()
        else:
            self._show_branch()

    def copy_code(self) -> None:
        """Show code that reproduces the text on the screen, in the box below."""
        self.export.show_code("")
        self._act(lambda: self.export.show_code(self.code()), "code")

    def code(self, target: str | None = None) -> str:
        """Return code that reproduces the text; None is the selected target."""
        target = self.export.target.value if target is None else target
        return self.session.code(target, *self._settings())

    def save(self) -> None:
        """Save the picture, its table and all texts as files."""
        self._act(self._save, "save")

    def load_branches(self, content: bytes, name: str = "the file") -> None:
        """Replace all texts by those in a file that `save` wrote.

        Args:
            content: the bytes of its .json file.
            name: its name, for error messages.
        """
        self.player.stop("stopped: other branches are shown")
        load = partial(self.session.load, content, name)
        if self._act(load, "branches"):
            self._show_branch()

    def load_model(self, source: Model | str | Path) -> None:
        """Change the model; prompt and settings stay where they make sense.

        In a notebook this returns at once, before the model is loaded.
        """
        self.player.stop("stopped: another model is loaded")
        name = source.card.name if isinstance(source, Model) else str(source)
        if self._act(lambda: self.picker.show_loading(name), "model"):
            self.loop.post(lambda: self._change_model(source))

    def close(self) -> None:
        """End the run and remove the widgets."""
        if "scorer" in vars(self):  # else its __init__ raised an exception
            self.player.stop()
            self.scorer.stop()
        super().close()

    # How it is done

    def _act(self, action: Callable[[], None], what: str) -> bool:
        """Run what a person asked for; forget errors and notices of earlier actions."""
        self._forget()
        return self.run_showing_errors(action, what)

    def _forget(self) -> None:
        self._notice = ""
        for what in _ACTIONS:
            self.clear_error(what)

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
        index, token_id = self.strip.selected, self.forks.choice
        if index < 0 or token_id is None:
            return
        _, params, limit = self._settings()
        self.session.fork(index, token_id, params, limit)
        self._show_branch()

    def _explain(self) -> None:
        token_id = self.forks.choice
        if token_id is None:
            return
        prompt, params, _ = self._settings()
        with one_thread():
            why = self.session.explain(token_id, prompt, params, self.strip.selected)
        self.forks.show_why(why)

    def _show_branch(self) -> None:
        """Show the session's branch, and put its run into the player."""
        self._made_for = ()
        source = self.session.branch.source if self.session.branch else None
        if isinstance(source, Run):
            self.player.start(source)
        else:
            self.player.clear()  # a text from a file cannot go on
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
            if self._act(lambda: self._take_model(source), "model"):
                self.parts.fit(self.model, before)
                self._input_changed()
                self.picker.path.value = ""
                self._notice = _dropped(before, texts)
            self.picker.show(self.model.card.summary(), self.session.checkpoint)
            self._played()

    def _take_model(self, source: Model | str | Path) -> None:
        self.session = Session.open(source)
        self.player = self._new_player()
        self.scorer.stop()

    def _new_player(self) -> RunPlayer:
        guard = partial(self.run_showing_errors, what="run")
        return RunPlayer(self.model, self.loop, guard, self._played)

    def _played(self) -> None:
        """Follow the player: a token came, or playing began or ended."""
        playing = self.player.is_playing
        self.scorer.is_paused = playing
        self.parts.show_playing(playing)
        self.export.show_code("")  # the screen no longer shows that text
        self.refresh.interval = BETWEEN_STREAMED if playing else BETWEEN_PICTURES
        self.refresh.request()

    def _token_selected(self, change: dict[str, Any]) -> None:
        self.session.follows_newest, self.session.uses_current_settings = True, False
        self.refresh.request()

    def _prompt_mode_changed(self, change: dict[str, Any]) -> None:
        self.refresh.request()

    def _input_changed(self, change: dict[str, Any] | None = None) -> None:
        """Show the next token after the prompt; a run in progress ends."""
        self.strip.selected = -1
        self.session.follows_newest = False
        self._setting_changed()

    def _params_changed(self, change: dict[str, Any]) -> None:
        """Show the selected step under the new settings, else the next token."""
        if self.strip.selected < 0:
            self._input_changed()
        else:
            self.session.uses_current_settings = True
            self._setting_changed()

    def _setting_changed(self) -> None:
        self.player.stop("stopped: a setting changed")
        self._forget()
        self._played()

    def _settings(self) -> tuple[Prompt, SamplingParams, int]:
        return self.prompt_box.prompt(), self.params, self.max_new_tokens.value


def _dropped(card: ModelCard, texts: int) -> str:
    """Return a notice about the texts of a model that was replaced; "" for none."""
    if not texts:
        return ""
    dropped = counted(texts, "text")
    return f"dropped {dropped} of {card.name}; Save before a change keeps them"
