"""Keep keys that are pressed in a panel from the notebook's shortcuts."""

from __future__ import annotations

from pathlib import Path

import anywidget


class Keys(anywidget.AnyWidget):
    """Switch off shortcuts for keys that a panel uses, on every page it is sent to.

    It need not be shown. The arrows then move sliders and Enter presses buttons, in
    Notebook 7 as in JupyterLab. Other keys, and those with Control, Alt or Command,
    remain shortcuts, except for plain keys among the tokens.
    """

    # As text: anywidget keeps every widget whose page is a file, to watch that file.
    _esm = Path(__file__).with_name("shortcuts.js").read_text(encoding="utf-8")
