"""What a training program says of itself to the tester: steps, samples, weights. Standard library only.

Import it as `from harness import probe` is not possible on purpose (package files are empty); write
`from harness.probe import api as probe`. Without `RANKDRILL_PROBE_DIR` in the environment every call is a no-op,
so a program may keep its calls in production. A probe never raises into training: when its file cannot grow,
it stops recording, and the missing records make the drill INCONCLUSIVE.

Times are CLOCK_MONOTONIC in nanoseconds of this host.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.probe.records import SUFFIX, Record, RecordWriter

DIR_VARIABLE = "RANKDRILL_PROBE_DIR"
NODE_VARIABLE = "RANKDRILL_NODE"
BELL_VARIABLE = "RANKDRILL_BELL"

Hook = Callable[[str, int, Any], Any]


class _Probe:
    """The one writer of this process, opened at first use and forgotten in a forked child."""

    def __init__(self) -> None:
        self._writer: RecordWriter | None = None
        self._bell: socket.socket | None = None
        self._broken = False
        self.spent_ns = 0

    def write(self, kind: str, fields: Record) -> None:
        began_cpu_ns = time.thread_time_ns()
        began_ns = time.monotonic_ns()
        directory = os.environ.get(DIR_VARIABLE)
        if directory is None or self._broken:
            return
        try:
            if self._writer is None:
                self._open(Path(directory))
            assert self._writer is not None
            self._writer.append({"is": kind, "at_ns": began_ns, **fields})
        except OSError:
            self._broken = True
            return
        # A step is looked for every 40 ms anyway; waking the tester at each would cost the ranks more than it is worth.
        if kind != "step":
            self._ring()
        # CPU time: with more ranks than cores the wall clock also counts others' turns that happen to begin here.
        self.spent_ns += time.thread_time_ns() - began_cpu_ns

    def _open(self, directory: Path) -> None:
        node = os.environ.get(NODE_VARIABLE, "n0")
        pid = os.getpid()
        self._writer = RecordWriter(directory / f"{node}.{pid}.{start_ticks(pid)}{SUFFIX}")
        address = os.environ.get(BELL_VARIABLE)
        if address is not None:
            self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            with contextlib.suppress(OSError):
                self._bell.connect(address)

    def _ring(self) -> None:
        # The bell only wakes the tester early; a full or missing bell costs it a poll interval, nothing else.
        if self._bell is not None:
            with contextlib.suppress(OSError):
                self._bell.send(b".")

    def forget(self) -> None:
        """Start anew in a forked child: the file and its mapping belong to the parent."""
        self._writer = None
        self._bell = None
        self._broken = False
        self.spent_ns = 0


_probe = _Probe()
_hooks: dict[str, Hook] = {}
os.register_at_fork(after_in_child=_probe.forget)


def start_ticks(pid: int) -> int:
    """Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat).

    With the pid it names a process for good.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def joined(role: str) -> None:
    """This process is ready to hold a rank (`role` is "member" or "spare")."""
    _probe.write("joined", {"role": role})


def held(rank: int, world: int, generation: int) -> None:
    """This process holds `rank` from now on."""
    _probe.write("held", {"rank": rank, "world": world, "generation": generation})


def loaded(step: int, *, rank: int, generation: int) -> None:
    """The state after `step` is loaded, verified and ready to train on."""
    _probe.write("loaded", {"step": step, "rank": rank, "generation": generation})


def step(
    number: int,
    *,
    rank: int,
    world: int,
    generation: int = 0,
    samples: Iterable[int] = (),
    loss: float | None = None,
    started_ns: int | None = None,
) -> None:
    """Step `number` is complete here. `samples` are ids that name a sample uniquely within the whole run."""
    _probe.write(
        "step",
        {
            "step": number,
            "rank": rank,
            "world": world,
            "generation": generation,
            "samples": [int(sample) for sample in samples],
            "loss": loss,
            "started_ns": started_ns,
        },
    )


def weights(state: Mapping[str, Any], *, step: int, rank: int) -> str:
    """Record and return the SHA-256 of named tensors (anything with `detach().cpu().numpy()`), in order of name."""
    digest = hashlib.sha256()
    for name in sorted(state):
        array = state[name].detach().cpu().contiguous().numpy()
        digest.update(f"{name}:{array.dtype}:{array.shape};".encode())
        digest.update(array.tobytes())
    _probe.write("weights", {"step": step, "rank": rank, "digest": digest.hexdigest()})
    return digest.hexdigest()


def finished(step: int, *, rank: int) -> None:
    """Training is complete: `step` was the last one asked for."""
    _probe.write("finished", {"step": step, "rank": rank})


def cost(*, rank: int, steps: int, stethoscope_s: float, training_s: float) -> None:
    """What being observed has cost this process: seconds in the probe (known here) and in the stethoscope."""
    _probe.write(
        "cost",
        {
            "rank": rank,
            "steps": steps,
            "probe_s": spent_s(),
            "stethoscope_s": stethoscope_s,
            "training_s": training_s,
        },
    )


def raised(error: BaseException, *, rank: int | None, step: int | None) -> None:
    """The training program itself raised `error`."""
    text = "".join(traceback.format_exception(error))
    _probe.write("raised", {"error": f"{type(error).__name__}: {error}", "traceback": text, "rank": rank, "step": step})


def claim(
    kind: str,
    *,
    rank: int | None = None,
    pid: int | None = None,
    node: str | None = None,
    generation: int = 0,
    confirmed: bool = True,
    detail: str = "",
) -> None:
    """A stack says that something is wrong (`kind`) and with whom. Suspicions pass `confirmed=False`."""
    _probe.write(
        "claim",
        {
            "kind": kind,
            "rank": rank,
            "pid": pid,
            "node": node,
            "generation": generation,
            "confirmed": confirmed,
            "detail": detail,
        },
    )


def stopped(reason: str) -> None:
    """A stack gives up for `reason`."""
    _probe.write("stopped", {"reason": reason})


def point(name: str, step: int, value: Any = None) -> Any:
    """A named place in training where an in-process fault may act; returns `value`, changed or not."""
    hook = _hooks.get(name)
    return value if hook is None else hook(name, step, value)


def spent_s() -> float:
    """Seconds of CPU time that this process has spent inside the probe so far, system calls included."""
    return _probe.spent_ns / 1e9
