"""What the tester saw, as typed records. Pure data: no clock, no I/O.

Every `at_s` is the tester's CLOCK_MONOTONIC in seconds. A record that originates in another process carries that
process' own time, moved to the tester's clock; a `Claim` carries the time of *receipt*, since a claim nobody has read
yet helps nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class MemberId(NamedTuple):
    """One process for good: node, pid, and start time in clock ticks since boot."""

    node: str
    pid: int
    started_ticks: int


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first process of the drill is about to be started."""

    at_s: float


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The drill is over.

    `reason`: "finished" (workload complete), "stopped" (the stack gave up), "horizon", "workload-error", "interrupted".
    """

    at_s: float
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A member is ready to hold a rank; `role` is "member" or "spare"."""

    at_s: float
    member: MemberId
    role: str


@dataclass(frozen=True, slots=True)
class RankHeld:
    """A member holds a rank from now on."""

    at_s: float
    member: MemberId
    rank: int
    world: int
    generation: int


@dataclass(frozen=True, slots=True)
class StateLoaded:
    """A member has loaded the state after `step` for its rank."""

    at_s: float
    member: MemberId
    rank: int
    generation: int
    step: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """A rank completed a step. `started_s` is None where the program does not say."""

    at_s: float
    started_s: float | None
    member: MemberId
    rank: int
    world: int
    generation: int
    step: int
    samples: tuple[int, ...]
    loss: float | None


@dataclass(frozen=True, slots=True)
class WeightsDigest:
    """SHA-256 of a rank's weights after `step`."""

    at_s: float
    member: MemberId
    rank: int
    step: int
    digest: str


@dataclass(frozen=True, slots=True)
class TrainingFinished:
    """A rank's training loop is complete."""

    at_s: float
    member: MemberId
    rank: int
    step: int


@dataclass(frozen=True, slots=True)
class ObservationCost:
    """What being observed has cost a rank: seconds in probe and stethoscope, against the seconds its steps took."""

    at_s: float
    member: MemberId
    rank: int
    steps: int
    probe_s: float
    stethoscope_s: float
    training_s: float


@dataclass(frozen=True, slots=True)
class WorkloadRaised:
    """The training program itself raised."""

    at_s: float
    member: MemberId
    rank: int | None
    step: int | None
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class ProcessExited:
    """The tester saw a member's process end. `code` and `signal` are None where the kernel does not tell."""

    at_s: float
    member: MemberId
    code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The stack says something is wrong. `at_s` is the receipt, `said_s` the stack's own time.

    Suspicions have `confirmed=False`.
    """

    at_s: float
    said_s: float
    kind: str
    rank: int | None
    pid: int | None
    node: str | None
    generation: int
    confirmed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class StackStopped:
    """The stack gave up, with its reason."""

    at_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class FaultInjected:
    """The clock of a fault starts: taken just before the injecting call."""

    at_s: float
    fault: str
    kind: str
    target: str
    ranks: tuple[int, ...]
    members: tuple[MemberId, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FaultEffective:
    """A measurement shows that the fault bites; `proof` says which."""

    at_s: float
    fault: str
    proof: str


@dataclass(frozen=True, slots=True)
class FaultFailed:
    """The fault had no effect, or could not be applied."""

    at_s: float
    fault: str
    reason: str


@dataclass(frozen=True, slots=True)
class FaultHealed:
    """Our undo ran and was verified (`verified`), or failed (then `detail` says why and the verdict is ERROR)."""

    at_s: float
    fault: str
    verified: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ObserverLost:
    """The tester lost sight of something it must see; figures that need it are INCONCLUSIVE."""

    at_s: float
    what: str


Observation = (
    RunStarted
    | RunEnded
    | MemberJoined
    | RankHeld
    | StateLoaded
    | StepDone
    | WeightsDigest
    | TrainingFinished
    | ObservationCost
    | WorkloadRaised
    | ProcessExited
    | Claim
    | StackStopped
    | FaultInjected
    | FaultEffective
    | FaultFailed
    | FaultHealed
    | ObserverLost
)
