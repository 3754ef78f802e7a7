"""A grid of runs as HTML: a table of chips, and the distinct answers below it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase

from ...generation.grid import Cell
from ...generation.results import Generation, Step, token_chip
from ...text import counted, visible
from ..panel.parts import style_sheet

SHOWN_ANSWERS = 12
"""Rarer answers are only counted."""

_ENDINGS = {"stop": " · ended", "context": " · context full"}

Place = tuple[int, int]
"""A row and a column, from 0."""


def table_html(
    rows: Sequence[str],
    seeds: Sequence[int],
    cells: Sequence[Sequence[Cell]],
    reference: Place = (0, 0),
    names: Mapping[str, str] | None = None,
) -> str:
    """Return runs as a table, a row per setting and a column per seed, as HTML.

    In each cell the tokens that it shares with the reference are dimmed, and the first
    that differs is marked with ≠. All text is escaped.

    Args:
        rows: the settings in words.
        seeds: the seeds.
        cells: what `Grid.cells` gave for this reference.
        reference: its row and column.
        names: a short name for each distinct text.
    """
    head = "".join(f'<th scope="col">seed {seed}</th>' for seed in seeds)
    body = "".join(
        f"<tr>{_row_head(title, row[0])}"
        + "".join(
            _cell_html(cell, (at, column) == tuple(reference), names or {})
            for column, cell in enumerate(row)
        )
        + "</tr>"
        for at, (title, row) in enumerate(zip(rows, cells, strict=True))
    )
    return (
        '<div class="sampling-lab-scroll"><table class="sampling-lab-grid" '
        f'style="min-width:{150 + 190 * len(seeds)}px">'
        f'<tr><th class="corner"></th>{head}</tr>{body}</table></div>'
    )


def two_texts_html(
    reference: tuple[str, Generation], other: tuple[str, Generation], at: int | None
) -> str:
    """Return two texts, each after its name, one below the other, as HTML.

    Args:
        reference: the name and the first text.
        other: the name and the second text.
        at: the index of the first token that differs, from 0; None if none does.
    """
    rows = [(*reference, None), (*other, at)]
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>'
        + _cell_html(Cell(text.params, text, first), row == 0, {})
        + "</tr>"
        for row, (name, text, first) in enumerate(rows)
    )
    return f'<table class="sampling-lab-grid">{body}</table>'


def answers_html(answers: Mapping[str, int], names: Mapping[str, str]) -> str:
    """Return the distinct texts with their names, counts and bars, as HTML."""
    total = sum(answers.values())
    title = counted(len(answers), "distinct answer")
    rows = "".join(
        f'<tr><td class="name">{names[text]}</td><td class="bar">'
        f'<div><span style="width:{100 * count / total:.1f}%"></span></div></td>'
        f'<td class="count">{count} of {total}</td>'
        f'<td class="answer">{_running(text)}</td></tr>'
        for text, count in list(answers.items())[:SHOWN_ANSWERS]
    )
    left = len(answers) - SHOWN_ANSWERS
    more = f"<div>… and {left} more</div>" if left > 0 else ""
    return (
        f'<div class="sampling-lab-answers"><b>{title}</b> in {counted(total, "run")}'
        f"<table>{rows}</table>{more}</div>"
    )


def answer_names(answers: Mapping[str, int]) -> dict[str, str]:
    """Return a short name for each text: A to Z, then A2 and so on."""
    letters = len(ascii_uppercase)
    return {
        text: ascii_uppercase[at % letters] + (str(at // letters + 1) * (at >= letters))
        for at, text in enumerate(answers)
    }


def _running(text: str) -> str:
    """Return text in one line, as HTML; its spaces stay spaces."""
    return html.escape(visible(text).replace("␣", " "))


def _row_head(title: str, first: Cell) -> str:
    words = html.escape(title).replace(", ", ",<br>")
    notes = "".join(
        f"<small>{html.escape(note)}</small>" for note in first.generation.notes
    )
    return f'<th scope="row">{words}{notes}</th>'


def _cell_html(cell: Cell, is_reference: bool, names: Mapping[str, str]) -> str:
    result = cell.generation
    steps, at = result.all_steps, cell.first_difference
    name = names.get(result.text, "")
    ending = _ENDINGS.get(result.finish_reason, "")
    foot = counted(len(result.token_ids), "token") + ending
    return (
        f'<td{" class=reference" if is_reference else ""}><div class="head">'
        f'<b class="name">{name}</b> {_verdict(is_reference, at)}</div>'
        f'<div class="tokens">{_tokens(steps, at, is_reference)}</div>'
        f'<div class="foot">{foot}</div></td>'
    )


def _verdict(is_reference: bool, at: int | None) -> str:
    if is_reference:
        return "reference"
    return "= reference" if at is None else f"≠ at token {at + 1}"


def _tokens(steps: Sequence[Step], at: int | None, is_reference: bool) -> str:
    """Return chips: those before `at` are dimmed, the one there is marked."""
    chips = [token_chip(step, 'class="t"') for step in steps]
    if is_reference:
        return "<wbr>".join(chips) or "…"
    shared = len(chips) if at is None else at
    parts = chips[:shared]
    if parts:
        parts = ['<span class="shared">' + "<wbr>".join(parts) + "</span>"]
    if at is not None:
        chip = chips[at] if at < len(chips) else "<i>nothing more</i>"
        parts.append(f'<mark aria-label="first difference">{chip}</mark>')
    return "<wbr>".join([*parts, *chips[shared + 1 :]]) or "…"


STYLE = style_sheet(Path(__file__).with_name("compare.css"))
"""What the table and the answers need in addition to the panels' own style."""
