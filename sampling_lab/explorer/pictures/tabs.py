"""The pictures of the explorer's tabs, each with its caption and its table."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

from ...counterfactuals import StepNoise, race_rows, wheel_slices
from ...errors import ParameterError
from ...plots import caption, stages_table, steps_table
from ...plots.drawing.labels import token_label
from ...plots.drawing.text_labels import fitted
from ...plots.race import RaceArtists
from ...plots.stages import StageArtists
from ...plots.stages_rows import StageColumn, removed_by
from ...plots.steps import StepArtists, tokens_height
from ...plots.steps_rows import StepRow
from ...plots.temperature_map import MapArtists
from ...plots.wheel import WheelArtists
from ...sampling.one_thread import one_thread
from . import captions
from .canvas import DistributionCanvas
from .maps import COLDEST, HOTTEST, Maps
from .sheets import Place, Sentences, Sheet, Surface
from .step_view import StepView

TABS = ("Distribution", "Stages", "Draw", "Temperature map", "Steps")
"""The tabs, in their order."""

_SCALE = 1.5
_LABEL = 112.0
"""Room for token texts left of bars."""

_STAGE_TOKENS, _STAGES_IN_A_LINE = 12, 5
_RACERS, _SLICES = 8, 12

_NO_STAGE = "No stage acts: what is drawn from is what the model says."
_GREEDY = "Temperature is 0: the highest logit is taken, and no luck decides."
_NO_SEED = "Each run brings a fresh seed. Set a seed to see what its luck chooses."
_NO_STEPS = "There is no text yet: Generate first."


class Picture(NamedTuple):
    """One tab's picture, the line under it and the rows behind it."""

    png: bytes
    caption: str
    table: list[dict[str, Any]]


class Pictures:
    """Draw any tab of a view.

    Figures are kept between calls; what was drawn before never shows.

    Args:
        width: in CSS pixels.

    Example:
        >>> import torch
        >>> from sampling_lab import SamplingParams
        >>> params = SamplingParams(top_k=2, seed=1)
        >>> ledger = params.chain().ledger(torch.tensor([2.0, 1.0, 0.2]))
        >>> picture = Pictures().draw("Stages", View(ledger, None, params))
        >>> picture.caption
        '3 tokens · top-k removes 1 · 2 kept, 89.2 % of raw mass'
    """

    def __init__(self, width: int = 640) -> None:
        self.width = width
        self._surface = Surface(width, _SCALE)
        self._bars = DistributionCanvas(width, surface=self._surface)
        names = ("stages", "raw", "race", "wheel", "map", "steps", "sentence")
        self._sheets = {name: Sheet(self._surface) for name in names}
        self._maps = Maps()

    def draw(self, tab: str, view: StepView) -> Picture:
        """Return a tab's picture.

        Args:
            tab: one of `TABS`.
            view: what there is to see.

        Raises:
            ParameterError: there is no such tab.
        """
        tabs = (
            self._distribution,
            self._stages,
            self._draw,
            self._temperature_map,
            self._steps,
        )
        if tab not in TABS:
            raise ParameterError(f"tab must be one of {', '.join(TABS)}, got {tab!r}")
        with one_thread():
            return tabs[TABS.index(tab)](view)

    def _distribution(self, view: StepView) -> Picture:
        bars = self._bars.table(view)
        rows = [dict(vars(bar)) for bar in bars]
        return Picture(self._bars.draw_table(bars), caption(view.ledger), rows)

    def _stages(self, view: StepView) -> Picture:
        ids = view.ledger.top(_STAGE_TOKENS)
        labels = [_label(view, token_id) for token_id in ids]
        marked = ids.index(view.chosen) if view.chosen in ids else None
        columns = stages_table(view.ledger, top=ids)
        verdicts = removed_by(view.ledger, ids)
        if view.ledger.stages:
            sheet, rows = self._sheets["stages"], len(ids)
            artists = sheet.artists(
                *_stage_places(self.width, len(columns), rows),
                lambda axes: StageArtists(axes, rows),
            )
            artists.show(columns, labels, verdicts, marked)
        else:
            sheet = self._raw_alone(columns, labels, marked)
        told = captions.stages_caption(view.ledger)
        table = captions.stages_rows(view.tokens, ids, columns, verdicts)
        return Picture(sheet.png(), told, table)

    def _raw_alone(
        self, columns: list[StageColumn], labels: list[str], marked: int | None
    ) -> Sheet:
        """Draw the raw panel, and beside it the sentence that nothing else acts."""
        sheet, rows = self._sheets["raw"], len(labels)
        height, (place,) = _stage_places(self.width, 1, rows)
        half = place._replace(width=place.width / 2)
        beside = half._replace(left=half.left + half.width)
        panel, sentence = sheet.artists(
            height,
            [half, beside],
            lambda axes: (StageArtists(axes[:1], rows), Sentences(axes[1:])),
        )
        panel.show(columns, labels, marked=marked)
        sentence.show(_NO_STAGE, beside.width - 20)
        return sheet

    def _draw(self, view: StepView) -> Picture:
        if view.params.is_greedy:
            return self._sentence(_GREEDY)
        if view.luck is None:
            return self._sentence(_NO_SEED)
        if view.luck.exponentials is None:
            return self._wheel(view, view.luck)
        return self._race(view, view.luck)

    def _race(self, view: StepView, luck: StepNoise) -> Picture:
        logits = view.ledger.final.logits
        rows = race_rows(logits, luck, _RACERS)
        sheet, room = self._sheets["race"], min(_RACERS, len(logits))
        place = Place(_LABEL + 20, 50, self.width - _LABEL - 216, 28 * room)
        artists = sheet.artists(
            28 * room + 84, [place], lambda axes: RaceArtists(axes[0], room)
        )
        artists.show(rows, [_label(view, row.token_id) for row in rows])
        told = captions.race_caption(view, rows)
        return Picture(sheet.png(), told, captions.race_table(view.tokens, rows))

    def _wheel(self, view: StepView, luck: StepNoise) -> Picture:
        logits = view.ledger.final.logits
        drawn = luck.draw(logits)
        slices = wheel_slices(logits, _SLICES)
        sheet = self._sheets["wheel"]
        place = Place(20, 32, self.width - 40, 130)
        artists = sheet.artists(170, [place], lambda axes: WheelArtists(axes[0]))
        artists.show(slices, drawn, view.tokens)
        told = captions.wheel_caption(view, drawn)
        table = captions.wheel_table(view.tokens, slices, drawn)
        return Picture(sheet.png(), told, table)

    def _temperature_map(self, view: StepView) -> Picture:
        if view.luck is None:
            return self._sentence(_NO_SEED)
        try:
            found = self._maps.find(view, view.luck)
        except ParameterError as error:
            return self._sentence(str(error))
        sheet = self._sheets["map"]
        place = Place(20, 50, self.width - 40, 120)
        artists = sheet.artists(
            178, [place], lambda axes: MapArtists(axes[0], COLDEST, HOTTEST)
        )
        artists.show(found, view.tokens)
        artists.mark(view.params.temperature)
        told = captions.map_caption(found, view.params.temperature)
        rows = found.table(partial(captions.token_text, view.tokens))
        return Picture(sheet.png(), told, rows)

    def _steps(self, view: StepView) -> Picture:
        if not view.steps:
            return self._sentence(_NO_STEPS)
        rows = steps_table(view.steps)
        sheet = self._sheets["steps"]
        artists = sheet.artists(*_step_places(self.width, rows), StepArtists)
        artists.show(rows, view.selected)
        told = captions.steps_caption(rows)
        return Picture(sheet.png(), told, captions.steps_rows(rows))

    def _sentence(self, text: str) -> Picture:
        sheet = self._sheets["sentence"]
        place = Place(0, 0, self.width, 160)
        sheet.artists(160, [place], Sentences).show(text, self.width - 160)
        return Picture(sheet.png(), text, [])


def _label(view: StepView, token_id: int) -> str:
    """Return a token's text as it fits left of its bar, with room for a mark."""
    return fitted(token_label(view.tokens, token_id), _LABEL - 26)


def _stage_places(width: int, panels: int, rows: int) -> tuple[float, list[Place]]:
    """Return the height of a sheet of panels, in as many lines as they need."""
    lines = math.ceil(panels / _STAGES_IN_A_LINE)
    in_a_line = math.ceil(panels / lines)
    wide, high = (width - _LABEL - 86) / in_a_line, 20 * rows
    block = high + (76 if in_a_line > 2 else 46)
    places = [
        Place(
            _LABEL + wide * (at % in_a_line),
            block * (lines - 1 - at // in_a_line) + 8,
            wide - 8,
            high,
        )
        for at in range(panels)
    ]
    return block * lines, places


def _step_places(width: int, rows: list[StepRow]) -> tuple[float, list[Place]]:
    """Return the height of the sheet of steps, the same with or without tokens."""
    height, left, gap = 400.0, 52.0, 30.0
    wide = width - left - 22
    below = 26 + 24 * math.ceil(tokens_height(rows, wide) / 24)  # few shapes
    high = (height - below) / 3 - gap
    places = [Place(left, below + (high + gap) * at, wide, high) for at in (2, 1, 0)]
    return height, places
