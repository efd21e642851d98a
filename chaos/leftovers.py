"""Heals what dead testers left behind: at the start of each run, and for `rankdrill heal`."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from dataclasses import dataclass

from chaos import processes
from chaos.clock import Clock
from chaos.errors import LedgerError
from chaos.ledger import NEW_SUFFIX, SUFFIX, Ledger
from chaos.ledger_state import Owner
from chaos.undo import undo_entry

LOCK_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class HealReport:
    """What became of one ledger: what was undone, and what could not be (with reasons), which makes the host dirty."""

    run_id: str
    path: str
    healed: tuple[str, ...]
    failed: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing is left of that run."""
        return not self.failed

    def __str__(self) -> str:
        said = f"run {self.run_id}: undone: {', '.join(self.healed) or 'nothing was left'}"
        return said if self.clean else f"{said}; not undone: {'; '.join(self.failed)} ({self.path})"


def heal_left_overs(state_dir: str, clock: Clock) -> list[HealReport]:
    """Undo what the ledgers of dead testers say; one report a ledger.

    Ledgers of living testers are left alone, as are those of other machines and containers that share the folder: their
    pids mean nothing here. A ledger that cannot be healed stays, and is in the next call's answer again.
    """
    reports = []
    for path in _ledgers(state_dir):
        if path.endswith(NEW_SUFFIX):
            _remove_unfinished(path)
            continue
        report = _heal_one(path, clock)
        if report is not None:
            reports.append(report)
    return reports


def _ledgers(state_dir: str) -> list[str]:
    try:
        names = sorted(os.listdir(state_dir))
    except FileNotFoundError:
        return []
    return [os.path.join(state_dir, name) for name in names if name.endswith((SUFFIX, SUFFIX + NEW_SUFFIX))]


def _remove_unfinished(path: str) -> None:
    # Nothing was started on its strength. Its maker, if it lives, holds the lock.
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(fd)


def _heal_one(path: str, clock: Clock) -> HealReport | None:
    name = os.path.basename(path).removesuffix(SUFFIX)
    try:
        ledger = Ledger.open(path, clock)
    except FileNotFoundError:
        return None
    except LedgerError as error:
        return HealReport(name, path, healed=(), failed=(str(error),))
    try:
        owner = ledger.owner
        if _elsewhere(owner) or _at_work(owner):
            return None
        return heal_ledger(ledger, clock, by="heal")
    except LedgerError as error:
        return HealReport(name, path, healed=(), failed=(f"{error}: look at it, then remove it by hand",))
    finally:
        ledger.release()


def _elsewhere(owner: Owner) -> bool:
    if owner.host != processes.host_name():
        return True
    return owner.boot == processes.boot_id() and owner.pidns != processes.pid_namespace()


def _at_work(owner: Owner) -> bool:
    return owner.boot == processes.boot_id() and processes.alive(owner.pid, owner.started_ticks)


def heal_ledger(ledger: Ledger, clock: Clock, by: str) -> HealReport:
    """Undo everything that a ledger still holds, the last armed first; then remove it. Raises LedgerError."""
    healed: list[str] = []
    failed: list[str] = []
    _wait_for_lock(ledger, clock)
    try:
        for entry in ledger.state.open_entries():
            reason = undo_entry(entry, ledger.owner, clock)
            if reason:
                failed.append(f"{entry.name}: {reason}")
            else:
                ledger.record_healed(entry.name, by, "undone")
                healed.append(entry.name)
        if ledger.state.damaged:
            failed.append(f"{ledger.state.damaged}: look at {ledger.path}, then remove it by hand")
        if not failed and not ledger.state.closed:
            ledger.remove()
    finally:
        ledger.unlock()
    return HealReport(ledger.run_id, ledger.path, tuple(healed), tuple(failed))


def _wait_for_lock(ledger: Ledger, clock: Clock) -> None:
    # A reaper may be at the same work; it is done in a moment.
    until_s = clock.monotonic_s() + LOCK_LIMIT_S
    while not ledger.try_lock():
        if clock.monotonic_s() > until_s:
            raise LedgerError(f"{ledger.path} is locked by another process ({os.strerror(errno.EAGAIN)})")
        clock.sleep_s(0.01)
