"""Processes of this machine, named by pid *and* start time, touched only through pidfds. Standard library, no state.

A pid alone may have been given to another process meanwhile. So every function takes the start time (clock ticks since
boot, field 22 of /proc/PID/stat) as well, opens a pidfd first, compares second, and acts on the pidfd last: whatever
happens in between, the signal reaches the process that was meant, or none.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot, or None if there is none."""
    fields = _stat_fields(f"/proc/{pid}/stat")
    return None if fields is None else int(fields[19])


def parent_of(pid: int) -> int | None:
    """Return the pid of a process' parent, or None if the process is gone."""
    fields = _stat_fields(f"/proc/{pid}/stat")
    return None if fields is None else int(fields[1])


def _stat_fields(path: str) -> list[bytes] | None:
    # The name, field 2, may hold spaces and brackets: count from the last bracket. Index 0 is field 3, the state.
    try:
        with open(path, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def all_pids() -> Iterator[int]:
    """Yield the pid of every process that /proc shows."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            yield int(name)


@contextlib.contextmanager
def pidfd_of(pid: int, started_ticks: int) -> Iterator[int | None]:
    """Open a pidfd of exactly this process for the block; None if it is no longer there."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield pidfd if start_ticks(pid) == started_ticks and not ended(pidfd) else None
    finally:
        os.close(pidfd)


def ended(pidfd: int) -> bool:
    """Say whether a process has ended (all its threads; a zombie has ended)."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))


def alive(pid: int, started_ticks: int) -> bool:
    """Say whether exactly this process runs or is stopped (a zombie is not alive)."""
    with pidfd_of(pid, started_ticks) as pidfd:
        return pidfd is not None


def send(pid: int, started_ticks: int, number: signal.Signals) -> bool:
    """Send a signal to exactly this process; False if it is gone. Raises PermissionError."""
    with pidfd_of(pid, started_ticks) as pidfd:
        if pidfd is None:
            return False
        try:
            signal.pidfd_send_signal(pidfd, number)
        except ProcessLookupError:
            return False
        return True


def thread_states(pid: int, started_ticks: int) -> str:
    """Return the state letters of all threads of exactly this process ("T" stopped, "S", "R", …); "" if it is gone."""
    if not alive(pid, started_ticks):
        return ""
    states = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    for thread in sorted(threads, key=int):
        fields = _stat_fields(f"/proc/{pid}/task/{thread}/stat")
        if fields is not None and fields[0] not in {b"Z", b"X"}:
            states.append(fields[0].decode())
    return "".join(states)


def is_stopped(states: str) -> bool:
    """Say whether thread states mean that the whole process is stopped, by a signal (T) or a tracer (t)."""
    return bool(states) and all(state in "Tt" for state in states)


def descendants(pid: int) -> tuple[tuple[int, int], ...]:
    """Return (pid, start ticks) of all descendants, parents before children."""
    children: dict[int, list[int]] = {}
    for other in all_pids():
        parent = parent_of(other)
        if parent is not None:
            children.setdefault(parent, []).append(other)
    found: list[tuple[int, int]] = []
    pending = list(children.get(pid, ()))
    while pending:
        child = pending.pop(0)
        ticks = start_ticks(child)
        if ticks is not None:
            found.append((child, ticks))
        pending.extend(children.get(child, ()))
    return tuple(found)


def tagged(variable: str, value: str) -> Iterator[tuple[int, int]]:
    """Yield (pid, pidfd) of each other living process that was started with `variable`=`value` in its environment.

    The pidfd is opened before the environment is read and closed when the iteration goes on.
    """
    entry = f"{variable}={value}".encode()
    for pid in all_pids():
        if pid == os.getpid():
            continue
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            # Processes of other users cannot be read, and are not ours.
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = entry in file.read().split(b"\0")
            if ours and not ended(pidfd):
                yield pid, pidfd
        except OSError:
            continue
        finally:
            os.close(pidfd)


def boot_id() -> str:
    """Return the kernel's name for the time since the last boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def pid_namespace() -> str:
    """Return the kernel's name for the set of pids that this process sees."""
    return os.readlink("/proc/self/ns/pid")


def host_name() -> str:
    """Return what tells this machine from others that share a home folder: host name, and machine id if any."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            machine = file.read().strip()
    except OSError:
        machine = ""
    return f"{os.uname().nodename}/{machine}"
