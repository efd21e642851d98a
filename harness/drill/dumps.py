"""What processes were doing when a run went wrong: their state, where they wait in the kernel, and their Python stacks.

Python stacks come from the process itself: one that has registered faulthandler for SIGUSR1 is sent that signal, and
writes them to its own log. Any other would die of the signal, so it is asked only through /proc.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

_KEPT_STATUS = ("Name", "State", "PPid", "Threads", "VmRSS", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
_MOST_BYTES = 64 * 1024


def dump(pids: Iterable[int]) -> str:
    """Return what can be seen of each process from outside, one block a process."""
    return "\n".join(_dump_one(pid) for pid in pids)


def ask_for_stacks(pids: Iterable[int]) -> int:
    """Ask each process that expects it to write its Python stacks; return how many were asked."""
    asked = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(pid)
            try:
                if _catches(pid, signal.SIGUSR1):
                    signal.pidfd_send_signal(fd, signal.SIGUSR1)
                    asked += 1
            finally:
                os.close(fd)
    return asked


def _catches(pid: int, number: signal.Signals) -> bool:
    mask = int(_status(pid).get("SigCgt", "0"), 16)
    return bool(mask >> (number - 1) & 1)


def _status(pid: int) -> dict[str, str]:
    fields = {}
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        key, _, value = line.partition(":")
        fields[key] = value.strip()
    return fields


def _dump_one(pid: int) -> str:
    root = Path(f"/proc/{pid}")
    command = _read(root / "cmdline").replace("\0", " ").strip()
    status = _status(pid)
    lines = [f"== process {pid}: {command}"]
    lines += [f"{key}: {status[key]}" for key in _KEPT_STATUS if key in status]
    for thread in _threads(root):
        task = root / "task" / thread
        lines.append(f"-- thread {thread} ({_read(task / 'comm').strip()}): waits in {_read(task / 'wchan') or '?'}")
        lines.append(_read(task / "stack").rstrip())
    return "\n".join(line for line in lines if line) + "\n"


def _threads(root: Path) -> list[str]:
    try:
        return sorted(os.listdir(root / "task"), key=int)
    except OSError:
        return []


def _read(path: Path) -> str:
    """Return a file of /proc, or nothing where it may not be read or the process is gone."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
