"""How a grid of runs looks: a table of chips, and the distinct answers under it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import ascii_uppercase

from ...generation.display import surprisal
from ...generation.grid import Cell
from ...generation.results import Generation, Step
from ...text import visible

SHOWN_ANSWERS = 12
"""The rarer ones are only counted."""

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

    In a cell the tokens that it shares with the reference step back, and the first
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


def beside_html(
    reference: tuple[str, Generation], other: tuple[str, Generation], at: int | None
) -> str:
    """Return two texts, each with its name, one below the other, as HTML.

    Args:
        reference: the first, with its name.
        other: the second.
        at: the first token in which it differs, from 0; None is nowhere.
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
    runs = f"{total} run{'' if total == 1 else 's'}"
    title = f"{len(answers)} distinct answer{'' if len(answers) == 1 else 's'}"
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
        f'<div class="sampling-lab-answers"><b>{title}</b> in {runs}'
        f"<table>{rows}</table>{more}</div>"
    )


def answer_names(answers: Mapping[str, int]) -> dict[str, str]:
    """Return a name for each text, from A to Z, then A2 and so on."""
    letters = len(ascii_uppercase)
    return {
        text: ascii_uppercase[at % letters] + (str(at // letters + 1) * (at >= letters))
        for at, text in enumerate(answers)
    }


def _running(text: str) -> str:
    """Return text in one line, as HTML; its spaces need no sign."""
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
    count = len(result.token_ids)
    foot = f"{count} token{'' if count == 1 else 's'}" + _ENDINGS.get(
        result.finish_reason, ""
    )
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
    """Return chips: those up to `at` are shared, that one is marked."""
    chips = [_step_chip(step) for step in steps]
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


def _step_chip(step: Step) -> str:
    return _chip(
        step.token_text,
        f"id {step.token_id} · raw {step.raw_prob:.3f} · final {step.final_prob:.3f} "
        f"· rank {step.rank} · {surprisal(step):.1f} bits",
        "\n" in step.text,
    )


@lru_cache(20_000)
def _chip(text: str, title: str, breaks: bool) -> str:
    shown = html.escape(text)
    for sign in ("␣", "⏎", "⇥"):  # they step back behind the letters
        shown = shown.replace(sign, f"<s>{sign}</s>")
    return f'<span class="t" title="{title}">{shown}</span>' + "<br>" * breaks


STYLE = """<style>
.sampling-lab.sampling-lab-compare { max-width: 1500px; }
.sampling-lab-asked { gap: 6px 20px; flex-wrap: wrap; align-items: stretch; }
.sampling-lab-asked > .widget-vbox { gap: 4px; }
.sampling-lab-asked > :first-child { flex: 3 1 420px; min-width: 260px; }
.sampling-lab-asked > :last-child { flex: 1 1 240px; min-width: 220px; }
.sampling-lab-scroll { overflow-x: auto; }
.sampling-lab .sampling-lab-grid {
  border-collapse: separate; border-spacing: 6px; margin: 0 -6px; width: 100%;
  table-layout: fixed; background: none;
}
.sampling-lab-grid th, .sampling-lab-grid td {
  text-align: left; vertical-align: top; padding: 6px 9px; border: 0;
  white-space: normal; background: none;
}
.sampling-lab-grid th { font-size: 13px; font-weight: 600; line-height: 1.35; }
.sampling-lab-grid th[scope=col] { padding-bottom: 0; }
.sampling-lab-grid th.corner, .sampling-lab-grid th[scope=row] {
  width: 132px; padding-left: 0;
}
.sampling-lab-grid th small {
  display: block; margin-top: 5px; font-weight: 400; font-size: 12px;
  color: var(--jp-ui-font-color2, inherit);
}
.sampling-lab-grid td {
  border: 1px solid rgba(128, 128, 128, .4); border-radius: 7px;
}
.sampling-lab-grid td.reference {
  border: 2px solid var(--jp-ui-font-color1, currentColor); padding: 5px 8px;
}
.sampling-lab-grid .head, .sampling-lab-grid .foot {
  font-size: 13px; color: var(--jp-ui-font-color2, inherit);
  font-variant-numeric: tabular-nums;
}
.sampling-lab-grid td.reference .head {
  font-weight: 600; color: var(--jp-ui-font-color1, inherit);
}
.sampling-lab-compare .name {
  display: inline-block; min-width: 1.5em; box-sizing: border-box; padding: 0 .35em;
  margin-right: 3px; border-radius: 4px; text-align: center; font-weight: 700;
  background: rgba(128, 128, 128, .22); color: var(--jp-ui-font-color1, inherit);
}
.sampling-lab-compare .name:empty { display: none; }
.sampling-lab-grid .tokens {
  margin: 5px 0; font-family: var(--jp-code-font-family, monospace); font-size: 14px;
  line-height: 1.75; overflow-wrap: anywhere; min-height: 1.75em;
}
.sampling-lab-grid .t {
  white-space: pre-wrap; background: rgba(128, 128, 128, .2); border-radius: 3px;
  padding: 1px 0; margin-right: 1px;
}
.sampling-lab-grid s { text-decoration: none; opacity: .4; }
.sampling-lab-grid .shared { opacity: .68; }
.sampling-lab-grid .shared .t { background: none; }
.sampling-lab-grid mark {
  background: #f0932b; color: #111; font-weight: 700; border-radius: 4px;
  padding: 1px 4px 1px 3px; margin: 0 4px 0 3px;
  box-shadow: 0 0 0 1.5px var(--jp-ui-font-color1, currentColor);
  -webkit-box-decoration-break: clone; box-decoration-break: clone;
}
.sampling-lab-grid mark::before { content: "≠"; margin-right: 3px; }
.sampling-lab-grid mark .t { background: none; }
.sampling-lab-answers { font-size: 13px; }
.sampling-lab .sampling-lab-answers table {
  width: 100%; table-layout: fixed; margin: 5px 0 0; border-spacing: 0 3px;
  border-collapse: separate;
}
.sampling-lab-answers td {
  border: 0; padding: 1px 10px 1px 0; text-align: left; vertical-align: middle;
  line-height: 1.4;
}
.sampling-lab-answers td.name { width: 26px; padding: 1px .35em; display: table-cell; }
.sampling-lab-answers td.bar { width: 140px; padding-left: 10px; }
.sampling-lab-answers td.bar div {
  background: rgba(128, 128, 128, .2); border-radius: 3px; overflow: hidden;
}
.sampling-lab-answers td.bar span {
  display: block; height: 11px; min-width: 2px; background: #3b82c4;
}
.sampling-lab-answers td.count {
  width: 64px; white-space: nowrap; font-variant-numeric: tabular-nums;
}
.sampling-lab-answers td.answer {
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  font-family: var(--jp-code-font-family, monospace);
}
</style>"""
"""What the table and the answers need besides the boards' own style."""
