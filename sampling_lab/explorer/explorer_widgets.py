"""Widgets and layout of the explorer; explorer.py adds the actions."""

from __future__ import annotations

import ipywidgets as widgets

from ..generation.results import Generation
from ..models.base import Model, ModelCard
from ..models.list_checkpoints import list_checkpoints
from .controls.branch_list import BranchList
from .controls.export import Export
from .controls.fork import AlternativeTokens
from .controls.model_picker import ModelPicker
from .controls.prompt import PromptBox, count_box
from .controls.token_strip import TokenStrip
from .panel.lab_widget import LabWidget
from .panel.parts import button, html_line, labelled, side_by_side
from .panel.player import PromptScorer
from .pictures.compare_html import STYLE
from .pictures.picture_panel import PicturePanel
from .presets import carry_over, presets
from .session import Session


class ExplorerWidgets:
    """The widgets of an explorer around its panel.

    Args:
        explorer: with its panel and first model; the buttons call its methods, on its
            event loop.
        prompt: the first prompt; None is an example that fits the model.
        max_new_tokens: None is the model's own default.

    Attributes:
        picker: the choice of the model.
        prompt_box: the prompt, raw or as a chat; `prompt` is its text box.
        max_new_tokens: the number box.
        strip: the tokens of the prompt and of the text; one of these can be selected.
        forks: the choice of another token at the selected step.
        branch_list: the choice of a text, and of one to compare with it.
        export: code to copy and files to save.
        hint: what to do next.
    """

    def __init__(
        self, explorer: LabWidget, prompt: str | None, max_new_tokens: int | None
    ) -> None:
        self.panel: PicturePanel = explorer.panel
        post, redraw = explorer.loop.posted, explorer.refresh.request
        model: Model = explorer.model
        limit = max_new_tokens or model.card.default_max_new_tokens
        self.picker = ModelPicker(post(explorer.load_model), list_checkpoints())
        self.prompt_box = PromptBox(model, prompt)
        self.prompt, self.max_new_tokens = self.prompt_box.text, count_box(limit)
        self.generate_button = button(post(explorer.generate), "Generate", "play")
        self.step_button = button(post(explorer.step), "Step", "step-forward")
        self.stop_button = button(post(explorer.stop), "Stop", "stop")
        self.reset_button = button(post(explorer.reset), "Reset", "undo")
        self.hint, self.strip = html_line("hint"), TokenStrip()
        self.forks = AlternativeTokens(
            post(explorer.fork), post(explorer.explain), redraw
        )
        self.branch_list = BranchList(
            post(explorer.go_to),
            post(explorer.remove),
            redraw,
            post(explorer.load_branches),
        )
        self.export = Export(post(explorer.copy_code), post(explorer.save))
        self.strip.observe(redraw, "prompt")

    def layout(self) -> list[widgets.Widget]:
        """Return everything that an explorer shows, from top to bottom."""
        self.generate_button.button_style = "primary"
        going = self.generate_button, self.step_button
        buttons = side_by_side("buttons", *going, self.stop_button, self.reset_button)
        actions = [labelled("new tokens", self.max_new_tokens), buttons, self.hint]
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
        selected = self.strip.selected
        step = steps[selected] if 0 <= selected < len(steps) else None
        self.forks.show(session.model, step, is_playing)
        self.branch_list.show(session.branches, branch, is_playing)
        if branch is None:
            self.hint.value = "Generate runs to the end, Step draws one token."
        else:
            self.hint.value = "Select a token to see its step, and take another there."
        ids = self._shown_ids(session.model, generation)
        if self.strip.prompt != "scored":
            scorer.stop()
        elif not is_playing:
            scorer.ask(session.model, ids, self.panel.params)
        shown = ids if self.strip.prompt != "hidden" else ()
        self.strip.show(session.model, steps, shown, scorer.scores)
        self.strip.forks = list(session.branches.forks(branch.id)) if branch else []

    def _shown_ids(
        self, model: Model, generation: Generation | None
    ) -> tuple[int, ...]:
        """Return the token ids of the text's prompt, or of the next run's."""
        if generation is not None:
            return generation.prompt_ids
        return tuple(model.prompt_ids(self.prompt_box.prompt()))

    def show_playing(self, playing: bool) -> None:
        """Allow nothing but Stop while tokens are being drawn."""
        self.generate_button.disabled = self.step_button.disabled = playing
        self.stop_button.disabled = not playing
        self.picker.disable(playing)

    def fit(self, model: Model, before: ModelCard) -> None:
        """Fit the widgets to a model that replaces another one, whose card is given."""
        card, params = model.card, self.panel.params
        self.prompt_box.fit(model)
        if self.max_new_tokens.value == before.default_max_new_tokens:
            self.max_new_tokens.value = card.default_max_new_tokens
        self.panel.controls.fit(card.vocab_size, presets(card))
        self.panel.params = carry_over(params, before, card)
