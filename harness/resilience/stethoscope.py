"""Where a rank's time goes: a page of 8-byte words that its agent reads, and a ring of the last steps.

No lock and nothing that blocks on the training thread: clock reads and plain stores through a typed view. All times are
CLOCK_MONOTONIC nanoseconds.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

PHASES = ("idle", "form", "restore", "data", "compute", "communicate", "snapshot", "checkpoint", "evaluate", "finished")
PHASE_CODE = {name: code for code, name in enumerate(PHASES)}

RANK, GENERATION, STEP, PHASE, ENTERED_NS, COLLECTIVE, STEPS_DONE = range(7)
DIGEST = 16
RING = 64
RING_STEPS = 256
RING_WORDS = 8
PAGE_WORDS = RING + RING_STEPS * RING_WORDS
PAGE_BYTES = -(-PAGE_WORDS * 8 // mmap.PAGESIZE) * mmap.PAGESIZE
# Words of a ring entry: step, then nanoseconds of the whole step and of its parts.
ENTRY_STEP, ENTRY_TOTAL, ENTRY_DATA, ENTRY_COMMUNICATE, ENTRY_SNAPSHOT, ENTRY_COMPUTE, ENTRY_CPU, ENTRY_SELF = range(8)


def create_page(name: str) -> int:
    """Make a status page and return its descriptor."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    os.posix_fallocate(fd, 0, PAGE_BYTES)
    return fd


class Stethoscope:
    """The rank's side of the page. `spent_ns` is what it has cost, in CPU time of the training thread.

    CPU time, because with more ranks than cores the wall clock also counts others' turns that happen to begin here.
    """

    def __init__(self, fd: int | None = None) -> None:
        self._map = mmap.mmap(-1 if fd is None else fd, PAGE_BYTES)
        self._words = memoryview(self._map).cast("q")
        self._parts = {"data": 0, "communicate": 0, "snapshot": 0}
        self._step_began_ns = 0
        self._cpu_began_ns = 0
        self.spent_ns = 0
        self.stepping_ns = 0
        self.steps = 0
        self._spent_before_ns = 0

    def hold(self, rank: int, generation: int) -> None:
        """This process holds a rank in a generation."""
        self._words[RANK], self._words[GENERATION] = rank, generation

    def enter(self, phase: str) -> None:
        """Training is in this phase from now on."""
        began_ns = time.thread_time_ns()
        self._words[PHASE] = PHASE_CODE[phase]
        self._words[ENTERED_NS] = time.monotonic_ns()
        self.spent_ns += time.thread_time_ns() - began_ns

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the step."""
        began_ns = time.monotonic_ns()
        self.enter(name)
        try:
            yield
        finally:
            self.enter("compute")
            if name in self._parts:
                self._parts[name] += time.monotonic_ns() - began_ns

    def enter_collective(self) -> None:
        """A collective begins; its sequence number tells who is behind."""
        self._words[COLLECTIVE] += 1
        self.enter("communicate")

    def leave_collective(self, took_ns: int) -> None:
        """It has ended, well or not."""
        self._parts["communicate"] += took_ns
        self.enter("compute")

    def begin_step(self, step: int) -> None:
        """A step begins."""
        self._words[STEP] = step
        for name in self._parts:
            self._parts[name] = 0
        self.enter("compute")
        self._step_began_ns = time.monotonic_ns()
        self._cpu_began_ns = time.thread_time_ns()

    def end_step(self, step: int) -> None:
        """A step is complete; its digest goes to the page and into the ring."""
        began_ns = time.thread_time_ns()
        total = time.monotonic_ns() - self._step_began_ns
        entry = (
            step,
            total,
            self._parts["data"],
            self._parts["communicate"],
            self._parts["snapshot"],
            total - sum(self._parts.values()),
            began_ns - self._cpu_began_ns,
            self.spent_ns - self._spent_before_ns,
        )
        self._spent_before_ns = self.spent_ns
        base = RING + (step % RING_STEPS) * RING_WORDS
        for place, value in enumerate(entry):
            self._words[base + place] = value
            self._words[DIGEST + place] = value
        self._words[STEPS_DONE] += 1
        self.steps += 1
        self.stepping_ns += total
        self.spent_ns += time.thread_time_ns() - began_ns


class StatusReader:
    """The agent's side of the page."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._map = mmap.mmap(fd, PAGE_BYTES, prot=mmap.PROT_READ)
        self._words = memoryview(self._map).cast("q")

    def phase(self) -> str:
        """The phase that training is in."""
        return PHASES[self._words[PHASE]]

    def word(self, place: int) -> int:
        """One word of the page."""
        return int(self._words[place])

    def digest(self) -> tuple[int, ...]:
        """The last complete step's entry: step, then nanoseconds by part."""
        return tuple(self._words[DIGEST : DIGEST + RING_WORDS].tolist())

    def close(self) -> None:
        """Close the descriptor; the mapping goes with this object."""
        os.close(self._fd)
