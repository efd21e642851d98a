"""What the stack claimed, held against what was injected and against what the tester saw by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.judge.evidence import Evidence, Track, finished_s
from harness.judge.expectations import NODE_TARGETS, SHOWN_BY_ALL_EXITS, SHOWN_BY_EXIT, SHOWN_BY_EXIT_0, SHOWN_BY_RAISE
from harness.judge.figures import RecordsMissing
from harness.judge.stages import recovered, stepped
from harness.observe.observation import (
    Claim,
    FaultInjected,
    MemberId,
    MemberJoined,
    ProcessExited,
    RankHeld,
    StepDone,
    WorkloadRaised,
)

# The number that POSIX gives the signal that nobody can handle.
SIGKILL = 9
# How much later than a stack, which sees connections close, the tester may see the same process end.
EXIT_NOTICE_S = 2.0

Word = Literal["right", "suspicion", "ambient", "false alarm", "wrong blame", "vague", "undecided"]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and what it is worth. `faults` are the ids of the faults that it rightly names."""

    claim: Claim
    word: Word
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Roll:
    """Who was where. Built once, since every claim asks."""

    holds: Mapping[int, Sequence[RankHeld]]
    by_node: Mapping[str, Mapping[MemberId, float]]
    by_pid: Mapping[int, Sequence[MemberId]]
    exits: Mapping[MemberId, ProcessExited]
    raised_s: Mapping[MemberId, float]
    excused: frozenset[MemberId]

    def holder(self, rank: int, generation: int, at_s: float) -> MemberId | None:
        """Return who held a rank in a generation (or before it), as far as was known at a moment."""
        holder = None
        for held in self.holds.get(rank, ()):
            if held.at_s <= at_s and held.generation <= generation:
                holder = held.member
        return holder

    def named(self, claim: Claim) -> MemberId | None:
        """Return the one member that a claim names, if it names one that was ever seen."""
        if claim.pid is not None:
            known = self.by_pid.get(claim.pid, ())
            return next((member for member in known if claim.node in (None, member.node)), None)
        return None if claim.rank is None else self.holder(claim.rank, claim.generation, claim.at_s)


def judge_claims(evidence: Evidence) -> tuple[JudgedClaim, ...]:
    """Judge every claim, in order of receipt."""
    claims = evidence.timeline.of(Claim)
    if not claims:
        return ()
    roll = _roll(evidence)
    settled_s = {track.planned.id: _settled_s(evidence, track, injected) for track, injected in evidence.injected}
    return tuple(_judge(claim, evidence, roll, settled_s) for claim in claims)


def suspected_s(evidence: Evidence, judged: Sequence[JudgedClaim]) -> float | None:
    """Seconds from a fault to the first yellow card for its culprit, or right claim; the slowest fault's."""
    return _named_after_s(evidence, [one for one in judged if one.faults])


def detected_s(evidence: Evidence, judged: Sequence[JudgedClaim]) -> float | None:
    """Seconds from a fault to the first confirmed right claim; the slowest fault's."""
    return _named_after_s(evidence, [one for one in judged if one.word == "right"])


def count(evidence: Evidence, judged: Sequence[JudgedClaim], word: Word) -> int | None:
    """Count claims of one worth; None for stacks that raise no alarms (RecordsMissing while one is undecided)."""
    if not evidence.plan.stack_alarms:
        return None
    undecided = next((one.claim for one in judged if one.word == "undecided"), None)
    if word == "false alarm" and undecided is not None:
        raise RecordsMissing(
            f"the claim {undecided.kind!r} is neither shown nor refuted: a process ended with unknown code,"
            " or was killed only after it was claimed dead"
        )
    return sum(one.word == word for one in judged)


def _named_after_s(evidence: Evidence, judged: Sequence[JudgedClaim]) -> float | None:
    if not evidence.plan.stack_alarms:
        return None
    found: dict[str, float] = {}
    for one in judged:
        for fault in one.faults:
            found.setdefault(fault, one.claim.at_s)
    took_s = [
        found.get(track.planned.id, math.inf) - injected.at_s
        for track, injected in evidence.injected
        if track.expected.claims
    ]
    return max(took_s, default=None)


def _judge(claim: Claim, evidence: Evidence, roll: _Roll, settled_s: Mapping[str, float]) -> JudgedClaim:
    injected = [(track, fault) for track, fault in evidence.injected if fault.at_s <= claim.at_s]
    named = [(track, fault) for track, fault in injected if _names_culprit(claim, fault, roll)]
    if not claim.confirmed:
        return JudgedClaim(claim, "suspicion", tuple(track.planned.id for track, _ in named if track.expected.claims))
    right = tuple(track.planned.id for track, _ in named if claim.kind in track.expected.claims)
    if right:
        return JudgedClaim(claim, "right", right)
    shown = _shown(claim, roll)
    if shown is None:
        return JudgedClaim(claim, "undecided", ())
    if shown:
        return JudgedClaim(claim, "ambient", ())
    open_faults = [
        track for track, _ in injected if track.expected.claims and claim.at_s <= settled_s[track.planned.id]
    ]
    if open_faults and not named:
        if claim.rank is None and claim.pid is None and claim.node is None:
            fits = any(claim.kind in track.expected.claims for track in open_faults)
            return JudgedClaim(claim, "vague" if fits else "false alarm", ())
        return JudgedClaim(claim, "wrong blame", ())
    return JudgedClaim(claim, "false alarm", ())


def _names_culprit(claim: Claim, fault: FaultInjected, roll: _Roll) -> bool:
    """Whether all that a claim names fits the fault, and it names enough to tell the culprit from its neighbours."""
    if claim.node is not None and claim.node not in (*fault.nodes, *(member.node for member in fault.members)):
        return False
    if claim.rank is not None and claim.rank not in fault.ranks:
        return False
    if claim.pid is not None:
        return any(member.pid == claim.pid and claim.node in (None, member.node) for member in fault.members)
    if claim.rank is not None:
        # After a swap the same rank is somebody else: the generation of the claim tells who was meant.
        holder = roll.holder(claim.rank, claim.generation, claim.at_s)
        return holder is None or holder in fault.members
    # Naming a node is precise enough only where the fault was aimed at a node: one rank's death is no node's.
    return claim.node is not None and any(word in NODE_TARGETS for word in fault.target.split())


def _shown(claim: Claim, roll: _Roll) -> bool | None:
    """Whether an observation of the tester bears a claim out; None where it can prove neither."""
    if claim.kind in SHOWN_BY_ALL_EXITS and claim.node is not None:
        there = [member for member, since_s in roll.by_node.get(claim.node, {}).items() if since_s <= claim.at_s]
        return bool(there) and all(_exit_by(member, claim.at_s, roll) is not None for member in there)
    member = roll.named(claim)
    if member is None:
        return False
    if claim.kind in SHOWN_BY_RAISE and roll.raised_s.get(member, math.inf) <= claim.at_s:
        return True
    exited = _exit_by(member, claim.at_s, roll)
    if exited is None:
        return _borne_out_later(claim, member, roll)
    if claim.kind in SHOWN_BY_EXIT_0:
        return None if exited.code is None and exited.signal is None else exited.code == 0
    return claim.kind in SHOWN_BY_EXIT


def _borne_out_later(claim: Claim, member: MemberId, roll: _Roll) -> bool | None:
    """Whether an exit seen soon after a crash was claimed bears it out; None where it can prove neither.

    A dying process' connections close before the kernel has taken its memory down (1.6 s for 8 GB, measured), so a good
    stack may know of a death before the tester's pidfd does. An exit by code, or by a signal that no stack sends, was
    the process' own. SIGKILL may as well be the stack's, which would then have made its own alarm true.
    """
    exited = _exit_by(member, claim.at_s + EXIT_NOTICE_S, roll)
    if exited is None or claim.kind not in SHOWN_BY_EXIT or member in roll.excused:
        return False
    if exited.signal == SIGKILL or (exited.code is None and exited.signal is None):
        return None
    return True


def _exit_by(member: MemberId, at_s: float, roll: _Roll) -> ProcessExited | None:
    exited = roll.exits.get(member)
    return exited if exited is not None and exited.at_s <= at_s else None


def _settled_s(evidence: Evidence, track: Track, injected: FaultInjected) -> float:
    """Return until when a claim can still be about this fault: until the run was normal again, or at least stepped."""
    for stage in (recovered, stepped):
        try:
            at_s = stage(evidence, track, injected)
        except RecordsMissing:
            continue
        if at_s is not None and math.isfinite(at_s):
            return at_s
    return math.inf


def _roll(evidence: Evidence) -> _Roll:
    timeline = evidence.timeline
    holds: dict[int, list[RankHeld]] = {}
    by_node: dict[str, dict[MemberId, float]] = {}
    for held in timeline.of(RankHeld):
        holds.setdefault(held.rank, []).append(held)
    sightings: list[MemberJoined | RankHeld | StepDone] = [*timeline.of(MemberJoined), *timeline.of(RankHeld)]
    sightings.extend(evidence.log.records)
    for seen in sightings:
        members = by_node.setdefault(seen.member.node, {})
        members[seen.member] = min(seen.at_s, members.get(seen.member, seen.at_s))
    by_pid: dict[int, list[MemberId]] = {}
    for members in by_node.values():
        for member in members:
            by_pid.setdefault(member.pid, []).append(member)
    exits = {exited.member: exited for exited in reversed(timeline.of(ProcessExited))}
    return _Roll(
        holds=holds,
        by_node=by_node,
        by_pid=by_pid,
        exits=exits,
        raised_s={raised.member: raised.at_s for raised in reversed(timeline.of(WorkloadRaised))},
        excused=frozenset(_excused(evidence, exits)),
    )


def _excused(evidence: Evidence, exits: Mapping[MemberId, ProcessExited]) -> Iterator[MemberId]:
    """Yield whose end has a reason that no claim about it could have known: hit by us, finished, ended with the run."""
    finished = finished_s(evidence)
    for _, injected in evidence.injected:
        yield from injected.members
    for exited in exits.values():
        if exited.at_s >= min(evidence.over_s, finished.get(exited.member, math.inf)):
            yield exited.member
