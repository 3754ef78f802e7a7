"""What each stage of a chain does to the most likely tokens, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from ..errors import ParameterError
from ..sampling.arguments import checked
from ..sampling.ledger import Ledger
from .drawing import style
from .drawing.labels import Tokens, shorten, token_label
from .drawing.shapes import HatchedRectangles, row_box
from .drawing.text import points_wide
from .drawing.text_labels import (
    TextColumn,
    TextLabel,
    TextLabels,
    fitted,
    number,
    text_width,
)
from .stages_rows import KEPT, StageColumn, removed_by, stages_table

_HALF = 0.36
"""Half the height of a bar, where bars are 1 apart."""

_NUMBER = 54.0
"""Room for a number after a bar, in points."""

_LINE = 15.0
"""From one line over a panel to the next, in points."""


@checked
def plot_stages(
    ledger: Ledger,
    *,
    tokens: Tokens = None,
    chosen: int | None = None,
    n: int = 10,
    explain: bool = False,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw the distribution after each stage, side by side on one token axis.

    The outline is the probability before the stage, the fill after it; what the
    stage removed is hatched.

    Args:
        ledger: what a chain did to one row of logits.
        tokens: token texts, as a function of the id or a list by id; None shows ids.
        chosen: the token that was drawn.
        n: how many tokens, by raw rank.
        explain: name, right of the last panel, the stage that removed each token.
        axes: one for raw and one for each stage; None makes a new figure.

    Raises:
        ParameterError: another number of axes.
    """
    ids = ledger.top(n)
    columns = stages_table(ledger, top=ids)
    if axes is None:
        size = (2.2 + 2.5 * len(columns), 1.5 + 0.34 * len(ids))
        axes = style.new_panels(*size, columns=len(columns))
    if len(axes) != len(columns):
        raise ParameterError(
            f"axes must be {len(columns)}, raw and one for each stage, got {len(axes)}"
        )
    labels = [token_label(tokens, token_id) for token_id in ids]
    verdicts = removed_by(ledger, ids) if explain else ()
    marked = ids.index(chosen) if chosen in ids else None
    StageArtists(axes, len(ids)).show(columns, labels, verdicts, marked)
    return list(axes)


class StageArtists:
    """The artists of one picture, which can show other numbers.

    Args:
        axes: one for each panel, in one row or several; each row names its tokens.
        rows: how many tokens there is room for.
    """

    def __init__(self, axes: Sequence[Axes], rows: int) -> None:
        self._panels = [_Panel(ax, rows) for ax in axes]
        first = axes[0].get_position().x0
        begins = [ax for ax in axes if ax.get_position().x0 == first]
        self._labels = [TextColumn(ax, 0.0, -6.0, range(rows)) for ax in begins]
        self._verdicts = TextColumn(axes[-1], 1.0, 8.0, range(rows), align="left")
        self._heading = TextLabels(axes[-1], axes[-1].transAxes)

    def show(
        self,
        columns: Sequence[StageColumn],
        labels: Sequence[str],
        verdicts: Sequence[str] = (),
        marked: int | None = None,
    ) -> None:
        """Draw columns from `stages_table`, one for each panel.

        `verdicts` are from `removed_by`, and none leaves their place empty; `marked`
        is the row of the token that was drawn.
        """
        limit = max(max(*column.before, *column.after) for column in columns)
        pairs = list(zip(self._panels, columns, strict=True))
        narrow = not all(panel.has_room_for(column) for panel, column in pairs)
        bold = all(panel.has_room_in_bold(column) for panel, column in pairs)
        for panel, column in pairs:
            panel.show(column, limit, marked)
            panel.head(column, narrow, bold or not narrow)
        for names in self._labels:
            names.set_texts(
                [f"{'▶ ' * (at == marked)}{text}" for at, text in enumerate(labels)]
            )
        self._verdicts.set_texts(
            [shorten(verdict, 11) for verdict in verdicts],
            [style.INK if verdict == KEPT else style.FAINT for verdict in verdicts],
        )
        move = (8.0, _LINE / 2)
        heading = TextLabel(1.0, 1.0, "removed by", color=style.FAINT, move=move)
        self._heading.write([heading] if verdicts else [])


class _Panel:
    """Bars before and after one stage, each with its number, under a heading."""

    def __init__(self, ax: Axes, rows: int) -> None:
        self._ax = ax
        style.quiet_frame(ax, grid=None)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines["bottom"].set_visible(False)
        ax.set_ylim(rows - 0.5, -0.5)
        self._width = points_wide(ax)
        self._fills = HatchedRectangles(ax, facecolor=style.FINAL, zorder=2)
        self._accent = HatchedRectangles(ax, facecolor=style.CHOSEN, zorder=2)
        self._hatched = HatchedRectangles(ax, edgecolor=style.HATCHING, zorder=2)
        edge = {"edgecolor": style.INK, "linewidth": 1.2}
        self._outlines = HatchedRectangles(ax, zorder=3, **edge)
        self._numbers = TextLabels(ax)
        self._heading = TextLabels(ax, ax.transAxes)

    def has_room_for(self, column: StageColumn) -> bool:
        """Return whether the heading fits in two lines."""
        title, count = _heading(column, narrow=False)
        widest = max(text_width(title, bold=True), text_width(count))
        return widest <= self._width + 4

    def has_room_in_bold(self, column: StageColumn) -> bool:
        """Return whether the name of the stage fits alone and bold."""
        return text_width(column.stage, bold=True) <= self._width + 4

    def show(self, column: StageColumn, limit: float, marked: int | None) -> None:
        """Draw one stage's numbers; `limit` is the longest bar of all panels."""
        room = limit * self._width / (self._width - _NUMBER)
        self._ax.set_xlim(0, room)
        removed = [
            row_box(row, column.before[row], _HALF)
            for row, gone in enumerate(column.removed)
            if gone
        ]
        rows = range(len(column.after))
        after = [row_box(row, column.after[row], _HALF) for row in rows]
        self._fills.show(bar for row, bar in enumerate(after) if row != marked)
        self._accent.show(bar for row, bar in enumerate(after) if row == marked)
        self._outlines.show(row_box(*pair, _HALF) for pair in enumerate(column.before))
        self._hatched.show(removed)
        self._hatched.hatch(style.stage_hatch(column.stage))
        per_point = room / self._width
        self._numbers.write(
            _number(column, row, per_point, self._width) for row in rows
        )

    def head(self, column: StageColumn, narrow: bool, bold: bool) -> None:
        """Write the stage and its counts over the panel, in two lines or in four."""
        lines = _heading(column, narrow)
        faint_from = 2 if narrow else 1
        self._heading.write(
            TextLabel(
                0,
                1,
                fitted(line, self._width + 4, bold=bold and at == 0),
                color=style.INK if at < faint_from else style.FAINT,
                bold=bold and at == 0,
                move=(0, _LINE * (len(lines) - at - 0.5)),
            )
            for at, line in enumerate(lines)
        )


def _heading(column: StageColumn, narrow: bool) -> list[str]:
    count, entropy = f"{column.kept_count:,} kept", f"{column.entropy:.2f} bits"
    if not narrow:
        return [column.title, f"{count} · {entropy}"]
    setting = column.title.removeprefix(column.stage).strip()
    return [column.stage, setting, count, entropy]


def _number(column: StageColumn, row: int, per_point: float, width: float) -> TextLabel:
    """Return the text after a bar: the probability, or that the token was removed."""
    end = max(column.before[row], column.after[row])
    text, color = number(column.after[row]), style.INK
    if column.removed[row]:
        left = width - end / per_point - 4
        text, color = "removed" if text_width("removed") <= left else "cut", style.FAINT
    elif column.after[row] == 0.0:
        text, color = "–", style.FAINT
    return TextLabel(end, row, text, color=color, move=(4.0, 0.0))
