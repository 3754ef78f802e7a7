"""GPT-2's spelling of bytes as printable characters, which many vocabularies use."""

from __future__ import annotations

from functools import cache


@cache
def byte_of_character() -> dict[str, int]:
    """Return the byte of each of GPT-2's 256 characters, in the order of their ids.

    Bytes that print as themselves in Latin-1 come first and stay; the others get the
    characters from U+0100 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    shifted = {chr(0x100 + n): byte for n, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | shifted
