"""The four verdicts, their order and their exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """What a drill, or one check of it, came to."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"

    @property
    def exit_code(self) -> int:
        """What the command line returns for it."""
        return _EXIT_CODES[self]


_EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 2, Verdict.ERROR: 3}
_WORST_FIRST = (Verdict.ERROR, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst: ERROR > FAIL > INCONCLUSIVE > PASS. Nothing at all shows nothing: INCONCLUSIVE."""
    return min(verdicts, key=_WORST_FIRST.index, default=Verdict.INCONCLUSIVE)
