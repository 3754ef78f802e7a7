"""What every panel has: controls beside a picture, a caption, a status line."""

from __future__ import annotations

import html
import inspect
import warnings
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets
from ipywidgets import Button

from ..chain import Ledger
from ..errors import SamplingLabError
from ..params import SamplingParams
from ..plots import caption
from ..plots._labels import Tokens
from .canvas import DistributionCanvas, View
from .controls import Controls
from .pacing import Home, Pacer
from .style import STYLE

BETWEEN_PICTURES = 0.012
"""Seconds left to everything else between two pictures."""


class Panel(widgets.VBox):
    """Controls on the left, the distribution on the right, the rest below.

    A subclass says what there is to see (`view`); the panel draws it after any
    change, once for any number of changes, and shows errors in its status line.

    Args:
        params: the parameters to begin with.
        vocab_size: the end of top-k.

    Attributes:
        controls: the sliders and boxes; `controls.params` is what is in force.
        picture: the image widget.
        title: the line above it: what is shown.
        caption: the line of numbers under it.
        status: the last line; errors are red.
        home: the event loop all work is done on.
        refresh: ask it for a new picture.
    """

    def __init__(self, params: SamplingParams, vocab_size: int) -> None:
        super().__init__()
        self.home = Home()
        self.refresh = Pacer(self.home, self._refresh, BETWEEN_PICTURES)
        self.controls = Controls(params, vocab_size)
        self.canvas = DistributionCanvas()
        self.picture = _picture(self.canvas)
        self.title, self.caption = line("title"), line("caption")
        self.status = line("status")
        self._troubles: dict[str, str] = {}
        self._warnings: tuple[str, ...] = ()
        self.controls.observe(self._params_changed, "params")
        self.controls.observe(self._problem_changed, "problem")

    def arrange(
        self,
        *,
        head: Sequence[widgets.Widget] = (),
        inputs: Sequence[widgets.Widget] = (),
        limits: Sequence[widgets.Widget] = (),
        below: Sequence[widgets.Widget] = (),
    ) -> None:
        """Put the widgets in their places: above, over and under the sliders, below."""
        left = group(widgets.VBox, "left", [*inputs, self.controls, *limits])
        right = group(widgets.VBox, "right", [self.title, self.picture, self.caption])
        middle = group(widgets.HBox, "middle", [left, right])
        self.children = [widgets.HTML(STYLE), *head, middle, *below, self.status]
        self.add_class("sampling-lab")

    def __repr__(self) -> str:
        """Return one line; it stands where no widget can."""
        return f"{type(self).__name__}({self._subject()})"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Add the picture, for pages that show a saved notebook without a kernel."""
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if self.picture.value:
            data["image/png"] = b64encode(self.picture.value).decode("ascii")
            metadata = {**metadata, "image/png": {"width": self.canvas.width}}
        return data, metadata

    @property
    def params(self) -> SamplingParams:
        """The parameters in force; setting them moves the controls."""
        return self.controls.params

    @params.setter
    def params(self, params: SamplingParams) -> None:
        self.controls.params = params

    @abstractmethod
    def view(self) -> View:
        """Return what there is to see now."""

    @abstractmethod
    def _subject(self) -> str:
        """Return what the panel is about, for its repr."""

    @abstractmethod
    def _status(self) -> str:
        """Return the status line while nothing is wrong."""

    def preview(self, ledger: Ledger, tokens: Tokens, title: str) -> View:
        """Return a view of a first token, with the one that the seed draws."""
        if self.params.seed is None:
            return View(ledger, tokens, None, f"{title} · a fresh seed at each run")
        chosen = self.params.draw()(ledger.final.logits).token_id
        who = "greedy takes"
        if not self.params.is_greedy:
            who = f"seed {self.params.seed} draws"
        return View(ledger, tokens, chosen, f"{title} · {who} {tokens(chosen)}")

    def redraw(self) -> None:
        """Draw what there is to see, at once."""
        view = self.view()
        self.picture.value = self.canvas.draw(view)
        self.title.value = html.escape(view.title)
        self.caption.value = html.escape(caption(view.ledger))

    def guard(self, action: Callable[[], None], what: str = "view") -> bool:
        """Do something, show its error and warnings; return whether it went well.

        A widget's handler has no caller who could see an exception.

        Args:
            action: what to do.
            what: errors of one kind stay until this kind of action goes well.
        """
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
        self._warnings = tuple(str(warning.message) for warning in caught)
        self.show_status()
        return not trouble

    def forget_trouble(self, what: str) -> None:
        """Drop the error of one kind of action: what caused it has changed."""
        self._troubles.pop(what, None)

    def show_status(self) -> None:
        """Show the first error there is, or else the status and any warnings."""
        errors = [self.controls.problem, *self._troubles.values()]
        if error := next(filter(None, errors), ""):
            self.status.value = f'<span role="alert">{html.escape(error)}</span>'
        else:
            lines = [self._status(), *self._warnings]
            self.status.value = html.escape(" · ".join(filter(None, lines)))

    def draw_first(self) -> None:
        """Draw without waiting for the loop: a saved notebook keeps this picture."""
        self._refresh()

    def _refresh(self) -> None:
        if self.guard(self.redraw):
            self.picture.remove_class("sampling-lab-stale")
        else:
            self.picture.add_class("sampling-lab-stale")

    def _params_changed(self, change: dict[str, Any]) -> None:
        self.refresh.request()

    def _problem_changed(self, change: dict[str, Any]) -> None:
        self.show_status()


def button(home: Home, action: Callable[[], None], label: str, icon: str) -> Button:
    """Return a button whose action is done on the panel's own loop."""
    made = widgets.Button(
        description=label, icon=icon, tooltip=inspect.getdoc(action).splitlines()[0]
    )
    made.on_click(partial(_clicked, home, action))
    return made


def _clicked(home: Home, action: Callable[[], None], button: widgets.Button) -> None:
    home.post(action)


def group(
    box: type[widgets.Box], name: str, children: Sequence[widgets.Widget]
) -> widgets.Box:
    """Return a box of widgets with its own name for `style`."""
    made = box(list(children))
    made.add_class(f"sampling-lab-{name}")
    return made


def line(name: str, value: str = "") -> widgets.HTML:
    """Return a line of HTML with its own name for `style`."""
    made = widgets.HTML(value)
    made.add_class(f"sampling-lab-{name}")
    return made


def _picture(canvas: DistributionCanvas) -> widgets.Image:
    picture = widgets.Image(
        format="png",
        width=canvas.width,
        layout=widgets.Layout(max_width="100%", height="auto"),
    )
    picture.add_class("sampling-lab-picture")
    return picture
