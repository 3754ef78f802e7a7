"""What every widget of the lab has: a loop of its own, a guard, a status line."""

from __future__ import annotations

import html
import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets
from ipywidgets import Button

from ...errors import SamplingLabError
from .event_loop import EventLoop
from .rerun import CELLS, current_execution
from .shortcuts import Keys
from .style import STYLE


class ClosableEventLoop(EventLoop):
    """A board's loop: once closed, what was posted or is posted then never happens."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closed = False

    def post(self, callback: Callable[[], None], delay: float = 0.0) -> None:
        """Call `callback` on the loop, unless the board is closed by then."""
        super().post(partial(self._call, callback), delay)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine on the loop, until the board is closed."""
        if self._is_closed:
            work.close()
        else:
            super().start(work)

    def close(self) -> None:
        """End what runs, and let nothing begin; from any thread."""
        self._is_closed = True
        if self.is_running:
            self._loop.call_soon_threadsafe(self._cancel)

    def _call(self, callback: Callable[[], None]) -> None:
        if not self._is_closed:
            callback()

    def _cancel(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()


class LabWidget(widgets.VBox):
    """Widgets with a status line, which also tells what went wrong.

    A board that a cell of a notebook makes is closed when that cell runs again.

    Attributes:
        home: the event loop all work is done on.
        status: how it stands; errors are red.
    """

    def __init__(self) -> None:
        super().__init__()
        self.home = ClosableEventLoop()
        self.status = html_line("status")
        self._shortcuts = Keys()
        self._troubles: dict[str, str] = {}
        self._warnings: tuple[str, ...] = ()
        CELLS.add(self, current_execution())

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be done here any more."""
        return self.comm is None

    def close(self) -> None:
        """Stop everything and remove the widgets, with all that are inside them.

        `ipywidgets` alone would leave these in the kernel and on the page.
        """
        if self.is_closed:
            return
        super().close()
        self.home.close()
        for widget in _reached_from(self):
            widget.close()

    def lay_out(self, *parts: widgets.Widget) -> None:
        """Put widgets one below the other; `status` is to be among or in them."""
        self.children = [widgets.HTML(STYLE), *parts]
        self.add_class("sampling-lab")

    def __repr__(self) -> str:
        """Return one line; it stands where no widget can."""
        return f"{type(self).__name__}({self._subject()})"

    @abstractmethod
    def _subject(self) -> str:
        """Return what this is about, for its repr."""

    @abstractmethod
    def _status(self) -> str:
        """Return the status line while nothing is wrong."""

    def run_showing_errors(
        self, action: Callable[[], None], what: str = "view"
    ) -> bool:
        """Do something, show its error and warnings; return whether it went well.

        A widget's handler has no caller who could see an exception. Once the board is
        closed, nothing is done.

        Args:
            action: what to do.
            what: errors of one kind stay until this kind of action goes well.
        """
        if self.is_closed:
            return False
        trouble = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                action()
            except SamplingLabError as error:
                trouble = str(error)
            except Exception as error:
                trouble = f"{type(error).__name__}: {error}"
        self._troubles[what] = trouble
        self._warnings = tuple(dict.fromkeys(str(each.message) for each in caught))
        self.show_status()
        return not trouble

    def clear_error(self, what: str) -> None:
        """Drop the error of one kind of action: what caused it has changed."""
        self._troubles.pop(what, None)

    def problems(self) -> list[str]:
        """Return what is wrong now, most pressing first; "" is nothing."""
        return list(self._troubles.values())

    def show_status(self) -> None:
        """Show the first error there is, or else the status and any warnings."""
        if self.is_closed:
            return
        if error := next(filter(None, self.problems()), ""):
            self.status.value = f'<span role="alert">{html.escape(error)}</span>'
        else:
            lines = [self._status(), *self._warnings]
            self.status.value = html.escape(" · ".join(filter(None, lines)))


def button(
    home: EventLoop, action: Callable[[], None], label: str, icon: str
) -> Button:
    """Return a button whose action is done on the board's own loop."""
    made = widgets.Button(
        description=label, icon=icon, tooltip=inspect.getdoc(action).splitlines()[0]
    )
    made.on_click(partial(_clicked, home, action))
    return made


def _clicked(
    home: EventLoop, action: Callable[[], None], button: widgets.Button
) -> None:
    home.post(action)


def named_box(
    box: type[widgets.Box], name: str, children: Sequence[widgets.Widget]
) -> widgets.Box:
    """Return a box of widgets with its own name for `style`."""
    made = box(list(children))
    made.add_class(f"sampling-lab-{name}")
    return made


def html_line(name: str, value: str = "") -> widgets.HTML:
    """Return a line of HTML with its own name for `style`."""
    made = widgets.HTML(value)
    made.add_class(f"sampling-lab-{name}")
    return made


def _reached_from(board: LabWidget) -> set[widgets.Widget]:
    """Return all widgets that a board holds, in its traits or its attributes.

    Layouts and styles are widgets too, and a part that is on no page now is held by
    an attribute alone.
    """
    found: set[widgets.Widget] = set()
    todo: list[widgets.Widget] = [board]
    while todo:
        new = set(_widgets_in(vars(todo.pop()))) - found - {board}
        found |= new
        todo += new
    return found


def _widgets_in(value: object) -> Iterator[widgets.Widget]:
    if isinstance(value, widgets.Widget):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _widgets_in(item)
