"""Broken stacks as thin wrappers of a sound drill's timeline: what the tester would have seen of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.observe.observation import (
    Claim,
    FaultInjected,
    MemberId,
    Observation,
    ProcessExited,
    RankHeld,
    RunEnded,
    StateLoaded,
    StepDone,
    TrainingFinished,
    WeightsDigest,
)
from harness.observe.timeline import Timeline

LATER_S = 0.0005


def false_alarm(sound: Timeline) -> Timeline:
    """It calls a rank dead that nobody has touched, ten steps into the run."""
    done = next(seen for seen in sound.of(StepDone) if seen.step == 10)
    claim = Claim(
        at_s=done.at_s,
        said_s=done.at_s,
        kind="crash",
        rank=1,
        pid=None,
        node=None,
        generation=1,
        confirmed=True,
        detail="",
    )
    return Timeline([*sound, claim])


def blames_a_neighbour(sound: Timeline) -> Timeline:
    """It notices the death at once, and names the rank beside it."""
    held = {seen.rank: seen.member for seen in _first_holders(sound)}

    def blamed(seen: Observation) -> Observation:
        if not isinstance(seen, Claim) or seen.rank is None:
            return seen
        neighbour = (seen.rank + 1) % len(held)
        return replace(seen, rank=neighbour, pid=held[neighbour].pid, node=held[neighbour].node)

    return Timeline(blamed(seen) for seen in sound)


def never_recovers(sound: Timeline) -> Timeline:
    """After the fault no step is completed; the run ends at its horizon."""
    fault = _injected(sound)
    gone = (StepDone, StateLoaded, TrainingFinished, WeightsDigest, RunEnded)
    kept = [seen for seen in sound if not (isinstance(seen, gone) and seen.at_s > fault.at_s)]
    end_s = max(seen.at_s for seen in sound)
    return Timeline([*kept, RunEnded(end_s, "horizon", "not finished by its horizon")])


def loses_a_step(sound: Timeline) -> Timeline:
    """It restores a snapshot that is one step too old, and executes a completed step again."""
    fault = _injected(sound)
    redone = max(seen.step for seen in sound.of(StepDone) if seen.at_s <= fault.at_s and _full(sound, seen.step, fault))
    before = [seen for seen in sound.of(StepDone) if seen.step == redone]
    after = [seen for seen in sound.of(StepDone) if seen.step == redone + 1]
    again = [
        replace(old, at_s=new.at_s - LATER_S, member=new.member, generation=new.generation, started_s=None)
        for old in before
        for new in after
        if old.rank == new.rank
    ]
    return Timeline([*sound, *again])


def steps_out_of_sight(sound: Timeline) -> Timeline:
    """Its records of one rank after the fault are missing; nothing may be concluded from that."""
    fault = _injected(sound)
    return Timeline(
        seen for seen in sound if not (isinstance(seen, StepDone) and seen.rank == 1 and seen.at_s > fault.at_s)
    )


def restarts_everyone(sound: Timeline) -> Timeline:
    """Every healthy rank's process is replaced along with the dead one's."""
    fault = _injected(sound)
    replaced = {seen.member for seen in _first_holders(sound)} - set(fault.members)

    def moved() -> Iterator[Observation]:
        for seen in sound:
            member = getattr(seen, "member", None)
            if member is not None and member in replaced and seen.at_s > fault.at_s:
                # Every observation that has a member can have another one; the type checker cannot see which do.
                yield replace(seen, member=_successor(member))  # type: ignore[arg-type]
            else:
                yield seen
        for member in sorted(replaced):
            yield ProcessExited(fault.at_s + LATER_S, member, 1, None)

    return Timeline(moved())


def _first_holders(timeline: Timeline) -> list[RankHeld]:
    first = min(seen.generation for seen in timeline.of(RankHeld))
    return [seen for seen in timeline.of(RankHeld) if seen.generation == first]


def _successor(member: MemberId) -> MemberId:
    return member._replace(pid=member.pid + 100_000, started_ticks=member.started_ticks + 1)


def _injected(timeline: Timeline) -> FaultInjected:
    fault = timeline.first(FaultInjected)
    assert fault is not None, "the sound drill injected its fault"
    return fault


def _full(timeline: Timeline, step: int, fault: FaultInjected) -> bool:
    world = {seen.rank for seen in timeline.of(RankHeld)}
    return {seen.rank for seen in timeline.of(StepDone) if seen.step == step and seen.at_s <= fault.at_s} == world
