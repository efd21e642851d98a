"""The write-ahead record of what a run must undo: one file a run, fsynced before anything is applied.

    open ── arm ── (apply) ── applied ── … ── healed ── … ── close, and the file is removed

The owner writes it, two reapers (chaos/reaper.py) read it and heal what it says. The file is JSON lines followed by
NULs: space is reserved ahead, so that a disk that fills up during a drill cannot keep us from recording or renewing,
and a disk that is full at the start is an error before anything is applied. A line cut short by a crash has no newline:
nothing was applied on its strength, and the next writer writes over it.

Every write, and every act of applying or undoing, happens under an exclusive flock. Leases count CLOCK_BOOTTIME.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator, Sequence

from chaos import processes
from chaos.clock import Clock
from chaos.errors import LeaseLostError, LedgerError
from chaos.ledger_state import LedgerState, Owner, Record, Undo

STATE_VARIABLE = "RANKDRILL_STATE_DIR"
SUFFIX = ".ledger"
NEW_SUFFIX = ".new"
RESERVE_BYTES = 64 << 10
RUN_ENTRY = "run"
"""Name of the entry that undoes the whole run; its lease is renewed by the owner's heartbeat."""


def state_dir() -> str:
    """Return the folder of ledgers: $RANKDRILL_STATE_DIR, else rankdrill in $XDG_STATE_HOME or ~/.local/state."""
    own = os.environ.get(STATE_VARIABLE)
    if own:
        return os.path.abspath(own)
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(os.path.abspath(base), "rankdrill")


def path_of(folder: str, run_id: str) -> str:
    """Return the name of a run's ledger."""
    return os.path.join(folder, f"{run_id}{SUFFIX}")


class Ledger:
    """One ledger file, opened for reading and writing. Safe to use from several threads of one process."""

    def __init__(self, path: str, fd: int, clock: Clock) -> None:
        self.path = path
        self.state = LedgerState()
        self._fd = fd
        self._clock = clock
        self._mutex = threading.RLock()
        self._lock_depth = 0
        self._end = 0

    @classmethod
    def create(cls, folder: str, run_id: str, clock: Clock) -> Ledger:
        """Make the ledger of a new run, owned by this process. Raises LedgerError (full disk, no permission)."""
        path = path_of(folder, run_id)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            ledger = cls._create_locked(path, run_id, clock)
        except OSError as error:
            raise LedgerError(f"cannot write the ledger {path} ({error}): nothing was started") from error
        return ledger

    @classmethod
    def _create_locked(cls, path: str, run_id: str, clock: Clock) -> Ledger:
        # Under its final name a ledger is always complete: it is made under another one, locked so that a clean-up
        # of left-overs cannot take it for one, and moved.
        new_path = f"{path}{NEW_SUFFIX}"
        if os.path.exists(path):
            raise FileExistsError(errno.EEXIST, "there is a run of this name", path)
        fd = os.open(new_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.posix_fallocate(fd, 0, RESERVE_BYTES)
            ledger = cls(path, fd, clock)
            owner = Owner(
                run=run_id,
                pid=os.getpid(),
                started_ticks=processes.start_ticks(os.getpid()) or 0,
                boot=processes.boot_id(),
                pidns=processes.pid_namespace(),
                host=processes.host_name(),
            )
            ledger._write({"is": "open", **owner._asdict()}, sync=True)
            os.rename(new_path, path)
        except OSError:
            os.close(fd)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new_path)
            raise
        _sync_folder(os.path.dirname(path))
        fcntl.flock(fd, fcntl.LOCK_UN)
        return ledger

    @classmethod
    def open(cls, path: str, clock: Clock) -> Ledger:
        """Open an existing ledger. Raises FileNotFoundError if the run is closed, LedgerError if it cannot be read."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise LedgerError(f"cannot open the ledger {path} ({error})") from error
        ledger = cls(path, fd, clock)
        ledger.refresh()
        return ledger

    @property
    def run_id(self) -> str:
        """Name of the run. Raises LedgerError if the first record is unreadable."""
        return self.owner.run

    @property
    def owner(self) -> Owner:
        """The process that owns the run. Raises LedgerError if the first record is unreadable."""
        if self.state.owner is None:
            raise LedgerError(f"the ledger {self.path} does not say who owns it: {self.state.damaged or 'it is empty'}")
        return self.state.owner

    def gone(self) -> bool:
        """Say whether the file was removed, as it is when all is healed and closed."""
        return os.fstat(self._fd).st_nlink == 0

    def refresh(self) -> LedgerState:
        """Read what others have written since the last look, and return the state."""
        with self._mutex:
            tail = self._tail()
            complete = tail[: tail.rfind(b"\n") + 1]
            for line in complete.splitlines():
                self.state.feed(line)
            self._end += len(complete)
            return self.state

    def _tail(self) -> bytes:
        """Return what stands between the last record read and the reserved space."""
        # Reapers ask a few times a second, mostly in vain: a small read is the usual case.
        size_bytes = 4096
        while True:
            data = os.pread(self._fd, size_bytes, self._end)
            if b"\0" in data or len(data) < size_bytes:
                return data.partition(b"\0")[0]
            size_bytes *= 4

    @contextlib.contextmanager
    def locked(self) -> Iterator[LedgerState]:
        """Hold the ledger alone for the block; waits for whoever holds it. Yields the newest state."""
        with self._mutex:
            self._lock_depth += 1
            try:
                if self._lock_depth == 1:
                    fcntl.flock(self._fd, fcntl.LOCK_EX)
                yield self.refresh()
            finally:
                self._lock_depth -= 1
                if self._lock_depth == 0:
                    fcntl.flock(self._fd, fcntl.LOCK_UN)

    def try_lock(self) -> bool:
        """Take the lock if it is free; release it with `unlock`."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._mutex.release()
            return False
        self._lock_depth += 1
        self.refresh()
        return True

    def unlock(self) -> None:
        """Release what `try_lock` took."""
        self._lock_depth -= 1
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._mutex.release()

    def arm(self, name: str, undo: Sequence[Undo], lease_s: float, *, renewed: bool = False) -> None:
        """Record how to undo `name`, on disk when this returns; apply it after. Raises LedgerError, LeaseLostError."""
        with self.locked() as state:
            self.check_held()
            if any(entry.name == name for entry in state.open_entries()):
                raise LedgerError(f"{name!r} is armed already and not healed: heal it before it is armed again")
            until_s = self._clock.boottime_s() + lease_s
            self._append(
                {"is": "arm", "name": name, "undo": list(undo), "until_s": until_s, "renewed": renewed}, sync=True
            )

    def record_applied(self, name: str) -> None:
        """Record that `name` was applied."""
        self.state.entry(name)
        self._append({"is": "applied", "name": name})

    def record_healed(self, name: str, by: str, detail: str) -> None:
        """Record that `name` is undone, which somebody (`by`) has verified."""
        self.state.entry(name)
        self._append({"is": "healed", "name": name, "by": by, "detail": detail})

    def record_reaper(self, slot: int, pid: int, started_ticks: int) -> None:
        """Record who guards the run in this slot."""
        self._append({"is": "reaper", "slot": slot, "pid": pid, "started_ticks": started_ticks})

    def renew(self, lease_s: float) -> None:
        """Say that the owner lives: renewed entries last `lease_s` from now. Raises LeaseLostError."""
        with self.locked():
            self.check_held()
            # Not fsynced: after a crash of the machine the boot is another one, and no lease of ours counts.
            self._append({"is": "renew", "until_s": self._clock.boottime_s() + lease_s})

    def check_held(self) -> None:
        """Raise LeaseLostError if somebody else has undone the run."""
        run = self.refresh().entries.get(RUN_ENTRY)
        if self.state.closed or self.gone() or (run is not None and run.healed_by):
            by = f"undone by {run.healed_by}" if run is not None and run.healed_by else "closed by somebody else"
            raise LeaseLostError(
                f"run {self.run_id} was {by}: its tester was not heard of for longer than its lease "
                "(was it stopped, or the machine asleep or overloaded?); run the drill again"
            )

    def remove(self) -> None:
        """Close the ledger for good: nothing is left to undo. Raises LedgerError if something is."""
        with self.locked() as state:
            left = [entry.name for entry in state.open_entries()]
            if left or state.damaged:
                raise LedgerError(f"ledger {self.path} cannot be closed: {', '.join(left) or state.damaged}")
            self._append({"is": "close"})
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)

    def release(self) -> None:
        """Close the descriptor. The file stays."""
        os.close(self._fd)

    def _append(self, record: Record, *, sync: bool = False) -> None:
        with self.locked():
            try:
                self._write(record, sync=sync)
            except OSError as error:
                full = " (the disk is full)" if error.errno == errno.ENOSPC else ""
                raise LedgerError(f"cannot write the ledger {self.path}{full}: {error}") from error

    def _write(self, record: Record, *, sync: bool) -> None:
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        size = os.fstat(self._fd).st_size
        if self._end + len(line) >= size:
            os.posix_fallocate(self._fd, size, max(RESERVE_BYTES, len(line) + 1))
        # What a crashed writer left behind the last newline is wiped with the same write.
        written = os.pwrite(self._fd, line.ljust(len(self._tail()), b"\0"), self._end)
        if written < len(line):
            raise OSError(errno.EIO, "short write")
        if sync:
            os.fsync(self._fd)
        self.refresh()


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
