"""What an explorer shows and where it stands, whatever its buttons do."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets as widgets

from ..generation.branches import Branch, Tree
from ..generation.results import Generation
from ..models.base import Model
from ..models.list_checkpoints import list_checkpoints
from .controls.branch_list import BranchList
from .controls.export import Export
from .controls.fork import AlternativeTokens
from .controls.model_picker import ModelPicker
from .controls.prompt import PromptBox
from .controls.slider_with_box import label
from .controls.token_strip import TokenStrip
from .panel.lab_widget import button, html_line, named_box
from .panel.player import Player
from .panel.prompt_scorer import PromptScorer
from .pictures.compare_html import STYLE
from .pictures.picture_panel import PicturePanel
from .pictures.static_image import Words
from .pictures.step_view import StepView
from .session import Session


class ExplorerWidgets(PicturePanel):
    """A panel over the texts of a model.

    A subclass has a method for each button, as `_arrange` names them.

    Attributes:
        session: the model, its texts, and which of them is looked at.
    """

    session: Session
    prompt_box: PromptBox
    max_new_tokens: widgets.BoundedIntText
    strip: TokenStrip
    player: Player
    scorer: PromptScorer
    _notice = ""

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
        """The one on the screen; None before the first."""
        return self.session.branch

    @property
    def generation(self) -> Generation | None:
        """The text on the screen, as far as it goes by now; None before the first."""
        return self.session.generation

    @property
    def state(self) -> dict[str, Any]:
        """What is on the screen, as plain data."""
        generation = self.generation
        return {
            "model": self.model.card.name,
            "checkpoint": self.session.checkpoint,
            "mode": self.prompt_box.mode.value,
            "system": self.prompt_box.system.value,
            "prompt": self.prompt_box.text.value,
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
            "problems": [problem for problem in self.problems() if problem],
        }

    def view(self) -> StepView:
        """Return the selected or the newest step, else the first token to come."""
        selected = self.strip.selected
        return self.session.view(self.prompt_box.prompt(), self.params, selected)

    def redraw(self) -> None:
        """Draw the picture and show the text, at once."""
        self._show_text()
        super().redraw()

    def _show_text(self) -> None:
        # Of a run under way each asking makes it anew, its whole text decoded.
        branch, generation = self.branch, self.generation
        steps = generation.all_steps if generation else ()
        ids = self._ids_shown(generation)
        if self.strip.prompt != "scored":
            self.scorer.stop()
        elif not self.player.is_playing:  # two prefixes would push out each other
            self.scorer.ask(self.model, ids, self.params)
        shown = ids if self.strip.prompt != "hidden" else ()
        self.strip.show(self.model, steps, shown, self.scorer.scores)
        self.strip.forks = list(self.branches.forks(branch.id)) if branch else []
        selected = self.strip.selected
        step = steps[selected] if 0 <= selected < len(steps) else None
        self.forks.show(self.model, step)
        self.branch_list.show(self.branches, branch)
        if branch is None:
            self.hint.value = "Generate runs to the end, Step draws one token."
        else:
            self.hint.value = "Select a token to see its step, and take another there."

    def _ids_shown(self, generation: Generation | None) -> tuple[int, ...]:
        """Return the prompt's tokens: those of the text, or of the next run."""
        if generation is not None:
            return generation.prompt_ids
        return tuple(self.model.prompt_ids(self.prompt_box.prompt()))

    def paragraphs(self) -> list[Words]:
        """Return what a still is to say: the text, and what it continues."""
        text = self.generation.text if self.generation else ""
        prompt = self.prompt_box.text.value
        return [*super().paragraphs(), Words("prompt", prompt), Words("text", text)]

    def _status(self) -> str:
        return self._notice or self.player.status() or "ready"

    def _subject(self) -> str:
        return self.model.card.name

    def _arrange(self) -> None:
        """Put the widgets together; each button is one method."""
        home = self.home
        self.generate_button = button(home, self.generate, "Generate", "play")
        self.step_button = button(home, self.step, "Step", "step-forward")
        self.stop_button = button(home, self.stop, "Stop", "stop")
        self.reset_button = button(home, self.reset, "Reset", "undo")
        self.generate_button.button_style = "primary"
        self.picker = ModelPicker(home, self.load_model, list_checkpoints())
        self.forks = AlternativeTokens(
            home, self.fork, self.explain, self.refresh.request
        )
        self.branch_list = BranchList(
            home, self.go_to, self.remove, self.refresh.request, self.load_branches
        )
        self.export = Export(home, self.copy_code, self.save)
        self.hint = html_line("hint")
        buttons = [
            self.generate_button,
            self.step_button,
            self.stop_button,
            self.reset_button,
        ]
        self.picker.show(self.model.card.summary(), self.session.checkpoint)
        self.add_class("sampling-lab-wide")
        self.arrange(
            head=[widgets.HTML(STYLE), self.picker, self.prompt_box],
            actions=[
                widgets.HBox([label("new tokens"), self.max_new_tokens]),
                named_box(widgets.HBox, "buttons", buttons),
                self.hint,
            ],
            below=[
                self.strip,
                self.forks,
                self.branch_list,
                self.export,
            ],
        )

    def show_playing(self, playing: bool) -> None:
        """Let nothing be chosen while tokens come in, but Stop."""
        self.scorer.pause(playing)
        self.generate_button.disabled = self.step_button.disabled = playing
        self.stop_button.disabled = not playing
        for part in (self.forks, self.branch_list, self.picker):
            part.disable(playing)
