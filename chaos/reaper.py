"""The small process that heals what a ledger says when a lease ends or the owner dies. Two a run, guarding each other.

`start` runs `python -I -S reaper.py LEDGER OWNER`, apart from the tester's session, environment, files and terminal; it
forks them when the ledger is there, and `wait_armed` returns when both say in it that they are at work. They

- undo an entry whose lease is over (a living owner gets HEAD_START_S to do it itself);
- undo everything at once when the owner is dead, then close and remove the ledger;
- fork a new partner when theirs has died;
- end when the ledger is closed, when it is removed, or when a dead owner's ledger cannot be healed for GIVE_UP_S. That
  one stays, for the next start to heal (chaos/leftovers.py).

They signal nobody but by an undo of their own ledger. Standard library only, and little of it: they start in tens of
milliseconds and look at their ledger a few times a second.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # -I keeps the folder of this file out of the path. It goes last, so as to hide nothing of the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import contextlib
import select
import signal
from typing import TYPE_CHECKING

from chaos import processes
from chaos.clock import Clock, SystemClock
from chaos.errors import LedgerError, ReaperError
from chaos.ledger import NEW_SUFFIX, Ledger
from chaos.ledger_state import SLOTS, Entry
from chaos.undo import undo_entry

if TYPE_CHECKING:
    import subprocess

WAKE_S = 0.2
HEAD_START_S = 0.2
RETRY_S = 0.5
UNLOCKED_AFTER_S = 0.4
GIVE_UP_S = 30.0
START_LIMIT_S = 20.0


class Reaper:
    """One of the two. `partner` is who was forked into the other slot by this one, if any."""

    def __init__(self, ledger: Ledger, slot: int, clock: Clock) -> None:
        self._ledger = ledger
        self._slot = slot
        self._clock = clock
        self._owner = ledger.owner
        self._poller = select.poll()
        self._owner_fd = self._watch(self._owner.pid, self._owner.started_ticks)
        self._owner_dead_since_s = None if self._owner_fd is not None else clock.boottime_s()
        self._partner: tuple[int, int] | None = None
        self._partner_fd: int | None = None
        self._due_since_s: float | None = None
        self._failed_at_s = float("-inf")
        self._forked_at_s = float("-inf")

    def run(self) -> None:
        """Guard until nothing is left to guard."""
        while not self._ledger.gone() and not self._ledger.refresh().closed:
            self._heal()
            if self._ledger.gone() or self._given_up():
                return
            self._guard_partner()
            for pidfd, _ in self._poller.poll(self._pause_ms()):
                self._see_end(pidfd)

    def _watch(self, pid: int, started_ticks: int) -> int | None:
        """Return a pidfd that ends the pause when that process ends; None if it has ended."""
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            return None
        if processes.start_ticks(pid) != started_ticks or processes.ended(pidfd):
            os.close(pidfd)
            return None
        self._poller.register(pidfd, select.POLLIN)
        return pidfd

    def _see_end(self, pidfd: int) -> None:
        """Take note that the owner or the partner has ended."""
        self._poller.unregister(pidfd)
        os.close(pidfd)
        if pidfd == self._owner_fd:
            self._owner_fd = None
            self._owner_dead_since_s = self._clock.boottime_s()
        else:
            self._partner_fd = None
            if self._partner is not None:
                # It may be a child of this process, or of init.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(self._partner[0], os.WNOHANG)

    def _due(self) -> tuple[Entry, ...]:
        state = self._ledger.state
        if self._owner_dead_since_s is not None:
            return state.open_entries()
        return state.due_entries(self._clock.boottime_s() - HEAD_START_S)

    def _heal(self) -> None:
        now_s = self._clock.boottime_s()
        if not self._due() and self._owner_dead_since_s is None:
            self._due_since_s = None
            return
        if self._due_since_s is None:
            self._due_since_s = now_s
        if now_s < self._failed_at_s + RETRY_S:
            return
        if self._ledger.try_lock():
            try:
                self._heal_locked()
            finally:
                self._ledger.unlock()
        elif now_s >= self._due_since_s + UNLOCKED_AFTER_S:
            # Whoever holds the lock may be stopped. Undoing twice is harmless, not undoing is not; it is recorded
            # when the lock can be had.
            for entry in self._due():
                undo_entry(entry, self._owner, self._clock)

    def _heal_locked(self) -> None:
        dead = self._owner_dead_since_s is not None
        for entry in self._due():
            if undo_entry(entry, self._owner, self._clock):
                # The others get their turn now, this one another try.
                self._failed_at_s = self._clock.boottime_s()
            else:
                self._ledger.record_healed(entry.name, f"reaper {os.getpid()}", "tester died" if dead else "lease over")
        state = self._ledger.refresh()
        if dead and not state.open_entries() and not state.closed and not state.damaged:
            self._ledger.remove()

    def _given_up(self) -> bool:
        since_s = self._owner_dead_since_s
        if since_s is None:
            return False
        hopeless = bool(self._ledger.state.damaged) and not self._ledger.state.open_entries()
        return hopeless or self._clock.boottime_s() > since_s + GIVE_UP_S

    def _guard_partner(self) -> None:
        slot = SLOTS[1 - self._slot]
        named = self._ledger.state.reapers.get(slot)
        if self._partner_fd is None and named is not None and named != self._partner:
            self._partner, self._partner_fd = named, self._watch(*named)
        # One that dies as soon as it is born must not make a fork bomb of its partner.
        if self._partner_fd is None and named is not None and self._clock.boottime_s() > self._forked_at_s + WAKE_S:
            self._replace_partner(slot)

    def _replace_partner(self, slot: int) -> None:
        self._forked_at_s = self._clock.boottime_s()
        pid = _fork(self._ledger.path, slot)
        ticks = processes.start_ticks(pid)
        if ticks is not None:
            # Known by its own record too, once it runs; until then this keeps a second one from being forked.
            self._partner, self._partner_fd = (pid, ticks), self._watch(pid, ticks)

    def _pause_ms(self) -> int:
        if self._due_since_s is not None:
            return 50
        lease_s = self._ledger.state.next_lease_s()
        pause_s = WAKE_S
        if lease_s is not None:
            pause_s = min(pause_s, lease_s + HEAD_START_S - self._clock.boottime_s())
        return max(1, int(pause_s * 1000) + 1)


def start(path: str) -> subprocess.Popen[bytes]:
    """Start the process that forks both reapers as soon as the ledger at `path` is there. Raises ReaperError.

    It is started before the ledger is made: else there were a moment in which this process could die and leave a
    ledger that nobody guards.
    """
    # Imported here, because the reapers themselves load this module and must start fast.
    import subprocess

    if not sys.executable:
        raise ReaperError("the reapers cannot be started: this Python does not know its own executable")
    argv = [sys.executable, "-I", "-S", os.path.abspath(__file__), path, str(os.getpid())]
    try:
        # An empty environment: the reapers must not carry the tag by which they find the processes of the run.
        return subprocess.Popen(
            argv,
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ReaperError(f"the reapers could not be started: {error}") from error


def abandon(starter: subprocess.Popen[bytes]) -> None:
    """End a starter whose ledger was not made, or is gone again."""
    starter.kill()
    starter.communicate()


def wait_armed(starter: subprocess.Popen[bytes], ledger: Ledger, clock: Clock) -> None:
    """Return when both reapers of a ledger are at work. Raises ReaperError: inject nothing then."""
    import subprocess

    try:
        _, said = starter.communicate(timeout=START_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise ReaperError(f"the reapers could not be started: {error}") from error
    if starter.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        raise ReaperError(f"the reapers could not be started: {lines[-1] if lines else starter.returncode}")
    limit_s = clock.monotonic_s() + START_LIMIT_S
    while not armed(ledger):
        if clock.monotonic_s() > limit_s:
            raise ReaperError(f"the reapers did not report within {START_LIMIT_S:g} s: is the machine overloaded?")
        clock.sleep_s(0.002)


def armed(ledger: Ledger) -> bool:
    """Say whether a living reaper is at work in both slots."""
    reapers = ledger.refresh().reapers
    return all(slot in reapers and processes.alive(*reapers[slot]) for slot in SLOTS)


def wait_ended(ledger: Ledger, clock: Clock, limit_s: float) -> bool:
    """Wait until no reaper of this ledger is left; False if one is after `limit_s` seconds."""
    until_s = clock.monotonic_s() + limit_s
    while any(processes.alive(*reaper) for reaper in ledger.refresh().reapers.values()):
        if clock.monotonic_s() > until_s:
            return False
        clock.sleep_s(0.005)
    for pid, _ in ledger.state.reapers.values():
        # Where this process is the first of its container, it has inherited them.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return True


def _fork(path: str, slot: int) -> int:
    """Fork a process that guards the ledger in `slot`, and return its pid. This process has one thread."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _be_reaper(path, slot)
            code = 0
        finally:
            # Whatever was raised has nobody to tell it to; the partner forks a new one.
            os._exit(code)
    return pid


def _be_reaper(path: str, slot: int) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU, signal.SIGTTIN):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    # Locks and pidfds of the one that forked us belong to it.
    os.closerange(3, 256)
    clock = SystemClock()
    try:
        ledger = Ledger.open(path, clock)
    except FileNotFoundError:
        return
    ticks = processes.start_ticks(os.getpid())
    assert ticks is not None
    ledger.record_reaper(slot, os.getpid(), ticks)
    Reaper(ledger, slot, clock).run()


def _await_ledger(path: str, owner: int, clock: Clock) -> bool:
    """Wait until the ledger is there; False if its owner, the parent of this process, died before it made one."""
    while not os.path.exists(path):
        if os.getppid() != owner:
            with contextlib.suppress(OSError):
                os.unlink(f"{path}{NEW_SUFFIX}")
            # It may have been its last act.
            return os.path.exists(path)
        clock.sleep_s(0.002)
    return True


def main(argv: list[str]) -> int:
    """Fork the reapers of a ledger, when it is there; exit code 0 when they are forked, or none is needed."""
    if len(argv) not in (2, 3):
        sys.stderr.write("usage: reaper.py LEDGER [OWNER]\n")
        return 4
    clock = SystemClock()
    if len(argv) == 3 and not _await_ledger(argv[1], int(argv[2]), clock):
        return 0
    try:
        ledger = Ledger.open(argv[1], clock)
        _ = ledger.owner
        ledger.release()
    except (OSError, LedgerError) as error:
        sys.stderr.write(f"{error}\n")
        return 3
    for slot in SLOTS:
        _fork(argv[1], slot)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
