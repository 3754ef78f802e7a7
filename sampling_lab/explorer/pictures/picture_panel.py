"""The controls and the picture that they change, one for each tab."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from ...sampling.notes import idle
from ...sampling.params import SamplingParams
from ..controls.settings import Controls
from ..panel.event_loop import Throttle
from ..panel.lab_widget import LabWidget
from ..panel.parts import Column, html_line, named, part, side_by_side
from .static_image import static_image
from .step_view import StepView
from .tab import Picture
from .tabs import TABS, Pictures

BETWEEN_PICTURES = 0.012
"""Seconds between two pictures, in which other events are handled."""


class PicturePanel:
    """The controls, and the picture of one step under tabs.

    Any change of the tab asks for a redraw, once for any number of changes; an error
    goes to the status line and dims the picture. Only the open tab is drawn.

    Args:
        owner: the widget that has this panel; its `redraw` calls `show`.
        params: the first parameters.
        vocab_size: the end of top-k.
        presets: settings to choose from by name.
        tabs: the names of the tabs, from `TABS`.

    Attributes:
        controls: the sliders and boxes.
        params: the current parameters; setting them moves the controls.
        tab: the buttons of the tabs; its value is the open tab's name.
        title: the line above the picture, about the step that is shown.
        image: the image widget.
        caption: the line of numbers below it.
        shown: what `image` shows, with its caption and the rows behind it.
        refresh: request a redraw from it.
    """

    params: SamplingParams = part("controls.params", settable=True)

    def __init__(
        self,
        owner: LabWidget,
        params: SamplingParams,
        vocab_size: int,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        tabs: Sequence[str] = TABS,
    ) -> None:
        self._owner, self._pictures = owner, Pictures()
        self.shown: Picture | None = None
        self.refresh = Throttle(owner.loop, self.draw_now, BETWEEN_PICTURES)
        self.controls = Controls(params, vocab_size, presets)
        fitting = widgets.ToggleButtonsStyle(button_width="auto")
        self.tab = widgets.ToggleButtons(options=list(tabs), style=fitting)
        self.image = widgets.Image(
            format="png",
            width=self._pictures.width,
            layout=widgets.Layout(max_width="100%", height="auto"),
        )
        self.title, self.caption = html_line("title"), html_line("caption")
        self.controls.observe(lambda c: owner.show_error("input", c["new"]), "problem")
        self.tab.observe(self.refresh.request, "value")

    def layout(
        self, above: Sequence[widgets.Widget], below: Sequence[widgets.Widget]
    ) -> widgets.Box:
        """Return the sliders, between other widgets, on the left of the picture."""
        left = [*above, self.controls, *below, self._owner.status]
        tab, image = named("tabs", self.tab), named("picture", self.image)
        right = [tab, self.title, image, self.caption]
        columns = named("left", Column(left)), named("right", Column(right))
        return side_by_side("middle", *columns)

    def show(self, view: StepView) -> None:
        """Draw a step under the open tab."""
        self.shown = self._pictures.draw(self.tab.value, view)
        # A ledger of other settings cannot show which of these have no effect.
        ledger = view.ledger if view.params == self.params else None
        self.image.value = self.shown.png
        self.caption.value = html.escape(self.shown.caption)
        self.title.value = html.escape(self.shown.title)
        self.controls.show_idle(idle(self.params, ledger))

    def draw_now(self) -> None:
        """Redraw without waiting for the loop, and dim the picture after an error."""
        image = self.image
        change = image.remove_class if self._owner.draw_now() else image.add_class
        change("sampling-lab-stale")

    def add_static_image(self, bundle: Any, **texts: str) -> Any:
        """Add an image to a MIME bundle, for pages that show it without a kernel.

        Args:
            bundle: what `_repr_mimebundle_` returned: data, or data and metadata.
            texts: what to write below the picture, after the settings, by name.
        """
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if self.shown:
            width = self._pictures.width
            texts = {"settings": self.params.describe(), **texts}
            png = static_image(self.shown, width, texts)
            data["image/png"] = b64encode(png).decode("ascii")
            metadata = {**metadata, "image/png": {"width": width}}
        return data, metadata
