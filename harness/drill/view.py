"""What is known of a run while it runs: who is there, how far it is, what it said. Fed by the collector's thread."""

from __future__ import annotations

import threading
from dataclasses import replace

from chaos.target import Roster, RosterMember
from harness.observe.observation import (
    Claim,
    FaultInjected,
    MemberId,
    MemberJoined,
    Observation,
    ProcessExited,
    RankHeld,
    StackStopped,
    StepDone,
    TrainingFinished,
    WorkloadRaised,
)


class RunView:
    """The newest state of one run of `world` ranks. Safe to ask from any thread."""

    def __init__(self, world: int) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._members: dict[MemberId, None] = {}
        self._holder: dict[int, MemberId] = {}
        self._step: dict[int, int] = {}
        self._finished: dict[int, None] = {}
        self._fixed = Roster(members=())
        self._joined = 0
        self.raised: WorkloadRaised | None = None
        self.stopped: StackStopped | None = None
        self.injected = False
        self.last_claim: Claim | None = None

    def see(self, seen: Observation) -> None:
        """Take in one observation."""
        with self._lock:
            self._see(seen)

    def place(self, role: str, process: RosterMember) -> None:
        """Add a process that the tester started: the controller, or an agent."""
        with self._lock:
            if role == "controller":
                self._fixed = replace(self._fixed, controller=process)
            elif role == "agent":
                self._fixed = replace(self._fixed, agents=(*self._fixed.agents, process))

    def roster(self) -> Roster:
        """Return who can be hit now."""
        with self._lock:
            rank_of = {member: rank for rank, member in self._holder.items()}
            members = tuple(RosterMember(*member, rank=rank_of.get(member)) for member in self._members)
            return replace(self._fixed, members=members)

    def finished(self) -> bool:
        """Whether every rank has said that its training is complete."""
        with self._lock:
            return len(self._finished) == self._world

    def joined(self) -> int:
        """How many members have ever joined."""
        return self._joined

    def world_step(self) -> int:
        """The highest step that every rank has completed; 0 before the first."""
        with self._lock:
            return min(self._step.values()) if len(self._step) == self._world else 0

    def any_step(self) -> bool:
        """Whether any rank has completed a step."""
        return bool(self._step)

    def _see(self, seen: Observation) -> None:
        match seen:
            case MemberJoined():
                self._members[seen.member] = None
                self._joined += 1
            case RankHeld():
                self._members[seen.member] = None
                self._holder[seen.rank] = seen.member
            case StepDone():
                self._members.setdefault(seen.member, None)
                self._holder.setdefault(seen.rank, seen.member)
                self._step[seen.rank] = max(seen.step, self._step.get(seen.rank, 0))
            case ProcessExited():
                self._members.pop(seen.member, None)
            case TrainingFinished():
                self._finished[seen.rank] = None
            case WorkloadRaised():
                self.raised = self.raised or seen
            case StackStopped():
                self.stopped = self.stopped or seen
            case FaultInjected():
                self.injected = True
            case Claim():
                self.last_claim = seen
            case _:
                pass
