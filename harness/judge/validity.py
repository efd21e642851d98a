"""Is the drill fit to be judged at all? What is found here makes it INCONCLUSIVE, or ERROR, whatever the limits say."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.judge.evidence import Evidence, Track
from harness.judge.stages import stepped
from harness.judge.steady import Unsteady
from harness.observe.observation import FaultHealed, ObserverLost, RunEnded, StackStopped, WorkloadRaised
from harness.observe.timeline import Timeline


def errors(timeline: Timeline, dirty: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is wrong with the tester or the host: with any of it the verdict is ERROR, always."""
    found = [f"left on this host: {what}" for what in dirty]
    found += [
        f"{healed.fault} could not be undone: {healed.detail}"
        for healed in timeline.of(FaultHealed)
        if not healed.verified
    ]
    ended = timeline.first(RunEnded)
    if ended is not None and ended.reason == "interrupted":
        found.append(f"interrupted{': ' + ended.detail if ended.detail else ''}")
    return tuple(found)


def own_error(evidence: Evidence) -> WorkloadRaised | None:
    """Return what the training program raised by itself: before any fault could be blamed for it."""
    return next(
        (raised for raised in evidence.timeline.of(WorkloadRaised) if raised.at_s < evidence.first_injected_s), None
    )


def broken(evidence: Evidence) -> tuple[str, ...]:
    """Return why no check can be trusted; empty when all can."""
    return tuple(_broken(evidence))


def _broken(evidence: Evidence) -> Iterator[str]:
    raised = own_error(evidence)
    if raised is not None:
        where = "" if raised.step is None else f" at step {raised.step}"
        who = "" if raised.rank is None else f" on rank {raised.rank}"
        yield f"the workload raised by itself{where}{who}: {raised.error}"
    elif _ended_before_any_fault(evidence, "workload-error"):
        yield f"the workload failed by itself: {evidence.ended.detail if evidence.ended else ''}"
    stopped = evidence.timeline.first(StackStopped)
    if stopped is not None and evidence.plan.faults and stopped.at_s < evidence.first_injected_s:
        yield f"the stack stopped before any fault: {stopped.reason}"
    for lost in evidence.timeline.of(ObserverLost):
        yield f"the tester lost sight: {lost.what}"
    if evidence.ended is None:
        yield "the end of the run was not recorded"
    if isinstance(evidence.steady, Unsteady):
        yield f"no steady state before the fault: {evidence.steady.reason}"
        for absent in evidence.log.absences[:1]:
            yield f"rank {absent.rank} has no step records from step {absent.from_step} on, though the others went on"
    for track in evidence.tracks:
        yield from _unproven(evidence, track)


def _unproven(evidence: Evidence, track: Track) -> Iterator[str]:
    name = f"{track.planned.id} ({track.planned.kind})"
    if track.injected is not None and evidence.log.completed_by(track.injected.at_s) >= evidence.plan.steps:
        yield f"{name} was injected when all steps were done"
    elif _world_was_lost_before(evidence, track):
        # The stack did not come back from an earlier fault; that this one could not be tried takes nothing from it.
        return
    elif track.failed is not None:
        yield f"{name} had no effect: {track.failed.reason}"
    elif track.injected is None:
        how = "" if evidence.ended is None else f" (the run ended: {evidence.ended.reason})"
        yield f"{name} was never injected{how}"
    elif track.effective is None:
        yield f"nothing shows that {name} took effect"


def _world_was_lost_before(evidence: Evidence, track: Track) -> bool:
    """Whether a proven earlier fault stopped the world for good."""
    own_s = track.injected.at_s if track.injected is not None else math.inf
    return any(
        earlier.stops_ranks
        and earlier.effective is not None
        and injected.at_s < own_s
        and not evidence.log.absences
        and math.isinf(stepped(evidence, earlier, injected))
        for earlier, injected in evidence.injected
        if earlier is not track
    )


def _ended_before_any_fault(evidence: Evidence, reason: str) -> bool:
    ended = evidence.ended
    return ended is not None and ended.reason == reason and ended.at_s < evidence.first_injected_s
