# SPDX-License-Identifier: Apache-2.0
"""Make names and messages of other programs safe for one line of a terminal or a log, as src/cli/ui/text.h does."""
from __future__ import annotations

__all__ = ["escaped"]


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as os.fsdecode keeps it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escaped(text: str) -> str:
    """Return the text with an escape such as \\x1b for each character that cannot be printed: control characters, line
    separators, marks of direction, and bytes that are not UTF-8. Other text is unchanged."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)
