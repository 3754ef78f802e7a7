"""Compare settings and seeds side by side, with each first difference marked."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..errors import ParameterError
from ..generation.grid import Cell, Grid
from ..models import load
from ..models.base import Model
from ..sampling.params import SamplingParams
from ..sampling.settings_text import format_settings, parse_lines, parse_seeds
from .controls.prompt import count_box, example_prompt, typed_prompt
from .panel import parts
from .panel.event_loop import Throttle
from .panel.lab_widget import LabWidget
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
        grid: the one in progress or the last one; None before the first.

    Example:
        >>> compare = Compare("checkpoints/xslm/model.json", prompt="Q: hi\nA: ")
        >>> compare.settings.value = "greedy\ntemperature 2"
        >>> compare.compare()
        >>> compare.grid.answers()
        {'hello.': 4, 'heA: the sky is blue.': 1, 'iy is warm.': 1}
    """

    grid: Grid | None = parts.part("player.run")

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
        self.prompt = parts.text_area(
            "The prompt: the text to continue", prompt, rows=2
        )
        self.settings = parts.text_area(
            "A setting in each line, such as: temperature 0.7, top-p 0.9",
            "\n".join(map(format_settings, settings)),
            rows=4,
        )
        self.seeds = parts.text_box("Such as 1 2 3, or 1-6", " ".join(map(str, seeds)))
        limit = max_new_tokens or self.model.card.default_max_new_tokens
        self.max_new_tokens = count_box(limit)
        self.reference = parts.dropdown(
            "The run that the others are compared with", [("the first run", (0, 0))]
        )
        self.table = parts.html_line("table")
        self.answers = parts.html_line("answers-box")
        self.refresh = Throttle(self.loop, self.draw_now, BETWEEN_TABLES)
        self.player = GridPlayer(self.loop, self.run_showing_errors, self._played)
        self._titles: list[str] = []
        self._seeds: list[int] = []
        self._arrange()
        self.reference.observe(self.refresh.request, "value")
        self._played()
        self.draw_now()

    def cells(self) -> list[list[Cell]]:
        """Return the runs so far, compared with the reference; at first none."""
        return self.grid.cells(self.reference.value) if self.grid else []

    def compare(self) -> None:
        """Run every setting with every seed; a comparison in progress ends.

        In a notebook this returns at once and the tokens come in afterwards.
        """
        self.player.stop()
        if self.run_showing_errors(self._start) and not self.player.is_playing:
            self.player.play()  # else the loop that is playing takes the new grid

    async def finished(self) -> Grid | None:
        """Wait for the runs in progress, and return their grid.

        In a notebook, ``await compare.finished()`` in the cell that began them.
        """
        await self.player.finished()
        self.draw_now()
        return self.grid

    def stop(self) -> None:
        """End all runs after the token they are at; the texts so far stay."""
        self.player.stop()

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
        parts.offer(self.reference, self.refresh.request, options, selected)

    def _played(self) -> None:
        """Follow the player: a token came, or playing began or ended."""
        self.stop_button.disabled = not self.player.is_playing
        self.refresh.request()

    def _arrange(self) -> None:
        post = self.loop.posted
        self.compare_button = parts.button(post(self.compare), "Compare", "play")
        self.compare_button.button_style = "primary"
        self.stop_button = parts.button(post(self.stop), "Stop", "stop")
        left = {"prompt": self.prompt, "settings": self.settings}
        right = {
            "seeds": self.seeds,
            "new tokens": self.max_new_tokens,
            "reference": self.reference,
        }
        self.lay_out(
            widgets.HTML(STYLE),
            parts.html_line("card", html.escape(self.model.card.summary())),
            parts.side_by_side("asked", _column(left), _column(right)),
            parts.side_by_side("buttons", self.compare_button, self.stop_button),
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


def _column(boxes: dict[str, widgets.Widget]) -> widgets.Box:
    for box in boxes.values():
        box.layout.flex = "1 1 auto"
    return widgets.VBox([parts.labelled(name, box) for name, box in boxes.items()])
