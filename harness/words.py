"""The nearest valid word to a misspelt one. Standard library only."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid word that is most like `word`, or None when none is like it."""
    by_folded = {candidate.lower(): candidate for candidate in valid}
    # The cutoff is below difflib's 0.6, which misses two slips in a short word such as "rnak".
    found = difflib.get_close_matches(word[:100].lower(), by_folded, n=1, cutoff=0.5)
    return by_folded[found[0]] if found else None


def one_of(valid: Iterable[str]) -> str:
    """Return "'a'", or "one of 'a', 'b'": what an error says was expected."""
    words = [f"'{word}'" for word in valid]
    return words[0] if len(words) == 1 else "one of " + ", ".join(words)
