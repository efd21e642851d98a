"""Every error that `chaos` raises on purpose. Standard library only; `harness` maps them to exit codes.

    ChaosError
    ├── InputError           what the caller wrote cannot be meant; names field, what was expected, nearest word
    │   ├── SelectorError    who is to be hit
    │   ├── TriggerError     when it is to happen
    │   └── FaultError       what is to happen
    ├── InjectError          the fault could not be applied, or had no effect; the drill says nothing
    │   └── TargetGoneError  the target had ended before the fault was due
    ├── ReceiptError         an injector broke its own promises (a bug in that injector)
    ├── LedgerError          the write-ahead record could not be written or read; nothing was injected on its strength
    │   └── LeaseLostError   the tester did not renew its lease in time, so the run was undone under its feet
    └── ReaperError          the reapers could not be armed; nothing was injected

A message names the cause and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the entry of `words` that `word` was probably meant to be, or None."""
    # Imported here, because reapers load this module and must start fast.
    from difflib import get_close_matches

    by_folded = {candidate.lower(): candidate for candidate in sorted(words)}
    found = get_close_matches(word.lower(), by_folded, n=1, cutoff=0.5)
    return by_folded[found[0]] if found else None


class ChaosError(Exception):
    """Base of every error raised on purpose in this package."""


class InputError(ChaosError):
    """A part of a scenario is wrong. `field` is its path, `expected` what may stand there, `near` the nearest word."""

    def __init__(self, field: str, expected: str, *, given: str = "", near: str | None = None) -> None:
        self.field = field
        self.expected = expected
        self.near = near
        got = f", got {given}" if given else ""
        hint = f"; did you mean {near!r}?" if near is not None else ""
        super().__init__(f"{field}: expected {expected}{got}{hint}")


class SelectorError(InputError):
    """A selector is malformed, or matches nothing."""


class TriggerError(InputError):
    """A trigger is malformed."""


class FaultError(InputError):
    """A fault is malformed."""


class InjectError(ChaosError):
    """The fault could not be applied or did not bite."""


class TargetGoneError(InjectError):
    """The target had ended before the fault was due."""


class ReceiptError(ChaosError):
    """An injector returned a receipt or a proof that does not fit its fault: a bug in the injector."""


class LedgerError(ChaosError):
    """The ledger could not be written or read; nothing was injected on its strength."""


class LeaseLostError(LedgerError):
    """The tester was not heard of for longer than its lease, and the reapers undid the run."""


class ReaperError(ChaosError):
    """The reapers could not be armed; nothing was injected."""
