"""The small widgets that panels are made of, and changes that no person made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets

from .event_loop import EventLoop

Handler = Callable[[dict[str, Any]], None]
"""What `observe` calls with a change."""


class Column(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Widgets one below the other; the base of all that are made of others."""


def button(
    loop: EventLoop, action: Callable[[], None], label: str, icon: str
) -> widgets.Button:
    """Return a button that runs `action` on the loop; its docstring is the tooltip."""
    tooltip = (inspect.getdoc(action) or label).splitlines()[0]
    made = widgets.Button(description=label, icon=icon, tooltip=tooltip)
    made.on_click(partial(_clicked, loop, action))
    return made


def _clicked(
    loop: EventLoop, action: Callable[[], None], button: widgets.Button
) -> None:
    loop.post(action)


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


def named_box(
    box: type[widgets.Box], name: str, children: Sequence[widgets.Widget]
) -> widgets.Box:
    """Return a box of widgets with a class name for the style sheet."""
    made = box(list(children))
    made.add_class(f"sampling-lab-{name}")
    return made


def html_line(name: str, value: str = "") -> widgets.HTML:
    """Return a line of HTML with a class name for the style sheet."""
    made = widgets.HTML(value)
    made.add_class(f"sampling-lab-{name}")
    return made
