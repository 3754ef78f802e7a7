"""Compare settings and seeds side by side, with each first difference marked."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..errors import ParameterError
from ..generation.grid import Cell, Grid
from ..models import load
from ..models.base import Model
from ..sampling.params import SamplingParams
from ..sampling.settings_text import format_settings, parse_lines, parse_seeds
from .controls.prompt import count_box, example_prompt, prompt_box, typed_prompt
from .controls.slider_with_box import label
from .panel.event_loop import Throttle
from .panel.lab_widget import LabWidget
from .panel.parts import button, dropdown, html_line, named_box, offer, text_box
from .panel.player import GridPlayer
from .pictures.compare_html import STYLE, answer_names, answers_html, table_html

SETTINGS = (SamplingParams(temperature=0), SamplingParams(temperature=0.9, top_p=0.9))
"""The first settings, unless others are given."""

MOST_RUNS = 64
"""More cells than this fit neither a page nor a batch."""

BETWEEN_TABLES = 0.15
"""Minimum seconds between two tables while streaming; more often slows generation."""


class Compare(LabWidget):
    r"""A grid of runs over one prompt: a row per setting, a column per seed.

    All runs advance together, a token at a time, each as it would alone.

    Args:
        model: a model, or what `load` takes.
        prompt: the first prompt; None is an example that fits the model.
        settings: the rows; their own seeds are not used. They are shown as text with
            six digits, and that text is what runs.
        seeds: the columns.
        max_new_tokens: None is the model's own default.

    Attributes:
        model: the loaded model.
        prompt: the text box.
        settings: the text box with a setting in each line; see `parse_settings`.
        seeds: the text box with the seeds, such as "1 2 3" or "1-6".
        max_new_tokens: the number box.
        reference: the drop-down whose value is the row and the column of the run
            that the others are compared with.
        table: the runs, as HTML.
        answers: the distinct texts and the number of runs of each, as HTML.
        player: advances the grid.

    Example:
        >>> compare = Compare("checkpoints/xslm/model.json", prompt="Q: hi\nA: ")
        >>> compare.settings.value = "greedy\ntemperature 2"
        >>> compare.compare()
        >>> compare.grid.answers()
        {'hello.': 4, 'heA: the sky is blue.': 1, 'iy is warm.': 1}
    """

    def __init__(
        self,
        model: Model | str | Path,
        *,
        prompt: str | None = None,
        settings: Sequence[SamplingParams] = SETTINGS,
        seeds: Sequence[int] = (1, 2, 3),
        max_new_tokens: int | None = None,
    ) -> None:
        super().__init__()
        self.model = model if isinstance(model, Model) else load(model)
        prompt = example_prompt(self.model) if prompt is None else prompt
        self.prompt = prompt_box(prompt, rows=2)
        self.settings = _settings_box("\n".join(map(format_settings, settings)))
        self.seeds = text_box("Such as 1 2 3, or 1-6", " ".join(map(str, seeds)))
        limit = max_new_tokens or self.model.card.default_max_new_tokens
        self.max_new_tokens = count_box(limit)
        self.reference = dropdown(
            "The run that the others are compared with", [("the first run", (0, 0))]
        )
        self.table, self.answers = html_line("table"), html_line("answers-box")
        self.refresh = Throttle(self.loop, self._refresh, BETWEEN_TABLES)
        self.player = GridPlayer(
            self.model,
            self.loop,
            partial(self.run_showing_errors, what="run"),
            self._played,
        )
        self._titles: list[str] = []
        self._seeds: list[int] = []
        self._arrange()
        self.reference.observe(self._reference_chosen, "value")
        self._played()
        self._refresh()

    @property
    def grid(self) -> Grid | None:
        """The grid in progress or the last one; None before the first."""
        return self.player.run

    def cells(self) -> list[list[Cell]]:
        """Return the runs so far, compared with the reference; at first none."""
        return self.grid.cells(self.reference.value) if self.grid else []

    def compare(self) -> None:
        """Run every setting with every seed; a comparison in progress ends.

        In a notebook this returns at once and the tokens come in afterwards.
        """
        self.player.stop()
        if self.run_showing_errors(self._start, "run") and not self.player.is_playing:
            self.player.play()  # else the loop that is playing takes the new grid

    async def finished(self) -> Grid | None:
        """Wait for the runs in progress, and return their grid.

        In a notebook, ``await compare.finished()`` in the cell that began them.
        """
        await self.player.finished()
        self._refresh()
        return self.grid

    def stop(self) -> None:
        """End all runs after the token they are at; the texts so far stay."""
        self.player.stop()

    def close(self) -> None:
        """End the runs and remove the widgets."""
        if "player" in vars(self):  # else its __init__ raised an exception
            self.player.stop()
        super().close()

    def redraw(self) -> None:
        """Show the table and the answers, at once."""
        if self.grid is None:
            self.table.value = (
                "<i>Compare runs every setting with every seed, side by side.</i>"
            )
            self.answers.value = ""
            return
        # Without a tokenizer all texts are empty.
        answers = self.grid.answers() if self.model.tokenizer else {}
        names = answer_names(answers)
        self.table.value = table_html(
            self._titles, self._seeds, self.cells(), self.reference.value, names
        )
        self.answers.value = answers_html(answers, names) if answers else ""

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Add the table, for pages that show a saved notebook without a kernel."""
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if self.grid is not None:
            data["text/html"] = STYLE + self.table.value + self.answers.value
        return data, metadata

    def _start(self) -> None:
        settings = parse_lines(self.settings.value)
        seeds = parse_seeds(self.seeds.value)
        _check_size(len(settings), len(seeds))
        grid = Grid(
            self.model,
            typed_prompt(self.model, self.prompt.value),
            settings,
            seeds,
            max_new_tokens=self.max_new_tokens.value,
        )
        self._titles, self._seeds = list(map(format_settings, settings)), seeds
        self.player.start(grid)
        self._offer_references()

    def _offer_references(self) -> None:
        """Offer each run as the reference; the selected one stays if it exists."""
        before = self.reference.value
        options = [
            (f"seed {seed} · {title}", (row, column))
            for row, title in enumerate(self._titles)
            for column, seed in enumerate(self._seeds)
        ]
        places = [place for _, place in options]
        selected = before if before in places else (0, 0)
        offer(self.reference, self._reference_chosen, options, selected)

    def _played(self) -> None:
        """Follow the player: a token came, or playing began or ended."""
        self.stop_button.disabled = not self.player.is_playing
        self.refresh.request()

    def _refresh(self) -> None:
        self.run_showing_errors(self.redraw)

    def _reference_chosen(self, change: dict[str, Any]) -> None:
        self.refresh.request()

    def _arrange(self) -> None:
        self.compare_button = button(self.loop, self.compare, "Compare", "play")
        self.compare_button.button_style = "primary"
        self.stop_button = button(self.loop, self.stop, "Stop", "stop")
        columns = [
            widgets.VBox(
                [_named("prompt", self.prompt), _named("settings", self.settings)]
            ),
            widgets.VBox(
                [
                    _named("seeds", self.seeds),
                    _named("new tokens", self.max_new_tokens),
                    _named("reference", self.reference),
                ]
            ),
        ]
        self.lay_out(
            widgets.HTML(STYLE),
            html_line("card", html.escape(self.model.card.summary())),
            named_box(widgets.HBox, "asked", columns),
            named_box(widgets.HBox, "buttons", [self.compare_button, self.stop_button]),
            self.table,
            self.answers,
            self.status,
        )
        self.add_class("sampling-lab-compare")

    def _status(self) -> str:
        return self.player.status() or "ready"

    def _subject(self) -> str:
        return self.model.card.name


def _check_size(rows: int, columns: int) -> None:
    if not rows:
        raise ParameterError("settings must hold at least one line, got none")
    if not columns:
        raise ParameterError("seeds must hold at least one, such as 1 2 3, got none")
    if rows * columns > MOST_RUNS:
        raise ParameterError(
            f"settings × seeds must be <= {MOST_RUNS} runs, got {rows} × {columns}"
        )


def _named(name: str, box: widgets.Widget) -> widgets.Box:
    box.layout.flex = "1 1 auto"
    return widgets.HBox([label(name), box])


def _settings_box(text: str) -> widgets.Textarea:
    return widgets.Textarea(
        text,
        rows=4,
        tooltip="A setting in each line, such as: temperature 0.7, top-p 0.9",
        layout=widgets.Layout(width="auto"),
    )
