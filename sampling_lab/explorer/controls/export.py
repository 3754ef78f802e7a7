"""Export from a panel: code to paste, and files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ParameterError
from ...generation import saved_json
from ..panel import parts

TARGETS = {
    "notebook cell": "sampling_lab",
    "transformers": "transformers",
    "command line": "cli",
    "vLLM": "vllm",
    "llama.cpp": "llama.cpp",
}
"""The targets of `as_code`, by the names that the drop-down shows."""


class Export(parts.Column):
    """Buttons to copy code and to save, and the box that shows the code.

    Args:
        copy_code: shows the code for `target` in `code`.
        save: writes files into `folder`.

    Attributes:
        target: what the code is for; its value is a target of `as_code`.
        folder: where files are saved.
        code: the box with the code, hidden while it is empty.
    """

    def __init__(self, copy_code: Callable[[], None], save: Callable[[], None]) -> None:
        self._copy_code = copy_code
        self.copy_button = parts.button(copy_code, "Copy code", "copy")
        self.target = parts.dropdown(
            "What the code is for", TARGETS.items(), width="140px"
        )
        self.save_button = parts.button(save, "Save", "save")
        self.folder = parts.text_box(
            "The folder for the picture, its table and the texts",
            "saved",
            width="160px",
        )
        self.code = parts.named("code", parts.text_area("Select it all and copy it"))
        saved = [self.save_button, parts.label("to", "auto"), self.folder]
        row = parts.side_by_side("buttons", self.copy_button, self.target, *saved)
        super().__init__([row, self.code])
        self.show_code("")
        self.target.observe(self._target_chosen, "value")

    def show_code(self, code: str) -> None:
        """Show code; "" hides the box."""
        self.code.value = code
        self.code.rows = code.count("\n") + 1
        self.code.layout.display = "flex" if code else "none"

    def _target_chosen(self, change: dict[str, Any]) -> None:
        """Write the code again, if some is on the screen."""
        if self.code.value:
            self._copy_code()


def save_files(
    folder: str | Path,
    name: str,
    png: bytes,
    table: Sequence[Mapping[str, Any]],
    trace: Mapping[str, Any] | None,
) -> list[Path]:
    """Write a picture, its table and the texts; no file is overwritten.

    Args:
        folder: created if it is missing.
        name: the start of the file names; a number follows.
        png: the picture.
        table: rows of one kind, as CSV.
        trace: strict JSON data; None where there is no text.

    Returns:
        The files, `name-N.png`, `.csv` and `.json`.

    Raises:
        ParameterError: they cannot be written.
    """
    folder = Path(folder)
    try:
        folder = folder.expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        stem = _free_stem(folder, name)
        files = [folder / f"{stem}{suffix}" for suffix in (".png", ".csv", ".json")]
        files[0].write_bytes(png)
        files[1].write_text(csv_text(table), encoding="utf-8", newline="")
        if trace is None:
            return files[:2]
        saved_json.write(files[2], trace)
    except (OSError, RuntimeError, ValueError) as error:  # no such user, a null byte
        reason = getattr(error, "strerror", None) or str(error)
        raise ParameterError(
            f"folder must be one that can be written to, got {str(folder)!r} "
            f"({reason}); choose another"
        ) from None
    return files


def csv_text(table: Sequence[Mapping[str, Any]]) -> str:
    r"""Return rows as CSV, with a line of names first.

    >>> csv_text([{"token": 'a"b', "raw": 0.5}])
    'token,raw\r\n"a""b",0.5\r\n'
    """
    names = list(dict.fromkeys(name for row in table for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def _free_stem(folder: Path, name: str) -> str:
    """Return the first numbered name that no file in a folder has."""
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".-")
    number = 1
    while any(folder.glob(f"{plain}-{number}.*")):
        number += 1
    return f"{plain}-{number}"
