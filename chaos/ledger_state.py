"""What a ledger says: its records, read into the state of one run. No I/O, no clock; reapers load it.

Records are JSON lines with a key `is`:

| is       | fields                                             | meaning                                              |
|----------|----------------------------------------------------|------------------------------------------------------|
| open     | run, pid, started_ticks, boot, pidns, host         | this process owns the run                            |
| reaper   | slot (0, 1), pid, started_ticks                    | this process guards it now in that slot              |
| arm      | name, undo, until_s, renewed                       | about to be applied; undo it by `until_s` (boottime) |
| applied  | name                                               | was applied                                          |
| renew    | until_s                                            | the owner lives: entries armed `renewed` last longer |
| healed   | name, by, detail                                   | undone and verified, or never applied                |
| close    |                                                    | the run is over and everything is healed             |
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from chaos.errors import LedgerError

Record = dict[str, Any]
Undo = dict[str, Any]
"""One step of undoing, as data; chaos/undo.py lists and performs them."""

SLOTS = (0, 1)


class Owner(NamedTuple):
    """The process that runs the drill, and the machine on which its pid means something."""

    run: str
    pid: int
    started_ticks: int
    boot: str
    pidns: str
    host: str


class Entry(NamedTuple):
    """One thing to undo. `until_s` is seconds of CLOCK_BOOTTIME."""

    name: str
    undo: tuple[Undo, ...]
    until_s: float
    renewed: bool
    applied: bool = False
    healed_by: str = ""
    detail: str = ""


class LedgerState:
    """The state after all records fed so far."""

    def __init__(self) -> None:
        self.owner: Owner | None = None
        self.entries: dict[str, Entry] = {}
        self.reapers: dict[int, tuple[int, int]] = {}
        self.closed = False
        self.damaged = ""

    def feed(self, line: bytes) -> None:
        """Take in one complete line. A line that cannot be read marks the ledger as damaged; the others still count."""
        try:
            self._apply(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            self.damaged = f"unreadable record {line[:60]!r} ({type(error).__name__}: {error})"

    def open_entries(self) -> tuple[Entry, ...]:
        """Return what is not undone yet, in the order in which it must be undone: the last armed first."""
        return tuple(entry for entry in reversed(self.entries.values()) if not entry.healed_by)

    def due_entries(self, now_s: float) -> tuple[Entry, ...]:
        """Return what must be undone because its lease is over at `now_s` (boottime), in that order.

        When the lease of a renewed entry is over, the owner is not at work any more: then everything is due.
        """
        unhealed = self.open_entries()
        if any(entry.renewed and now_s >= entry.until_s for entry in unhealed):
            return unhealed
        return tuple(entry for entry in unhealed if now_s >= entry.until_s)

    def next_lease_s(self) -> float | None:
        """Return the boottime at which the next lease ends, or None."""
        return min((entry.until_s for entry in self.open_entries()), default=None)

    def entry(self, name: str) -> Entry:
        """Return one entry. Raises LedgerError if it was never armed."""
        try:
            return self.entries[name]
        except KeyError:
            raise LedgerError(f"{name!r} was never armed in this ledger: arm it before it is applied") from None

    def _apply(self, record: Record) -> None:
        kind = record["is"]
        if kind == "open":
            self.owner = Owner(**{key: record[key] for key in Owner._fields})
        elif kind == "reaper":
            self.reapers[record["slot"]] = (record["pid"], record["started_ticks"])
        elif kind == "arm":
            # Arming a name again (the next repeat's f0) puts it last in the order of undoing.
            self.entries.pop(record["name"], None)
            self.entries[record["name"]] = Entry(
                record["name"], tuple(record["undo"]), record["until_s"], renewed=record["renewed"]
            )
        elif kind == "applied":
            self._change(record["name"], applied=True)
        elif kind == "healed":
            self._change(record["name"], healed_by=record["by"], detail=record["detail"])
        elif kind == "renew":
            for entry in self.open_entries():
                if entry.renewed:
                    self._change(entry.name, until_s=record["until_s"])
        elif kind == "close":
            self.closed = True
        else:
            raise ValueError(f"unknown record {kind!r}")

    def _change(self, name: str, **changes: Any) -> None:
        self.entries[name] = self.entries[name]._replace(**changes)
