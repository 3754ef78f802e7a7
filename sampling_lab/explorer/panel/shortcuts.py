"""Keys pressed in a panel are for the panel, not for the notebook around it."""

from __future__ import annotations

from pathlib import Path

import anywidget


class Keys(anywidget.AnyWidget):
    """On every page that it is sent to, keys that a panel uses are no shortcuts.

    It works without being shown. The arrows then move sliders and Enter presses
    buttons, in Notebook 7 as in JupyterLab. Other keys, and those with Control, Alt or
    Command, stay the notebook's, but for plain keys among the tokens.
    """

    # As text: anywidget keeps every widget whose page is a file, to watch that file.
    _esm = Path(__file__).with_name("shortcuts.js").read_text(encoding="utf-8")
