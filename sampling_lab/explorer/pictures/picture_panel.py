"""What every panel has: controls beside a picture, one for each tab."""

from __future__ import annotations

import html
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from ...sampling.notes import idle
from ...sampling.params import SamplingParams
from ..controls.settings import Controls
from ..panel.event_loop import Throttle
from ..panel.lab_widget import LabWidget, html_line, named_box
from .static_image import Words, static_image
from .step_view import StepView
from .tab import Picture
from .tabs import TABS, Pictures

BETWEEN_PICTURES = 0.012
"""Seconds left to everything else between two pictures."""


class PicturePanel(LabWidget):
    """Controls on the left, the picture of a tab on the right, the rest below.

    A subclass says what there is to see (`view`); the panel draws it after any
    change, once for any number of changes, and shows errors in its status line. Only
    the tab that is open is drawn.

    Args:
        params: the parameters to begin with.
        vocab_size: the end of top-k.
        presets: settings to choose from by name.
        tabs: which tabs there are, of `TABS`.

    Attributes:
        controls: the sliders and boxes; `controls.params` is what is in force.
        tab: the buttons that choose what is drawn; its value is the tab's name.
        picture: the image widget.
        shown: what `picture` shows, with its caption and the rows behind it.
        title: the line above it: what is shown.
        caption: the line of numbers under it.
        refresh: ask it for a new picture.
    """

    shown: Picture | None = None

    def __init__(
        self,
        params: SamplingParams,
        vocab_size: int,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        tabs: Sequence[str] = TABS,
    ) -> None:
        super().__init__()
        self.refresh = Throttle(self.home, self._refresh, BETWEEN_PICTURES)
        self.controls = Controls(params, vocab_size, presets)
        self.pictures = Pictures()
        self.tab = _tab_buttons(tabs)
        self.picture = _picture(self.pictures.width)
        self.title, self.caption = html_line("title"), html_line("caption")
        self.controls.observe(self._params_changed, "params")
        self.controls.observe(self._problem_changed, "problem")
        self.tab.observe(self._tab_chosen, "value")

    def arrange(
        self,
        *,
        head: Sequence[widgets.Widget] = (),
        inputs: Sequence[widgets.Widget] = (),
        actions: Sequence[widgets.Widget] = (),
        below: Sequence[widgets.Widget] = (),
    ) -> None:
        """Put the widgets in their places: above, over and under the sliders, below."""
        left = [*inputs, self.controls, *actions, self.status]
        left = named_box(widgets.VBox, "left", left)
        right = named_box(
            widgets.VBox, "right", [self.tab, self.title, self.picture, self.caption]
        )
        middle = named_box(widgets.HBox, "middle", [left, right])
        self.lay_out(*head, middle, *below)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Add a still, for pages that show a saved notebook without a kernel."""
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if self.shown:
            width = self.pictures.width
            title = html.unescape(self.title.value)
            png = static_image(
                self.shown.png, width, title, self.shown.caption, self.paragraphs()
            )
            data["image/png"] = b64encode(png).decode("ascii")
            metadata = {**metadata, "image/png": {"width": width}}
        return data, metadata

    def paragraphs(self) -> list[Words]:
        """Return what a still is to say besides the picture."""
        return [Words("settings", self.params.describe())]

    @property
    def params(self) -> SamplingParams:
        """The parameters in force; setting them moves the controls."""
        return self.controls.params

    @params.setter
    def params(self, params: SamplingParams) -> None:
        self.controls.params = params

    @abstractmethod
    def view(self) -> StepView:
        """Return what there is to see now."""

    def redraw(self) -> None:
        """Draw what there is to see, at once."""
        view = self.view()
        self.shown = self.pictures.draw(self.tab.value, view)
        # Of other settings than these the ledger says nothing.
        of_these = view.ledger if view.params == self.params else None
        reasons = idle(self.params, of_these)
        self.picture.value = self.shown.png
        self.caption.value = html.escape(self.shown.caption)
        self.title.value = html.escape(self.pictures.title(self.tab.value, view))
        self.controls.show_idle(reasons)

    def problems(self) -> list[str]:
        """Return what is wrong now; an input that was refused comes first."""
        return [self.controls.problem, *super().problems()]

    def draw_first(self) -> None:
        """Draw without waiting for the loop: a saved notebook keeps this picture."""
        self._refresh()

    def _refresh(self) -> None:
        if self.run_showing_errors(self.redraw):
            self.picture.remove_class("sampling-lab-stale")
        else:
            self.picture.add_class("sampling-lab-stale")

    def _params_changed(self, change: dict[str, Any]) -> None:
        self.refresh.request()

    def _tab_chosen(self, change: dict[str, Any]) -> None:
        self.refresh.request()

    def _problem_changed(self, change: dict[str, Any]) -> None:
        self.show_status()


def _tab_buttons(tabs: Sequence[str]) -> widgets.ToggleButtons:
    buttons = widgets.ToggleButtons(
        options=list(tabs), style=widgets.ToggleButtonsStyle(button_width="auto")
    )
    buttons.add_class("sampling-lab-tabs")
    return buttons


def _picture(width: int) -> widgets.Image:
    picture = widgets.Image(
        format="png",
        width=width,
        layout=widgets.Layout(max_width="100%", height="auto"),
    )
    picture.add_class("sampling-lab-picture")
    return picture
