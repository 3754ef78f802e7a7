"""Keys pressed in a panel are for the panel, not for the notebook around it."""

from __future__ import annotations

from pathlib import Path

import anywidget
import ipywidgets as widgets


class Keys(anywidget.AnyWidget):
    """A part without looks: on its page, plain keys in panels are no shortcuts.

    The arrows then move sliders and Enter presses buttons, in JupyterLab and in
    Notebook 7. Keys with Control, Alt or Command, Shift-Enter and Escape stay the
    notebook's.
    """

    # As text: anywidget keeps every widget whose page is a file, to watch that file.
    _esm = Path(__file__).with_name("keys.js").read_text(encoding="utf-8")

    def __init__(self) -> None:
        super().__init__(layout=widgets.Layout(display="none"))
