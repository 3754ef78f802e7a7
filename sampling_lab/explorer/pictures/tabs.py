"""The explorer's tabs: the picture, caption and table of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ...errors import ParameterError
from ...generation.results import Step
from ...plots import caption, distribution_table, stages_table, steps_table
from ...plots.distribution import DistributionArtists
from ...plots.stages import StageArtists
from ...plots.stages_rows import StageColumn, removed_by, stages_rows
from ...plots.steps import StepArtists, tokens_height
from ...sampling.ledger import Ledger
from ...sampling.one_thread import one_thread
from .fast_figure import FastFigure, FastFigures, Place
from .noise_tabs import DrawTab, TemperatureMapTab
from .step_view import StepView
from .tab import LABEL_ROOM, Picture, Sentence, Tab, bar_label, counted

_NO_STAGE = "No stage acts: the draw uses the model's own probabilities."
_NO_STEPS = "There is no text yet: Generate first."


class DistributionTab(Tab):
    """The most likely tokens as bars, before and after the chain."""

    name = "Distribution"

    def draw(self, view: StepView) -> Picture:
        """Return the picture of at most 20 tokens and the rest."""
        bars = distribution_table(view.ledger, tokens=view.tokens, chosen=view.chosen)
        count, height = len(bars), 22.5 * len(bars)
        figure = self._figures.find(
            self.name,
            height + 66,
            [Place(150, 34, self._width - 288, height)],
            lambda axes: DistributionArtists(axes[0], count),
        )
        figure.artists.show(bars)
        table = [dict(vars(bar)) for bar in bars]
        png = figure.png(fixed=figure.artists.raw_texts)
        return Picture(png, caption(view.ledger), table)


class StagesTab(Tab):
    """The most likely tokens after each stage of the chain."""

    name = "Stages"

    def draw(self, view: StepView) -> Picture:
        """Return the picture of 12 tokens, with what removed each of them."""
        ids = view.ledger.top(12)
        columns = stages_table(view.ledger, top=ids)
        verdicts = removed_by(view.ledger, ids)
        labels = [bar_label(view, token_id) for token_id in ids]
        marked = ids.index(view.chosen) if view.chosen in ids else None
        if view.ledger.stages:
            figure = self._figures.find(
                self.name,
                *self._places(len(columns), len(ids)),
                lambda axes: StageArtists(axes, len(ids)),
            )
            figure.artists.show(columns, labels, verdicts, marked)
            png = figure.png()
        else:
            png = self._raw_alone(columns, labels, marked)
        table = stages_rows(columns, ids, verdicts, view.tokens)
        return Picture(png, self._caption(view.ledger), table)

    def _raw_alone(
        self, columns: list[StageColumn], labels: list[str], marked: int | None
    ) -> bytes:
        """Draw the raw probabilities, and a sentence saying that no stage acts."""
        height, (place,) = self._places(1, len(labels))
        left = place._replace(width=place.width / 2)
        right = left._replace(left=left.left + left.width)
        figure = self._figures.find(
            "no stage",
            height,
            [left, right],
            lambda axes: (StageArtists(axes[:1], len(labels)), Sentence(axes[1:])),
        )
        panel, sentence = figure.artists
        panel.show(columns, labels, marked=marked)
        sentence.show(_NO_STAGE, right.width - 20)
        return figure.png()

    def _places(self, panels: int, rows: int) -> tuple[float, list[Place]]:
        """Return the height of the figure, and panels in as many lines as needed."""
        lines = math.ceil(panels / 5)
        in_a_line = math.ceil(panels / lines)
        wide, high = (self._width - LABEL_ROOM - 86) / in_a_line, 20 * rows
        block = high + (76 if in_a_line > 2 else 46)
        places = [
            Place(
                LABEL_ROOM + wide * (at % in_a_line),
                block * (lines - 1 - at // in_a_line) + 8,
                wide - 8,
                high,
            )
            for at in range(panels)
        ]
        return block * lines, places

    @staticmethod
    def _caption(ledger: Ledger) -> str:
        """Return how many tokens each stage removed, and how many are kept."""
        if not ledger.stages:
            return f"{ledger.kept_count:,} tokens, all kept · {ledger.entropy:.2f} bits"
        counts = [ledger.raw.kept_count, *(r.after.kept_count for r in ledger.stages)]
        removed = [
            f"{record.stage.name} removes {before - after:,}"
            for record, (before, after) in zip(
                ledger.stages, pairwise(counts), strict=True
            )
            if before > after
        ]
        kept = f"{ledger.kept_count:,} kept, {ledger.kept_mass * 100:.1f} % of raw mass"
        return " · ".join([f"{counts[0]:,} tokens", *removed, kept])


class StepsTab(Tab):
    """Surprisal, entropy and kept count of every step of a text."""

    name = "Steps"

    def title(self, view: StepView) -> str:
        """Return the title; the current settings do not change a written text."""
        return "the text, as it was written" if view.drawn is None else view.title

    def draw(self, view: StepView) -> Picture:
        """Return the picture of all steps, one of them marked."""
        if not view.steps:
            return self.sentence(_NO_STEPS)
        figure = self._figure(view.steps)
        figure.artists.show(view.steps, view.selected)
        table = steps_table(view.steps)
        return Picture(figure.png(), self._caption(view.steps), table)

    def _figure(self, steps: Sequence[Step]) -> FastFigure[StepArtists]:
        height, left, gap = 400.0, 52.0, 30.0
        wide = self._width - left - 22
        below = 26 + 24 * math.ceil(tokens_height(steps, wide) / 24)  # few layouts
        high = (height - below) / 3 - gap
        lows = [below + (high + gap) * at for at in (2, 1, 0)]
        places = [Place(left, low, wide, high) for low in lows]
        return self._figures.find(self.name, height, places, StepArtists)

    @staticmethod
    def _caption(steps: Sequence[Step]) -> str:
        """Return the mean surprisal, the perplexity, and what is left out of them."""
        finite = [step.surprisal for step in steps if step.surprisal < math.inf]
        parts = [counted(len(steps), "step")]
        if finite:
            mean = sum(finite) / len(finite)
            parts.append(f"mean surprisal {mean:.2f} bits")
            parts.append(f"perplexity {2.0 ** min(mean, 1000.0):.3g}")
        entropy = sum(step.entropy for step in steps) / len(steps)
        parts.append(f"mean entropy {entropy:.2f} bits")
        if given := sum(step.is_given for step in steps):
            parts.append(f"{given:,} chosen by a person")
        if endless := len(steps) - len(finite):
            parts.append(f"{endless:,} of probability 0 left out of the means")
        return " · ".join(parts)


_TABS = (DistributionTab, StagesTab, DrawTab, TemperatureMapTab, StepsTab)

TABS = tuple(tab.name for tab in _TABS)
"""The tabs' names, in their order."""


class Pictures:
    """The tabs of one panel, whose figures are kept between redraws.

    Args:
        width: in CSS pixels.

    Example:
        >>> import torch
        >>> from sampling_lab import SamplingParams
        >>> params = SamplingParams(top_k=2, seed=1)
        >>> ledger = params.chain().ledger(torch.tensor([2.0, 1.0, 0.2]))
        >>> picture = Pictures().draw("Stages", StepView(ledger, None, params))
        >>> picture.caption
        '3 tokens · top-k removes 1 · 2 kept, 89.2 % of raw mass'
    """

    def __init__(self, width: int = 640) -> None:
        self.width = width
        figures = FastFigures(width)
        self._tabs = {tab.name: tab(figures) for tab in _TABS}

    def draw(self, tab: str, view: StepView) -> Picture:
        """Return the picture of a tab; it depends on nothing that was drawn before.

        Args:
            tab: one of `TABS`.
            view: the step to show.

        Raises:
            ParameterError: there is no such tab.
        """
        with one_thread():
            return self._tab(tab).draw(view)

    def title(self, tab: str, view: StepView) -> str:
        """Return the line over the picture of a tab."""
        return self._tab(tab).title(view)

    def _tab(self, name: str) -> Tab:
        if name not in self._tabs:
            raise ParameterError(f"tab must be one of {', '.join(TABS)}, got {name!r}")
        return self._tabs[name]
