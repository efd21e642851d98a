"""What a fault cost in work and in bystanders: steps executed again, healthy processes ended."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.judge.evidence import Evidence, finished_s
from harness.judge.figures import RecordsMissing
from harness.judge.stages import completed_before, require_step_records, stepped
from harness.judge.steps import Break, Change
from harness.observe.observation import MemberId, ProcessExited, RankHeld


def lost_steps(evidence: Evidence) -> float | int | None:
    """Steps that every rank had completed and that were executed again, over all breaks since the first fault.

    inf when nothing was executed after a fault that stops ranks: what is lost then is everything.
    """
    if not evidence.injected:
        return None
    _require_work_left(evidence)
    if _nothing_executed_after(evidence):
        return math.inf
    return sum(max(0, broken.completed + 1 - broken.first_step) for broken in _breaks_since_fault(evidence))


def redone_steps(evidence: Evidence) -> float | int | None:
    """Steps beyond H that were in flight and were executed again, over all breaks since the first fault.

    A step is known to be in flight when a rank had recorded it; after a fault that stops ranks, H + 1 is in flight
    anyway, since ranks begin it as soon as H is complete.
    """
    if not evidence.injected:
        return None
    _require_work_left(evidence)
    if _nothing_executed_after(evidence):
        return math.inf
    stopping = [
        broken
        for track, injected in evidence.injected
        if track.stops_ranks and (broken := evidence.break_after(injected.at_s)) is not None
    ]
    total = 0
    for broken in _breaks_since_fault(evidence):
        begun = max(broken.begun, broken.completed + 1) if broken in stopping else broken.begun
        total += max(0, begun - max(broken.completed, broken.first_step - 1))
    return total


def bystanders_rolled_back(evidence: Evidence) -> int:
    """Ranks that no fault had hit and that executed a step <= H again. Loading the state of H does not count."""
    require_step_records(evidence)
    since_s = _since_s(evidence)
    rolled_back: dict[int, None] = {}
    for broken in evidence.log.breaks:
        if broken.at_s <= since_s:
            continue
        hit = frozenset(
            rank for _, injected in evidence.injected if injected.at_s < broken.at_s for rank in injected.ranks
        )
        rolled_back.update(dict.fromkeys(rank for rank in broken.again if rank not in hit))
    return len(rolled_back)


def bystanders_restarted(evidence: Evidence) -> int:
    """Members that no fault had hit and that ended, or lost their rank to another for good, before the run was over.

    Who ended a healthy process cannot be seen from outside, so one that died by itself counts too: otherwise a stack
    could excuse a kill by calling it a crash.
    """
    since_s, over_s = _since_s(evidence), evidence.over_s
    hit_s: dict[MemberId, float] = {}
    for _, injected in evidence.injected:
        for member in injected.members:
            hit_s.setdefault(member, injected.at_s)
    done = finished_s(evidence)
    exits = evidence.timeline.of(ProcessExited)
    gone = [(seen.at_s, seen.member) for seen in exits if seen.at_s < done.get(seen.member, math.inf)]
    gone.extend(_displaced(evidence))
    return len({member for at_s, member in gone if since_s < at_s < over_s and hit_s.get(member, math.inf) > at_s})


def _displaced(evidence: Evidence) -> Sequence[tuple[float, MemberId]]:
    """Return who lost a rank to another process and was never seen with a rank again."""
    passed = list(evidence.log.changes)
    holders: dict[int, MemberId] = {}
    for held in evidence.timeline.of(RankHeld):
        old = holders.get(held.rank)
        if old is not None and old != held.member:
            passed.append(Change(held.at_s, held.rank, old, held.member))
        holders[held.rank] = held.member
    last_seen_s: dict[MemberId, float] = {}
    for held in evidence.timeline.of(RankHeld):
        last_seen_s[held.member] = held.at_s
    for record in evidence.log.records:
        last_seen_s[record.member] = max(record.at_s, last_seen_s.get(record.member, record.at_s))
    return [(change.at_s, change.old) for change in passed if last_seen_s.get(change.old, change.at_s) <= change.at_s]


def _breaks_since_fault(evidence: Evidence) -> Sequence[Break]:
    return [broken for broken in evidence.log.breaks if broken.at_s > evidence.first_injected_s]


def _since_s(evidence: Evidence) -> float:
    """Return from when on bystanders are watched: the first fault, or, in a run without faults, its start."""
    return evidence.first_injected_s if evidence.injected else evidence.started_s


def _nothing_executed_after(evidence: Evidence) -> bool:
    return any(
        evidence.break_after(injected.at_s) is None and math.isinf(stepped(evidence, track, injected))
        for track, injected in evidence.injected
        if track.stops_ranks
    )


def _require_work_left(evidence: Evidence) -> None:
    require_step_records(evidence)
    for track, injected in evidence.injected:
        if completed_before(evidence, injected) >= evidence.plan.steps:
            raise RecordsMissing(f"{track.planned.id} came when all steps were done")
