"""Base class of all lab widgets: event loop, error display, status line."""

from __future__ import annotations

import html
import warnings
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

import anywidget
import ipywidgets as widgets

from ...errors import SamplingLabError
from .event_loop import EventLoop
from .parts import Column, html_line, style_sheet
from .rerun import close_earlier_runs

STYLE = style_sheet(Path(__file__).with_name("style.css"))
"""How all panels look."""


class Keys(anywidget.AnyWidget):
    """Switch off shortcuts for keys that a panel uses, on every page it is sent to.

    It need not be shown. The arrows then move sliders and Enter presses buttons, in
    Notebook 7 as in JupyterLab. Other keys, and those with Control, Alt or Command,
    remain shortcuts, except for plain keys among the tokens.
    """

    # As text: anywidget keeps every widget whose page is a file, to watch that file.
    _esm = Path(__file__).with_name("shortcuts.js").read_text(encoding="utf-8")


class LabWidget(Column):
    """Widgets with a status line, which also shows errors.

    A panel that a cell of a notebook made is closed when that cell runs again.

    Attributes:
        loop: the event loop on which all work is done.
        status: the status line; errors are red.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loop = EventLoop()
        self.status = html_line("status")
        self._shortcuts = Keys()
        self._errors = {"input": ""}
        self._warnings: tuple[str, ...] = ()
        close_earlier_runs(self)

    @property
    def is_closed(self) -> bool:
        """Whether the widgets are gone, and every action is ignored."""
        return bool(self.comm is None)

    def close(self) -> None:
        """Stop everything and remove this widget with all widgets inside it.

        `ipywidgets` alone would leave those in the kernel and on the page.
        """
        if self.is_closed:
            return
        super().close()
        self.loop.close()
        for widget in _widgets_in(self, set()):
            widget.close()

    def lay_out(self, *parts: widgets.Widget) -> None:
        """Show widgets one below the other; `status` must be among or in them."""
        self.children = [widgets.HTML(STYLE), *parts]
        self.add_class("sampling-lab")

    def __repr__(self) -> str:
        """Return one line, for where no widget can be shown."""
        return f"{type(self).__name__}({self._subject()})"

    @abstractmethod
    def redraw(self) -> None:
        """Show everything, at once."""

    @abstractmethod
    def _subject(self) -> str:
        """Return what this panel shows, for its repr."""

    @abstractmethod
    def _status(self) -> str:
        """Return the status line while nothing is wrong."""

    def draw_now(self) -> bool:
        """Redraw without waiting for the loop; return whether it succeeded."""
        return self.run_showing_errors(self.redraw, "view")

    def run_showing_errors(
        self, action: Callable[[], None], what: str = "action"
    ) -> bool:
        """Run an action, show its error and warnings; return whether it succeeded.

        A widget's handler has no caller who could see an exception. Once the panel is
        closed, nothing runs.

        Args:
            action: what to run.
            what: the kind of action; its error is shown until one of its kind succeeds.
        """
        if self.is_closed:
            return False
        problem = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                action()
            except SamplingLabError as error:
                problem = str(error)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        self._warnings = tuple(dict.fromkeys(str(each.message) for each in caught))
        self.show_error(what, problem)
        return not problem

    def show_error(self, what: str, problem: str) -> None:
        """Show the error of one kind of action, or of "input"; "" removes it."""
        self._errors[what] = problem
        self.show_status()

    def clear_error(self, what: str) -> None:
        """Forget the error of one kind of action: what caused it has changed."""
        self._errors.pop(what, None)

    def problems(self) -> list[str]:
        """Return the current errors, that of an input first."""
        return [problem for problem in self._errors.values() if problem]

    def show_status(self) -> None:
        """Show the first error, or else the status and any warnings."""
        if self.is_closed:
            return
        if errors := self.problems():
            self.status.value = f'<span role="alert">{html.escape(errors[0])}</span>'
        else:
            lines = [self._status(), *self._warnings]
            self.status.value = html.escape(" · ".join(filter(None, lines)))


def _widgets_in(value: object, found: set[widgets.Widget]) -> set[widgets.Widget]:
    """Return `found` with all widgets that a value holds added, itself included.

    Layouts and styles are widgets too, and a widget that is not on the page now is
    held by an attribute alone.
    """
    if isinstance(value, widgets.Widget) and value not in found:
        found.add(value)
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _widgets_in(item, found)
    return found
