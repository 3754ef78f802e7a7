"""The explorer: a model's next token under sliders, and its text as it comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..generation import saved_json
from ..generation.branches import Tree
from ..generation.loop import Run
from ..generation.results import Generation
from ..models import load
from ..models.base import Model, ModelCard, Prompt
from ..sampling.one_thread import one_thread
from ..sampling.params import SamplingParams
from .controls.export import save_files
from .controls.prompt import PromptBox, count_box
from .controls.token_strip import TokenStrip
from .explorer_widgets import ExplorerWidgets
from .panel.player import Player
from .panel.prompt_scorer import PromptScorer
from .pictures.picture_panel import BETWEEN_PICTURES
from .presets import carry_over, presets
from .session import Session

BETWEEN_STREAMED = 0.1
"""Seconds between pictures of a stream; more would hold the tokens up."""


_ACTIONS = ("run", "explain", "code", "save", "branches", "model")
"""What a person asks for; an error of one is shown until the next."""


class Explorer(ExplorerWidgets):
    r"""A panel over one model: move a slider, see the distribution; generate, stop.

    The picture shows the next token after the prompt, and which one the seed draws;
    while text streams in it follows the newest step, until a setting changes. A token
    that is selected in the strip shows its own step as it was, and then, when a
    setting changes, what that makes of it. Any other token can be taken there: the
    text forks, and every branch can be gone back to.

    Args:
        model: a model, or what `load` takes.
        prompt: the text to begin with; None is an example that fits the model.
        params: the parameters to begin with.
        max_new_tokens: None is the model's own default.

    Attributes:
        session: the model, its texts, and which of them is looked at.
        picker: the choice of another model.
        asks: the prompt with its mode and system line; `prompt` is its text box.
        max_new_tokens: the number box.
        strip: the prompt's tokens and the new ones; one of these can be selected.
        forks: the choice of another token at the selected step.
        branch_list: the choice of a text, and of one to hold beside it.
        export: code to copy and files to save.
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
        self.session = _session(model)
        card = self.model.card
        self.prompt_box = PromptBox(self.model, prompt)
        self.prompt = self.prompt_box.text
        self.max_new_tokens = count_box(max_new_tokens or card.default_max_new_tokens)
        self.strip = TokenStrip()
        self._made_for: tuple[Any, ...] = ()
        params = params or SamplingParams()
        super().__init__(
            params.replace(dialect=params.dialect or card.dialect),
            card.vocab_size,
            presets(card),
        )
        self.player = self._new_player()
        self.scorer = PromptScorer(
            self.home,
            partial(self.run_showing_errors, what="score"),
            self.refresh.request,
        )
        self._arrange()
        self.prompt_box.on_change(self._input_changed)
        self.max_new_tokens.observe(self._input_changed, "value")
        self.strip.observe(self._token_selected, "selected")
        self.strip.observe(self._asked_anew, "prompt")
        self._played()
        self.draw_first()

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
        """Wait for a run that is under way, and return the text on the screen.

        In a notebook, ``await explorer.finished()`` in the cell that began it.
        """
        await self.player.finished()
        self.draw_first()
        return self.generation

    def stop(self) -> None:
        """End the run after the token it is at; what there is stays."""
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
        """Tell why the chosen token was not drawn, and what it would take."""
        self._act(self._explain, "explain")

    def go_to(self, branch_id: int) -> None:
        """Show another branch; a run that is under way ends."""
        if self.session.branch is None or branch_id != self.session.branch.id:
            self.player.stop("stopped: another branch is shown")
            if self._act(lambda: self.session.look_at(branch_id), "branches"):
                self._show_branch()

    def remove(self) -> None:
        """Remove the branch on the screen with all that left it."""
        self.player.stop("stopped: its branch is removed")
        self.session.remove()
        if self.session.branch is None:
            self.reset()
        else:
            self._show_branch()

    def copy_code(self) -> None:
        """Put code that gives what is on the screen into the box below."""
        self.export.show_code("")
        self._act(lambda: self.export.show_code(self.code()), "code")

    def code(self, target: str | None = None) -> str:
        """Return code that gives what is on the screen; None is the target chosen."""
        target = self.export.target.value if target is None else target
        return self.session.code(target, *self._settings())

    def save(self) -> None:
        """Save the picture, its table and all texts as files."""
        self._act(self._save, "save")

    def load_branches(self, content: bytes, name: str = "the file") -> None:
        """Take up the texts in a file that `save` wrote, in place of those there are.

        Args:
            content: the bytes of its .json file.
            name: what an error calls it.
        """
        self.player.stop("stopped: other branches are shown")
        adopt = partial(self._adopt, content, name)
        if self._act(adopt, "branches"):
            self._show_branch()

    def load_model(self, source: Model | str | Path) -> None:
        """Take another model; prompt and settings stay where they make sense.

        In a notebook this returns at once, and the model is there a little later.
        """
        self.player.stop("stopped: another model is loaded")
        name = source.card.name if isinstance(source, Model) else str(source)
        if self._act(lambda: self.picker.show_loading(name), "model"):
            self.home.post(lambda: self._change_model(source))

    def close(self) -> None:
        """End the run and remove the widgets."""
        if self.player is not None:  # else it is a half-made panel's end
            self.player.stop()
            self.scorer.stop()
        super().close()

    # What follows

    def _act(self, action: Callable[[], None], what: str) -> bool:
        """Do what a person asked for; what was said of the last such thing is over."""
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
        if token_id is not None:
            prompt, params, _ = self._settings()
            with one_thread():
                told = self.session.explain(
                    token_id, prompt, params, self.strip.selected
                )
            self.forks.tell(told)

    def _show_branch(self) -> None:
        """Show the branch that is looked at, and put its run into the player."""
        self._made_for = ()
        source = self.session.branch.source
        if isinstance(source, Run):
            self.player.start(source)
        else:
            self.player.clear()  # a text from a file has ended
        self.strip.selected = -1
        self._forget()
        self._played()

    def _adopt(self, content: bytes, name: str) -> None:
        self.session.adopt(Tree.from_dict(saved_json.parse(content, name)))

    def _save(self) -> None:
        trace = self.branches.to_dict() if len(self.branches) else None
        png, _, table = self.shown
        name, folder = self.model.card.name, self.export.folder.value
        files = save_files(folder, name, png, table, trace)
        self._notice = f"saved {', '.join(map(str, files))}"

    def _change_model(self, source: Model | str | Path) -> None:
        """Load a model, and fit everything to it; after an error the old one stays."""
        before, texts = self.model.card, len(self.branches)
        with self.refresh.held():
            if self._act(lambda: self._take_model(source), "model"):
                self._fit(before)
                self.picker.path.value = ""
                self._notice = _dropped(before, texts)
            self.picker.show(self.model.card.summary(), self.session.checkpoint)
            self._played()

    def _take_model(self, source: Model | str | Path) -> None:
        self.session = _session(source)
        self.player = self._new_player()
        self.scorer.stop()

    def _fit(self, before: ModelCard) -> None:
        """Fit the widgets to the model in place of one that was there before."""
        card, params = self.model.card, self.params
        self.prompt_box.fit(self.model)
        if self.max_new_tokens.value == before.default_max_new_tokens:
            self.max_new_tokens.value = card.default_max_new_tokens
        self.controls.fit(card.vocab_size, presets(card))
        self.params = carry_over(params, before, card)
        self._input_changed()

    def _new_player(self) -> Player:
        guard = partial(self.run_showing_errors, what="run")
        return Player(self.model, self.home, guard, self._played)

    def _played(self) -> None:
        """Follow the player: a token came, or playing began or ended."""
        playing = self.player.is_playing
        self.show_playing(playing)
        self.export.show_code("")  # it was of what was on the screen before
        self.refresh.interval = BETWEEN_STREAMED if playing else BETWEEN_PICTURES
        self.refresh.request()

    def _token_selected(self, change: dict[str, Any]) -> None:
        self.session.follows_newest, self.session.uses_current_settings = True, False
        self.refresh.request()

    def _asked_anew(self, change: dict[str, Any] | None = None) -> None:
        """Show what the widgets ask for; nothing ends."""
        self.refresh.request()

    def _input_changed(self, change: dict[str, Any] | None = None) -> None:
        """Show what comes now; a run that was started for something else ends."""
        self.strip.selected = -1
        self.session.follows_newest = False
        self._setting_changed()

    def _params_changed(self, change: dict[str, Any]) -> None:
        """Show what the settings make of the selected step, else of the first one."""
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
    """Return what is told of the texts of a model that is no longer there."""
    if not texts:
        return ""
    those = "1 text" if texts == 1 else f"{texts} texts"
    return f"dropped {those} of {card.name}; Save before a change keeps them"


def _session(model: Model | str | Path) -> Session:
    if isinstance(model, Model):
        return Session(model)
    return Session(load(model), model)
