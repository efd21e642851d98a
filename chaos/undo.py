"""How things are undone, as data that a reaper performs from the ledger with the standard library alone.

| do          | fields                      | done when                                                             |
|-------------|-----------------------------|-----------------------------------------------------------------------|
| nothing     |                             | at once                                                               |
| signal      | pid, started_ticks, signal  | the process runs again, or is gone                                    |
| kill_tagged | variable, value             | no process lives that was started with this in its environment        |
| remove_tree | path, tag                   | the folder is gone; it is touched only if it holds our tag file       |

Everything here may be done twice, by two processes at once, and after half of it was done before.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable

from chaos import processes
from chaos.clock import Clock
from chaos.ledger_state import Entry, Owner, Undo

TAG_PREFIX = ".rankdrill-"
RUNS_AGAIN_LIMIT_S = 0.5
"""How long a process may take to run again before the others that wait to be healed get their turn."""
KILLED_LIMIT_S = 5.0
"""How long killed processes may take to end; one with gigabytes of memory takes seconds."""
PAUSE_S = 0.002


def nothing() -> Undo:
    """Undo of a fault that changes nothing."""
    return {"do": "nothing"}


def send_signal(pid: int, started_ticks: int, signal_name: str) -> Undo:
    """Undo by a signal ("CONT") to exactly this process."""
    return {"do": "signal", "pid": pid, "started_ticks": started_ticks, "signal": signal_name}


def kill_tagged(variable: str, value: str) -> Undo:
    """Undo by ending every process that was started with `variable`=`value` in its environment."""
    return {"do": "kill_tagged", "variable": variable, "value": value}


def remove_tree(path: str, tag: str) -> Undo:
    """Undo by removing a folder, if it holds the tag file `.rankdrill-<tag>` (`tag_folder` makes it)."""
    return {"do": "remove_tree", "path": os.path.abspath(path), "tag": tag}


def tag_folder(path: str, tag: str) -> None:
    """Mark a folder as ours, so that `remove_tree` may remove it. Raises OSError."""
    with open(os.path.join(path, f"{TAG_PREFIX}{tag}"), "xb"):
        pass


def undo_entry(entry: Entry, owner: Owner, clock: Clock) -> str:
    """Perform all of an entry's undo, in its order; return "" if all is undone, else what is not and why."""
    return "; ".join(reason for undo in entry.undo if (reason := perform(undo, owner, clock)))


def perform(undo: Undo, owner: Owner, clock: Clock) -> str:
    """Perform one undo; return "" if it is done and verified, else the reason why not. Raises nothing but bugs."""
    action = _ACTIONS.get(undo.get("do", ""))
    if action is None:
        return f"unknown undo {undo!r}: it was written by another version of rankdrill"
    try:
        return action(undo, owner, clock)
    except KeyError as error:
        return f"undo {undo!r} lacks {error}"
    except OSError as error:
        return f"undo {undo!r} failed: {error}"


def _rebooted(owner: Owner) -> bool:
    # Pids and start times are those of the boot in which they were recorded; now they name somebody else, if anybody.
    return owner.boot != processes.boot_id()


def _nothing(undo: Undo, owner: Owner, clock: Clock) -> str:
    del undo, owner, clock
    return ""


def _signal(undo: Undo, owner: Owner, clock: Clock) -> str:
    if _rebooted(owner):
        return ""
    pid, started_ticks = undo["pid"], undo["started_ticks"]
    number = signal.Signals[f"SIG{undo['signal']}"]
    limit_s = clock.monotonic_s() + RUNS_AGAIN_LIMIT_S
    if not processes.send(pid, started_ticks, number):
        return ""
    while processes.is_stopped(processes.thread_states(pid, started_ticks)):
        if clock.monotonic_s() > limit_s:
            return f"process {pid} is still stopped {RUNS_AGAIN_LIMIT_S:g} s after {number.name}"
        clock.sleep_s(PAUSE_S)
    return ""


def _kill_tagged(undo: Undo, owner: Owner, clock: Clock) -> str:
    if _rebooted(owner):
        return ""
    variable, value = undo["variable"], undo["value"]
    limit_s = clock.monotonic_s() + KILLED_LIMIT_S
    clean = 0
    # Two passes must find nobody: a child forked behind the first pass' back is found by the second.
    while clean < 2:
        found = _kill_once(variable, value)
        clean = 0 if found else clean + 1
        if found and clock.monotonic_s() > limit_s:
            return f"processes {found} of {variable}={value} live {KILLED_LIMIT_S:g} s after SIGKILL"
    return ""


def _kill_once(variable: str, value: str) -> list[int]:
    """Kill everybody who is there, wait a moment for them to end, and return who was there."""
    killed: dict[int, int] = {}
    poller = select.poll()
    try:
        for pid, pidfd in processes.tagged(variable, value):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            kept = os.dup(pidfd)
            killed[kept] = pid
            poller.register(kept, select.POLLIN)
        if killed:
            # The first end is reason enough to look again: the pass costs little, and new ones may have been forked.
            poller.poll(50)
        return list(killed.values())
    finally:
        for kept in killed:
            os.close(kept)


def _remove_tree(undo: Undo, owner: Owner, clock: Clock) -> str:
    del owner, clock
    path, tag = undo["path"], undo["tag"]
    marker = os.path.join(path, f"{TAG_PREFIX}{tag}")
    if not os.path.lexists(path):
        return ""
    if os.path.islink(path) or not os.path.isdir(path):
        return f"{path} is not a folder of ours: look at it and remove it by hand"
    if not os.path.lexists(marker):
        # A crash between making the folder and tagging it leaves it empty; rmdir refuses anything else.
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return ""
        except OSError:
            return f"{path} does not hold {os.path.basename(marker)}, so it is not ours: remove it by hand"
        return ""
    _empty_folder(path, keep=os.path.basename(marker))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(marker)
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return ""
    except OSError:
        # Something was put there meanwhile: it stays ours, and the next try removes it.
        tag_folder(path, tag)
        raise
    return ""


def _empty_folder(path: str, keep: str) -> None:
    # Imported here, because it is needed once at most and reapers must start fast.
    import shutil

    with os.scandir(path) as entries:
        names = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != keep]
    for name, is_folder in names:
        if is_folder:
            shutil.rmtree(name, onerror=_raise_unless_gone)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _raise_unless_gone(function: object, path: str, error: object) -> None:
    # The other reaper may remove the same tree at the same time.
    del function, path
    failure = error[1] if isinstance(error, tuple) else error
    if isinstance(failure, BaseException) and not isinstance(failure, FileNotFoundError):
        raise failure


_ACTIONS: dict[str, Callable[[Undo, Owner, Clock], str]] = {
    "nothing": _nothing,
    "signal": _signal,
    "kill_tagged": _kill_tagged,
    "remove_tree": _remove_tree,
}
