"""Keys pressed in a panel are for the panel, not for the notebook around it."""

from __future__ import annotations

from pathlib import Path

import anywidget


class Keys(anywidget.AnyWidget):
    """On every page that it is sent to, plain keys in panels are no shortcuts.

    It works without being shown. The arrows then move sliders and Enter presses
    buttons, in Notebook 7 as in JupyterLab. Keys with Control, Alt or Command,
    Shift-Enter and Escape stay the notebook's.
    """

    # As text: anywidget keeps every widget whose page is a file, to watch that file.
    _esm = Path(__file__).with_name("keys.js").read_text(encoding="utf-8")
