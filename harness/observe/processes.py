"""Processes as the tester sees them: one descriptor (pidfd) a process, and how it ended.

A pid alone may be used again; a pidfd opened while the start ticks still fit names one process for good. The
descriptor becomes readable when the process is dead, whoever its parent is. How it ended is told by /proc while the
dead process waits for its parent, and by the pidfd itself afterwards (kernels with PIDFD_GET_INFO exit information);
where neither tells, the code is unknown, and unknown proves nothing.
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import dataclass
from typing import NamedTuple

# struct pidfd_info, version 0: mask, cgroupid, eleven ids, exit_code. _IOWR(0xFF, 11, 64 bytes).
_INFO = struct.Struct("=QQ11Ii")
_PIDFD_GET_INFO = (3 << 30) | (_INFO.size << 16) | (0xFF << 8) | 11
_PIDFD_INFO_EXIT = 1 << 3


class ExitStatus(NamedTuple):
    """How a process ended: a code, or a signal, or neither where the kernel does not tell."""

    code: int | None
    signal: int | None


UNKNOWN = ExitStatus(None, None)


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What /proc/PID/stat says: state letter, parent, session, start in ticks since boot, wait status once dead."""

    pid: int
    state: str
    parent: int
    session: int
    started_ticks: int
    wait_status: int


def read_stat(pid: int) -> ProcessStat | None:
    """Read one process, or return None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The command in parentheses may itself hold spaces and parentheses, so split behind the last one.
    fields = text.rpartition(b")")[2].split()
    if len(fields) < 50:
        return None
    return ProcessStat(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        session=int(fields[3]),
        started_ticks=int(fields[19]),
        wait_status=int(fields[49]),
    )


def open_process(pid: int, started_ticks: int) -> int | None:
    """Open a pidfd for this process, or return None when it is gone (or its pid is another's by now)."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    stat = read_stat(pid)
    # Checked after opening: the descriptor then belongs to the process whose ticks were read, or to a dead one.
    if stat is None or stat.started_ticks != started_ticks:
        os.close(fd)
        return None
    return fd


def exit_status(pid: int, started_ticks: int, fd: int) -> ExitStatus:
    """Return how a process whose pidfd is readable has ended."""
    stat = read_stat(pid)
    dead = stat is not None and stat.started_ticks == started_ticks and stat.state in ("Z", "X")
    # The kernel shows another user's status as 0, which must not read as "exit 0".
    if stat is not None and dead and (stat.wait_status != 0 or _may_read(pid)):
        return from_wait_status(stat.wait_status)
    return _from_pidfd(fd)


def from_wait_status(status: int) -> ExitStatus:
    """Split a wait status into code or signal."""
    number = status & 0x7F
    return ExitStatus(None, number) if number else ExitStatus((status >> 8) & 0xFF, None)


def _may_read(pid: int) -> bool:
    try:
        return os.geteuid() in (0, os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return False


def _from_pidfd(fd: int) -> ExitStatus:
    request = bytearray(_INFO.size)
    struct.pack_into("=Q", request, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(fd, _PIDFD_GET_INFO, request)
    except OSError:
        return UNKNOWN
    values = _INFO.unpack(request)
    if not values[0] & _PIDFD_INFO_EXIT:
        return UNKNOWN
    return from_wait_status(int(values[-1]))
