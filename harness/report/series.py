"""Timeline -> what its drawing needs: one track a rank, who held it, full-world steps, losses. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.judge.steps import StepLog
from harness.observe.observation import (
    MemberId,
    MemberJoined,
    Observation,
    ProcessExited,
    RankHeld,
    RunEnded,
    RunStarted,
    StepDone,
    TrainingFinished,
)
from harness.observe.timeline import Timeline
from harness.report.model import Hold, Losses, Member, Track, WorldStep


def rounded(value_s: float) -> float:
    """Return seconds to the microsecond: finer digits are noise and double the size of a report."""
    return round(value_s, 6)


def origin_s(timeline: Timeline) -> float:
    """Return the tester's time of a drill's start: zero of every time in its report."""
    started = timeline.first(RunStarted)
    if started is not None:
        return started.at_s
    return next((seen.at_s for seen in timeline), 0.0)


def end_s(timeline: Timeline) -> float:
    """Return the tester's time of the last observation."""
    return max((seen.at_s for seen in timeline), default=0.0)


def how_it_ended(timeline: Timeline) -> str:
    """Return the end of the run in words."""
    ended = timeline.first(RunEnded)
    if ended is None:
        return "not seen"
    return f"{ended.reason}: {ended.detail}" if ended.detail else ended.reason


def exit_words(code: int | None, signal: int | None) -> str:
    """Return how a process ended, in words."""
    if signal is not None:
        return f"signal {signal}"
    return "unknown" if code is None else f"exit code {code}"


class Roll:
    """Numbers the members of a drill in order of their first appearance."""

    def __init__(self, timeline: Timeline) -> None:
        self._index: dict[MemberId, int] = {}
        for seen in timeline:
            member = _member_of(seen)
            if member is not None:
                self._index.setdefault(member, len(self._index))

    def index(self, member: MemberId) -> int:
        """Return the number of a member that appears in the timeline."""
        return self._index[member]

    def name(self, member: MemberId) -> str:
        """Return how a report calls a member."""
        return f"{member.node}/{member.pid}"

    def members(self, timeline: Timeline) -> list[Member]:
        """Return the members as the report lists them."""
        zero_s = origin_s(timeline)
        joined = {seen.member: seen for seen in reversed(timeline.of(MemberJoined))}
        exited = {seen.member: seen for seen in reversed(timeline.of(ProcessExited))}
        finished = frozenset(seen.member for seen in timeline.of(TrainingFinished))
        return [
            _member(member, joined.get(member), exited.get(member), zero_s, finished=member in finished)
            for member in self._index
        ]


def _member(
    member: MemberId, joined: MemberJoined | None, exited: ProcessExited | None, zero_s: float, *, finished: bool
) -> Member:
    return Member(
        name=f"{member.node}/{member.pid}",
        node=member.node,
        pid=member.pid,
        role="member" if joined is None else joined.role,
        joined_s=None if joined is None else rounded(joined.at_s - zero_s),
        exited_s=None if exited is None else rounded(exited.at_s - zero_s),
        exit="" if exited is None else exit_words(exited.code, exited.signal),
        clean=finished or (exited is not None and exited.code == 0),
    )


def _member_of(seen: Observation) -> MemberId | None:
    # Exits count only for processes that trained or stood by: a node's helper processes are nobody's row.
    return seen.member if isinstance(seen, MemberJoined | RankHeld | StepDone) else None


@dataclass(slots=True)
class _Columns:
    """A track while it grows."""

    step: list[int] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    end_s: list[float] = field(default_factory=list)
    generation: list[int] = field(default_factory=list)
    member: list[int] = field(default_factory=list)
    redone: list[bool] = field(default_factory=list)


def tracks(timeline: Timeline, roll: Roll) -> list[Track]:
    """Return the steps of every rank that completed one, by rank."""
    zero_s = origin_s(timeline)
    columns: defaultdict[int, _Columns] = defaultdict(_Columns)
    done: defaultdict[int, set[int]] = defaultdict(set)
    for seen in timeline.of(StepDone):
        track = columns[seen.rank]
        ended_s = rounded(seen.at_s - zero_s)
        if seen.started_s is not None:
            began_s = rounded(seen.started_s - zero_s)
        else:
            began_s = track.end_s[-1] if track.end_s else ended_s
        track.step.append(seen.step)
        track.start_s.append(min(began_s, ended_s))
        track.end_s.append(ended_s)
        track.generation.append(seen.generation)
        track.member.append(roll.index(seen.member))
        track.redone.append(seen.step in done[seen.rank])
        done[seen.rank].add(seen.step)
    return [
        Track(
            rank=rank,
            step=track.step,
            start_s=list(track.start_s),
            end_s=list(track.end_s),
            generation=track.generation,
            member=track.member,
            redone=track.redone,
        )
        for rank, track in sorted(columns.items())
    ]


@dataclass(slots=True)
class _Holding:
    member: MemberId
    from_s: float
    generation: int


def holds(timeline: Timeline, roll: Roll) -> list[Hold]:
    """Return who held each rank and for how long. Where a stack does not say so, its steps do."""
    zero_s, last_s = origin_s(timeline), end_s(timeline)
    exits = {seen.member: seen.at_s for seen in reversed(timeline.of(ProcessExited))}
    open_: dict[int, _Holding] = {}
    closed: list[tuple[int, _Holding, float]] = []
    for seen in timeline:
        if not isinstance(seen, RankHeld | StepDone):
            continue
        holding = open_.get(seen.rank)
        if holding is not None and holding.member == seen.member:
            continue
        if holding is not None:
            closed.append((seen.rank, holding, seen.at_s))
        from_s = seen.at_s
        if isinstance(seen, StepDone) and seen.started_s is not None:
            from_s = seen.started_s
        open_[seen.rank] = _Holding(seen.member, from_s, seen.generation)
    closed.extend((rank, holding, last_s) for rank, holding in open_.items())
    result = [
        Hold(
            rank=rank,
            member=roll.index(holding.member),
            from_s=rounded(holding.from_s - zero_s),
            to_s=rounded(min(to_s, exits.get(holding.member, to_s)) - zero_s),
            generation=holding.generation,
        )
        for rank, holding, to_s in closed
    ]
    return sorted(result, key=lambda hold: (hold.rank, hold.from_s))


def changed_hands(holds: Sequence[Hold]) -> set[int]:
    """Return the ranks that more than one member held."""
    members: defaultdict[int, set[int]] = defaultdict(set)
    for hold in holds:
        members[hold.rank].add(hold.member)
    return {rank for rank, held_by in members.items() if len(held_by) > 1}


def world_steps(log: StepLog, zero_s: float) -> list[WorldStep]:
    """Return the steps that the whole world completed, in order of completion. `zero_s`: start of the drill."""
    return [
        WorldStep(
            step=done.step,
            generation=done.generation,
            at_s=rounded(done.at_s - zero_s),
            duration_s=None if done.gap_s is None else rounded(done.gap_s),
        )
        for done in log.completions
    ]


# A step number of a million is a program's mistake: a list that long would be no report.
MAX_STEPS_DRAWN = 1_000_000


def loss_curves(timeline: Timeline, reference: Sequence[float | None]) -> Losses:
    """Return the mean loss over the whole world by step (the last execution counts) beside that of the reference."""
    by_step: defaultdict[int, dict[int, float]] = defaultdict(dict)
    world = 0
    for seen in timeline.of(StepDone):
        world = max(world, seen.world)
        if seen.loss is not None and 1 <= seen.step <= MAX_STEPS_DRAWN:
            by_step[seen.step][seen.rank] = seen.loss
    run = [_whole_mean(by_step.get(step, {}), world) for step in range(1, max(by_step, default=0) + 1)]
    differences = [
        abs(ours - theirs)
        for ours, theirs in zip(run, reference, strict=False)
        if ours is not None and theirs is not None
    ]
    difference = max(differences, default=None)
    return Losses(run=list(run), reference=list(reference), max_difference=difference)


def _whole_mean(losses: dict[int, float], world: int) -> float | None:
    # Each rank sees its own samples: a mean over fewer ranks is no point of the same curve.
    # A plain sum depends on the order in which the ranks' records came; fsum does not.
    return math.fsum(losses.values()) / world if world and len(losses) == world else None
