"""Style sheets, as elements that a widget or a saved page can hold."""

from __future__ import annotations

from pathlib import Path


def style_sheet(file: Path) -> str:
    """Return a CSS file as a `<style>` element."""
    return f"<style>\n{file.read_text(encoding='utf-8')}</style>"


STYLE = style_sheet(Path(__file__).with_name("style.css"))
"""How all panels look."""
