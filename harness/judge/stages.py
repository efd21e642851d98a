"""The stages of a recovery, fault by fault: when (tester's clock) each was reached. inf: never; None: does not apply.

With several faults a figure is the slowest of them. Faults that fall into one pause end it together, since the world
steps only when it is over all of them: the figure then counts from the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from harness.judge.evidence import Evidence, Track, replacements
from harness.judge.figures import RecordsMissing
from harness.judge.steady import RECOVERED_STEPS, SteadyState, normal_runs
from harness.judge.steps import Completion
from harness.observe.observation import (
    Claim,
    FaultInjected,
    MemberJoined,
    ProcessExited,
    RankHeld,
    StackStopped,
    StateLoaded,
    WorkloadRaised,
)

Stage = Callable[[Evidence, Track, FaultInjected], float | None]


def slowest(evidence: Evidence, stage: Stage) -> float | None:
    """Return the longest time, in seconds, that any fault took from its injection to a stage; None if none has it."""
    took_s: list[float] = []
    missing: RecordsMissing | None = None
    for track, injected in evidence.injected:
        try:
            at_s = stage(evidence, track, injected)
        except RecordsMissing as reason:
            missing = missing or reason
            continue
        if at_s is not None:
            took_s.append(at_s - injected.at_s)
    longest_s = max(took_s, default=None)
    # A stage never reached for one fault is never reached at all, whatever is not known of the others.
    if missing is not None and longest_s != math.inf:
        raise missing
    return longest_s


def reacted(evidence: Evidence) -> float | None:
    """Seconds from the first fault to the stack's first visible reaction; only for stacks without alarms.

    A reaction is a claim, a process that starts or is ended, a rank or state taken up, or giving up. What the fault
    does by itself is none: the target's own exit, and the exit of a rank whose program raised.
    """
    if evidence.plan.stack_alarms or not evidence.injected:
        return None
    since_s = evidence.first_injected_s
    not_ended_by_the_stack = frozenset(
        [member for _, injected in evidence.injected for member in injected.members]
        + [raised.member for raised in evidence.timeline.of(WorkloadRaised)]
    )
    seen: list[float] = [
        exited.at_s for exited in evidence.timeline.of(ProcessExited) if exited.member not in not_ended_by_the_stack
    ]
    for kind in (Claim, MemberJoined, RankHeld, StateLoaded, StackStopped):
        seen.extend(record.at_s for record in evidence.timeline.of(kind))
    return min((at_s - since_s for at_s in seen if at_s > since_s), default=math.inf)


def swapped(evidence: Evidence, track: Track, injected: FaultInjected) -> float | None:
    """When other members held all ranks that the fault hit."""
    if not track.stops_ranks:
        return None
    first: dict[int, float] = {}
    for held in replacements(evidence.timeline, injected):
        first.setdefault(held.rank, held.at_s)
    missing = [rank for rank in injected.ranks if rank not in first]
    if not missing:
        return max(first[rank] for rank in injected.ranks)
    targets = frozenset(injected.members)
    for record in evidence.records_of(missing):
        if record.at_s > injected.at_s and record.member not in targets:
            raise RecordsMissing(f"rank {record.rank} steps in another process that never said it holds the rank")
    return math.inf


def restored(evidence: Evidence, track: Track, injected: FaultInjected) -> float | None:
    """When all ranks of one generation had loaded the state of one and the same step."""
    if not track.stops_ranks:
        return None
    loaded: dict[int, dict[int, StateLoaded]] = {}
    for record in evidence.timeline.of(StateLoaded):
        if record.at_s > injected.at_s and record.rank < evidence.plan.world:
            loaded.setdefault(record.generation, {})[record.rank] = record
    whole = [list(ranks.values()) for ranks in loaded.values() if len(ranks) == evidence.plan.world]
    agreed = [records for records in whole if all(record.step == records[0].step for record in records)]
    if agreed:
        return min(max(record.at_s for record in records) for records in agreed)
    anew = evidence.break_after(injected.at_s) is not None and math.isfinite(stepped(evidence, track, injected))
    if anew and not whole:
        most = max((len(ranks) for ranks in loaded.values()), default=0)
        raise RecordsMissing(
            f"the world steps again, but {most} of {evidence.plan.world} ranks said that they loaded a state"
        )
    return math.inf


def first_step(evidence: Evidence, track: Track, injected: FaultInjected) -> float | None:
    """When the whole new world had completed a step; for faults that stop ranks."""
    return stepped(evidence, track, injected) if track.stops_ranks else None


def stepped(evidence: Evidence, track: Track, injected: FaultInjected) -> float:
    """When a full-world step was complete in which the ranks that were hit took part *after* the fault.

    A step that was in flight may still be completed by the old world: the dead rank had recorded it in time. It is
    told apart by the record of the rank that was hit: it must come from another process, or from the same one once
    the fault was proven effective (a stopped process that runs again). A killed one does not come back.
    """
    require_step_records(evidence)
    came_back: dict[tuple[int, int, int], list[float]] = {}
    targets = frozenset(injected.members)
    back_s = track.effective.at_s if track.effective is not None and track.planned.has_undo else math.inf
    attempts: dict[tuple[int, int, int], int] = {}
    for record in evidence.records_of(injected.ranks):
        key = (record.generation, record.step, record.rank)
        attempt = attempts[key] = attempts.get(key, -1) + 1
        if record.at_s > (back_s if record.member in targets else injected.at_s):
            came_back.setdefault((record.generation, record.step, attempt), []).append(record.at_s)
    for done in evidence.log.completions:
        took_part = came_back.get((done.generation, done.step, done.attempt), ())
        if done.at_s > injected.at_s and len(took_part) == len(injected.ranks):
            return done.at_s
    return math.inf


def recovered(evidence: Evidence, track: Track, injected: FaultInjected) -> float | None:
    """When the first of five normal steps in a row was complete, all five while the fault still held.

    The stretch of normal steps must last beyond the proof of effect: steps before a fault bites prove nothing.
    """
    require_step_records(evidence)
    steady = require_steady(evidence)
    if track.effective is None:
        raise RecordsMissing(f"nothing shows that {track.planned.id} took effect")
    after = [done for done in evidence.log.completions if done.at_s > injected.at_s]
    for run in normal_runs(after, steady.limit_s):
        counted = sum(track.effective.at_s < done.at_s < track.holds_until_s for done in run)
        if counted >= RECOVERED_STEPS:
            return run[0].at_s
    if evidence.trained and len(after) <= RECOVERED_STEPS and math.isinf(track.holds_until_s):
        raise RecordsMissing(
            f"training ended {len(after)} full-world steps after {track.planned.id}: too few to show a recovery"
        )
    return math.inf


def caught_up(evidence: Evidence, track: Track, injected: FaultInjected) -> float | None:
    """When the step after the last one that every rank had completed was complete."""
    require_step_records(evidence)
    wanted = completed_before(evidence, injected) + 1
    if wanted > evidence.plan.steps:
        raise RecordsMissing(f"{track.planned.id} came when all steps were done")
    return next(
        (done.at_s for done in evidence.log.completions if done.at_s > injected.at_s and done.step >= wanted), math.inf
    )


def completed_before(evidence: Evidence, injected: FaultInjected) -> int:
    """Return H: the highest step that every rank had completed when the world broke, or at the fault if it did not."""
    broken = evidence.break_after(injected.at_s)
    return broken.completed if broken is not None else evidence.log.completed_by(injected.at_s)


def require_steady(evidence: Evidence) -> SteadyState:
    """Return the steady state before the fault (RecordsMissing without one)."""
    if not isinstance(evidence.steady, SteadyState):
        raise RecordsMissing(evidence.steady.reason)
    return evidence.steady


def require_step_records(evidence: Evidence) -> Sequence[Completion]:
    """Return the full-world steps (RecordsMissing when ranks that must have stepped have no records)."""
    absent = evidence.log.absences
    if absent:
        one = absent[0]
        more = f", and {len(absent) - 1} more like it" if len(absent) > 1 else ""
        raise RecordsMissing(
            f"rank {one.rank} has no step records from step {one.from_step} of generation {one.generation} on, "
            f"though the others went on{more}"
        )
    return evidence.log.completions
