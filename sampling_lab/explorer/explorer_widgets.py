"""Widgets and layout of the explorer; explorer.py adds the actions."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ipywidgets as widgets

from ..generation.results import Generation
from ..models.base import Model, ModelCard
from .controls.branch_list import BranchList
from .controls.export import Export
from .controls.fork import AlternativeTokens
from .controls.model_picker import ModelPicker
from .controls.prompt import PromptBox
from .controls.slider_with_box import label
from .controls.token_strip import TokenStrip
from .panel.parts import html_line, named_box
from .panel.prompt_scorer import PromptScorer
from .pictures.compare_html import STYLE
from .pictures.picture_panel import PicturePanel
from .presets import carry_over, presets
from .session import Session


@dataclass
class ExplorerWidgets:
    """All widgets of an explorer.

    Attributes:
        panel: the controls and the picture.
        picker: the choice of another model.
        prompt_box: the prompt with its mode and system message.
        max_new_tokens: the number box.
        generate_button: draws tokens to the end.
        step_button: draws one token.
        stop_button: ends a run.
        reset_button: forgets all text.
        strip: the tokens of the prompt and of the text.
        forks: the choice of another token at the selected step.
        branch_list: the choice of a text, and of one to compare with it.
        export: code to copy and files to save.
        hint: what to do next.
    """

    panel: PicturePanel
    picker: ModelPicker
    prompt_box: PromptBox
    max_new_tokens: widgets.BoundedIntText
    generate_button: widgets.Button
    step_button: widgets.Button
    stop_button: widgets.Button
    reset_button: widgets.Button
    forks: AlternativeTokens
    branch_list: BranchList
    export: Export
    strip: TokenStrip = field(default_factory=TokenStrip)
    hint: widgets.HTML = field(default_factory=partial(html_line, "hint"))

    def layout(self) -> list[widgets.Widget]:
        """Return everything that an explorer shows, from top to bottom."""
        self.generate_button.button_style = "primary"
        buttons = [
            self.generate_button,
            self.step_button,
            self.stop_button,
            self.reset_button,
        ]
        actions = [
            widgets.HBox([label("new tokens"), self.max_new_tokens]),
            named_box(widgets.HBox, "buttons", buttons),
            self.hint,
        ]
        return [
            widgets.HTML(STYLE),
            self.picker,
            self.prompt_box,
            self.panel.layout([], actions),
            self.strip,
            self.forks,
            self.branch_list,
            self.export,
        ]

    def show_text(
        self, session: Session, scorer: PromptScorer, is_playing: bool
    ) -> None:
        """Show the tokens and the choices of the session's text.

        Args:
            session: the texts, and which one is shown.
            scorer: scores the prompt, if the strip shows that.
            is_playing: whether tokens are being drawn; then no new prompt is scored,
                because the model would have to alternate between two prefixes.
        """
        # `generation` decodes the whole text of a run in progress: ask once.
        branch, generation = session.branch, session.generation
        steps = generation.all_steps if generation else ()
        ids = self._shown_ids(session.model, generation)
        if self.strip.prompt != "scored":
            scorer.stop()
        elif not is_playing:
            scorer.ask(session.model, ids, self.panel.params)
        shown = ids if self.strip.prompt != "hidden" else ()
        self.strip.show(session.model, steps, shown, scorer.scores)
        self.strip.forks = list(session.branches.forks(branch.id)) if branch else []
        selected = self.strip.selected
        step = steps[selected] if 0 <= selected < len(steps) else None
        self.forks.show(session.model, step)
        self.branch_list.show(session.branches, branch)
        if branch is None:
            self.hint.value = "Generate runs to the end, Step draws one token."
        else:
            self.hint.value = "Select a token to see its step, and take another there."

    def _shown_ids(
        self, model: Model, generation: Generation | None
    ) -> tuple[int, ...]:
        """Return the token ids of the text's prompt, or of the next run's."""
        if generation is not None:
            return generation.prompt_ids
        return tuple(model.prompt_ids(self.prompt_box.prompt()))

    def show_playing(self, playing: bool) -> None:
        """Disable everything but Stop while tokens are being drawn."""
        self.generate_button.disabled = self.step_button.disabled = playing
        self.stop_button.disabled = not playing
        for part in (self.forks, self.branch_list, self.picker):
            part.disable(playing)

    def fit(self, model: Model, before: ModelCard) -> None:
        """Fit the widgets to a model that replaces another one.

        Args:
            model: the new model.
            before: the card of the old one, whose defaults are replaced.
        """
        card, params = model.card, self.panel.params
        self.prompt_box.fit(model)
        if self.max_new_tokens.value == before.default_max_new_tokens:
            self.max_new_tokens.value = card.default_max_new_tokens
        self.panel.controls.fit(card.vocab_size, presets(card))
        self.panel.params = carry_over(params, before, card)

    def state(self) -> dict[str, Any]:
        """Return what a person typed, chose and sees, as plain data."""
        return {
            "mode": self.prompt_box.mode.value,
            "system": self.prompt_box.system.value,
            "prompt": self.prompt_box.text.value,
            "params": self.panel.params.to_dict(),
            "max_new_tokens": self.max_new_tokens.value,
            "tab": self.panel.tab.value,
            "title": html.unescape(self.panel.title.value),
            "caption": html.unescape(self.panel.caption.value),
            "selected": self.strip.selected,
            "measure": self.strip.measure,
        }
