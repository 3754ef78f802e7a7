"""The small widgets that panels are made of, and changes that no person made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

import ipywidgets as widgets

Handler = Callable[[dict[str, Any]], None]
"""What `observe` calls with a change."""


class Column(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Widgets one below the other; the base of all that are made of others."""


def part(path: str, settable: bool = False) -> Any:
    """Return a property for an attribute of a part, such as "panel.params"."""
    owner, _, name = path.rpartition(".")

    def change(whole: object, value: object) -> None:
        setattr(attrgetter(owner)(whole), name, value)

    return property(attrgetter(path), change if settable else None)


def named(name: str, widget: widgets.Widget) -> Any:
    """Return a widget after giving it a class name for the style sheet."""
    return widget.add_class(f"sampling-lab-{name}")


def side_by_side(name: str, *parts: widgets.Widget) -> widgets.HBox:
    """Return widgets in a row that has a class name for the style sheet."""
    return named(name, widgets.HBox(parts))


def labelled(text: str, *parts: widgets.Widget) -> widgets.HBox:
    """Return the name of a control, and to its right what belongs to it."""
    return widgets.HBox([label(text), *parts])


def html_line(name: str, value: str = "") -> widgets.HTML:
    """Return a line of HTML with a class name for the style sheet."""
    return named(name, widgets.HTML(value))


def label(text: str, width: str = "84px") -> widgets.Label:
    """Return the name of a control."""
    return widgets.Label(text, layout=widgets.Layout(width=width, flex="0 0 auto"))


def button(
    action: Callable[[], None], label: str, icon: str = "", **layout: str
) -> widgets.Button:
    """Return a button that runs `action`, whose docstring is the tooltip."""
    tooltip = (inspect.getdoc(action) or label).splitlines()[0]
    made = widgets.Button(
        description=label, icon=icon, tooltip=tooltip, layout=widgets.Layout(**layout)
    )
    made.on_click(lambda clicked: action())
    return made


def dropdown(
    tooltip: str, options: Iterable[Any] = (), **layout: str
) -> widgets.Dropdown:
    """Return a drop-down; `layout` adds to a width that adapts."""
    return widgets.Dropdown(
        options=tuple(options), tooltip=tooltip, layout=_adapting(**layout)
    )


def text_box(
    tooltip: str, text: str = "", placeholder: str = "", **layout: str
) -> widgets.Text:
    """Return a text box whose value changes with Enter, or when it loses the focus."""
    return widgets.Text(
        text,
        placeholder=placeholder,
        tooltip=tooltip,
        continuous_update=False,
        layout=_adapting(**layout),
    )


def text_area(tooltip: str, text: str = "", rows: int = 3) -> widgets.Textarea:
    """Return a text box of several lines, whose value changes with every letter."""
    layout = widgets.Layout(width="auto")
    return widgets.Textarea(text, rows=rows, tooltip=tooltip, layout=layout)


def _adapting(**layout: str) -> widgets.Layout:
    return widgets.Layout(**{"width": "auto", "min_width": "0", **layout})


def offer(
    box: widgets.Dropdown, handler: Handler, options: Iterable[Any], value: Any
) -> None:
    """Set a drop-down's options and value without calling its handler.

    Setting options selects the first of them for a moment, which no person chose.
    """
    options = tuple(options)
    box.unobserve(handler, "value")
    if options != box.options:
        box.options = options
    box.value = value
    box.observe(handler, "value")


def style_sheet(file: Path) -> str:
    """Return a CSS file as a `<style>` element, for a widget or a saved page."""
    return f"<style>\n{file.read_text(encoding='utf-8')}</style>"
