"""One reading of a timeline: what every figure and every rule of validity starts from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.errors import HarnessError
from harness.judge.expectations import Expectation, expectation
from harness.judge.plan import Plan, PlannedFault, Reference
from harness.judge.steady import SteadyState, Unsteady, steady_before
from harness.judge.steps import Break, StepLog, read_steps
from harness.observe.observation import (
    FaultEffective,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    MemberId,
    ProcessExited,
    RankHeld,
    RunEnded,
    RunStarted,
    StackStopped,
    StepDone,
    TrainingFinished,
)
from harness.observe.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Track:
    """What became of one planned fault. `holds_until_s` is when our undo ended it for the world; inf: never."""

    planned: PlannedFault
    expected: Expectation
    injected: FaultInjected | None
    effective: FaultEffective | None
    failed: FaultFailed | None
    healed: FaultHealed | None
    holds_until_s: float

    @property
    def stops_ranks(self) -> bool:
        """Whether the fault took ranks out, so that a swap, a restore and a first step must follow."""
        return self.expected.stops_the_world and self.injected is not None and bool(self.injected.ranks)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Timeline, plan and what follows from both. Times are seconds on the tester's clock."""

    timeline: Timeline
    plan: Plan
    reference: Reference | None
    log: StepLog
    tracks: tuple[Track, ...]
    steady: SteadyState | Unsteady
    started_s: float
    ended: RunEnded | None
    end_s: float
    trained_s: float
    by_hit_rank: Mapping[int, Sequence[StepDone]]

    @property
    def trained(self) -> bool:
        """Whether the whole world completed the last step that was asked for."""
        return math.isfinite(self.trained_s)

    @property
    def over_s(self) -> float:
        """When the run was over for its members: trained, given up, or ended. Exits after that are tidying up."""
        stopped = self.timeline.first(StackStopped)
        return min(self.trained_s, self.end_s, stopped.at_s if stopped is not None else math.inf)

    @property
    def injected(self) -> tuple[tuple[Track, FaultInjected], ...]:
        """The faults that were injected, in order of time."""
        pairs = [(track, track.injected) for track in self.tracks if track.injected is not None]
        return tuple(sorted(pairs, key=lambda pair: pair[1].at_s))

    @property
    def first_injected_s(self) -> float:
        """When the first fault was injected; inf if none was."""
        return min((injected.at_s for _, injected in self.injected), default=math.inf)

    def break_after(self, at_s: float) -> Break | None:
        """Return the first new world that completed a step after a moment."""
        return next((broken for broken in self.log.breaks if broken.at_s > at_s), None)

    def records_of(self, ranks: Iterable[int]) -> Sequence[StepDone]:
        """Return the step records of ranks that a fault hit."""
        return [record for rank in ranks for record in self.by_hit_rank.get(rank, ())]


def gather(timeline: Timeline, plan: Plan, reference: Reference | None) -> Evidence:
    """Read a timeline (HarnessError if it cannot belong to the plan)."""
    log = read_steps(timeline.of(StepDone), plan.world)
    tracks = _tracks(timeline, plan)
    start = timeline.first(RunStarted)
    started_s = start.at_s if start is not None else min((seen.at_s for seen in timeline), default=0.0)
    ended = timeline.first(RunEnded)
    end_s = ended.at_s if ended is not None else max((seen.at_s for seen in timeline), default=0.0)
    first_s = min((track.injected.at_s for track in tracks if track.injected is not None), default=math.inf)
    return Evidence(
        timeline=timeline,
        plan=plan,
        reference=reference,
        log=log,
        tracks=tracks,
        steady=steady_before(log.completions, started_s=started_s, until_s=first_s, within_s=plan.steady_within_s),
        started_s=started_s,
        ended=ended,
        end_s=end_s,
        trained_s=min((done.at_s for done in log.completions if done.step == plan.steps), default=math.inf),
        by_hit_rank=_by_hit_rank(log.records, tracks),
    )


def _by_hit_rank(records: Sequence[StepDone], tracks: Sequence[Track]) -> dict[int, list[StepDone]]:
    found: dict[int, list[StepDone]] = {}
    for track in tracks:
        if track.injected is not None:
            found.update((rank, []) for rank in track.injected.ranks)
    for record in records if found else ():
        if record.rank in found:
            found[record.rank].append(record)
    return found


def _tracks(timeline: Timeline, plan: Plan) -> tuple[Track, ...]:
    injected = _by_fault(timeline.of(FaultInjected))
    planned = [fault.id for fault in plan.faults]
    for name in injected:
        if name not in planned:
            raise HarnessError(
                f"the timeline has a fault {name!r} that is not in the plan ({', '.join(planned) or 'none'})"
            )
    effective, failed = _by_fault(timeline.of(FaultEffective)), _by_fault(timeline.of(FaultFailed))
    healed = _by_fault(timeline.of(FaultHealed))
    return tuple(
        Track(
            planned=fault,
            expected=expectation(fault.kind),
            injected=injected.get(fault.id),
            effective=effective.get(fault.id),
            failed=failed.get(fault.id),
            healed=healed.get(fault.id),
            holds_until_s=_holds_until_s(timeline, fault, injected.get(fault.id), healed.get(fault.id)),
        )
        for fault in plan.faults
    )


Record = TypeVar("Record", FaultInjected, FaultEffective, FaultFailed, FaultHealed)


def _by_fault(records: Sequence[Record]) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for record in records:
        found.setdefault(record.fault, record)
    return found


def _holds_until_s(
    timeline: Timeline, fault: PlannedFault, injected: FaultInjected | None, healed: FaultHealed | None
) -> float:
    """Return when the fault stopped to weigh on the world by our doing."""
    if injected is None or healed is None or fault.transient or not fault.has_undo:
        return math.inf
    if _targets_gone(timeline, injected, healed.at_s) or _ranks_replaced(timeline, injected, healed.at_s):
        # The stack had killed, replaced or routed round the target: our undo healed nothing that the world still felt.
        return math.inf
    return healed.at_s


def _targets_gone(timeline: Timeline, injected: FaultInjected, by_s: float) -> bool:
    gone = {seen.member for seen in timeline.of(ProcessExited) if seen.at_s <= by_s}
    return bool(injected.members) and all(member in gone for member in injected.members)


def _ranks_replaced(timeline: Timeline, injected: FaultInjected, by_s: float) -> bool:
    replaced = {held.rank for held in replacements(timeline, injected) if held.at_s <= by_s}
    return bool(injected.ranks) and all(rank in replaced for rank in injected.ranks)


def replacements(timeline: Timeline, injected: FaultInjected) -> Sequence[RankHeld]:
    """Return when other members took ranks that a fault hit."""
    ranks, members = frozenset(injected.ranks), frozenset(injected.members)
    return [
        held
        for held in timeline.of(RankHeld)
        if held.at_s > injected.at_s and held.rank in ranks and held.member not in members
    ]


def finished_s(evidence: Evidence) -> dict[MemberId, float]:
    """Return who completed the training that was asked for, and when."""
    last = evidence.plan.steps
    done: dict[MemberId, float] = {}
    for record in evidence.log.records:
        if record.step >= last:
            done.setdefault(record.member, record.at_s)
    for said in evidence.timeline.of(TrainingFinished):
        if said.step >= last:
            done.setdefault(said.member, said.at_s)
    return done
