"""Text on its way to a terminal: nothing that comes from a file or a run may act on it. Standard library only."""

from __future__ import annotations

import unicodedata

# Cc: controls such as ESC; Cf: bidirectional overrides and other invisible ones; Cs: lone surrogates; Zl, Zp: breaks.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str, *, keep_newlines: bool = False) -> str:
    """Return `text` with every character that could move the cursor, colour or hide something written as an escape."""
    return "".join(
        character
        if unicodedata.category(character) not in _ACTING or (keep_newlines and character == "\n")
        else character.encode("unicode_escape", "backslashreplace").decode("ascii")
        for character in text
    )
