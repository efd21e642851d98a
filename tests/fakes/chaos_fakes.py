"""Fakes and real victims for the tests of chaos: a clock that tests move, scripted processes, real children."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from chaos import processes
from chaos.errors import InjectError
from chaos.fault import Fault, parse_fault
from chaos.target import Roster, RosterMember
from chaos.trigger import Sighting
from tests.fakes.waiting import wait_until

TAG_VARIABLE = "RANKDRILL_RUN"


class FakeClock:
    """Stands still until it is moved, or somebody sleeps on it."""

    def __init__(self, now_s: float = 100.0) -> None:
        self.now_s = now_s

    def monotonic_s(self) -> float:
        return self.now_s

    def boottime_s(self) -> float:
        return self.now_s + 1000.0

    def sleep_s(self, duration_s: float) -> None:
        self.now_s += duration_s


class FakeHost:
    """Processes as a table of thread states. STOP, CONT and KILL do what they do; `immune` processes ignore them."""

    def __init__(self, node: str = "n0") -> None:
        self.node = node
        self.states: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self.immune: dict[int, tuple[str, ...]] = {}
        self.forbidden: tuple[int, ...] = ()
        self.sent: list[tuple[int, str]] = []

    def add(self, pid: int, states: str = "SS", parent: int = 1, rank: int | None = None) -> RosterMember:
        self.states[pid] = states
        self.parents[pid] = parent
        return RosterMember(self.node, pid, pid * 10, rank)

    def thread_states(self, member: RosterMember) -> str:
        return self.states.get(member.pid, "")

    def descendants(self, member: RosterMember) -> tuple[RosterMember, ...]:
        found = [pid for pid, parent in self.parents.items() if parent == member.pid and self.states.get(pid)]
        children = tuple(RosterMember(self.node, pid, pid * 10, None) for pid in found)
        return children + tuple(below for child in children for below in self.descendants(child))

    def send(self, member: RosterMember, signal_name: str) -> bool:
        if member.pid in self.forbidden:
            raise InjectError("not permitted")
        states = self.states.get(member.pid)
        if not states:
            return False
        self.sent.append((member.pid, signal_name))
        if signal_name not in self.immune.get(member.pid, ()):
            changed = {"STOP": "T" * len(states), "CONT": "S" * len(states)}
            self.states[member.pid] = changed.get(signal_name, "")
        return True


def fault(index: int = 0, **written: object) -> Fault:
    """A fault from its scenario form; `when` defaults to step 20."""
    return parse_fault(index, {"when": {"step": 20}, **written})


def step(rank: int, number: int, at_s: float = 0.0) -> Sighting:
    """Rank `rank` completed step `number`."""
    return Sighting(rank=rank, step=number, phase=None, event=None, at_s=at_s)


def event(name: str, at_s: float = 0.0) -> Sighting:
    """Something happened."""
    return Sighting(rank=None, step=None, phase=None, event=name, at_s=at_s)


def phase(rank: int, name: str, at_s: float = 0.0, in_step: int | None = None) -> Sighting:
    """Rank `rank` is in a phase."""
    return Sighting(rank=rank, step=in_step, phase=name, event=None, at_s=at_s)


def roster_of(*members: RosterMember) -> Roster:
    """A roster without controller and agents."""
    return Roster(members=members)


@contextmanager
def victim(
    tag: str = "", program: str = "import threading; threading.Event().wait()", setup: str = "pass"
) -> Iterator[RosterMember]:
    """A real child process in its own session, holding rank 0 of node n0; it is gone after the block.

    `setup` has run when the block begins.
    """
    environment = {TAG_VARIABLE: tag} if tag else {}
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", f"{setup}; print(flush=True); {program}"],
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    with child, child.stdout:
        # It runs its own code when it has said something: before that it may still carry its parent's environment.
        assert child.stdout.readline()
        ticks = processes.start_ticks(child.pid)
        assert ticks is not None
        try:
            yield RosterMember("n0", child.pid, ticks, 0)
        finally:
            child.kill()


def states_of(member: RosterMember) -> str:
    """Thread states of a real process."""
    return processes.thread_states(member.pid, member.started_ticks)


def is_alive(member: RosterMember) -> bool:
    """Whether a real process lives."""
    return processes.alive(member.pid, member.started_ticks)


def wait_stopped(member: RosterMember) -> None:
    """Wait until a real process is stopped."""
    wait_until(lambda: processes.is_stopped(states_of(member)), what=f"process {member.pid} stopped")


def wait_runs(member: RosterMember, limit_s: float = 20.0) -> None:
    """Wait until a real process is not stopped any more."""
    wait_until(lambda: not processes.is_stopped(states_of(member)), limit_s, f"process {member.pid} running again")


def entries_of(folder: str) -> list[str]:
    """Names in a folder, sorted."""
    return sorted(os.listdir(folder))


@contextmanager
def no_bigger_file_than(size_bytes: int) -> Iterator[None]:
    """Let every file of this process end at `size_bytes`, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
