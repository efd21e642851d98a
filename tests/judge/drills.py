"""Literal timelines of drills, to be changed in one place by a test. Times are dyadic fractions: sums are exact.

The drill that most tests start from: 4 ranks and a spare, one a node, 40 steps of 1/16 s; step n completes at
2 + n/16. `KILL_S` falls a quarter into step 21: rank 2 dies, the spare takes over, step 21 completes at `KILL_S` + 1/8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from harness.judge.figures import Figures
from harness.judge.measure import measure
from harness.judge.plan import Limit, Plan, PlannedFault, Reference
from harness.judge.verdict import Judgement, judge
from harness.observe.observation import (
    Claim,
    FaultEffective,
    FaultHealed,
    FaultInjected,
    MemberId,
    MemberJoined,
    Observation,
    ProcessExited,
    RankHeld,
    RunEnded,
    RunStarted,
    StateLoaded,
    StepDone,
    TrainingFinished,
    WeightsDigest,
)
from harness.observe.timeline import Timeline

WORLD = 4
STEPS = 40
STEP_S = 1 / 16
FIRST_S = 2.0
KILL_STEP = 20
KILL_S = FIRST_S + KILL_STEP * STEP_S + STEP_S / 4
DIGEST = "d1"
SPARE = 4

Seen = list[Observation]


def member(number: int) -> MemberId:
    """The process that starts as rank `number`; number 4 is the spare, higher ones come later."""
    return MemberId(f"n{number}", 100 + number, 1000 + number)


def done_s(step: int) -> float:
    """When a step of an undisturbed run is complete."""
    return FIRST_S + step * STEP_S


def ids(step: int, rank: int) -> tuple[int, ...]:
    """The two samples that a rank takes in a step."""
    first = ((step - 1) * WORLD + rank) * 2
    return first, first + 1


def step_done(
    step: int,
    rank: int,
    at_s: float,
    *,
    by: MemberId | None = None,
    generation: int = 0,
    world: int = WORLD,
    samples: tuple[int, ...] | None = None,
    step_s: float = STEP_S,
) -> StepDone:
    return StepDone(
        at_s,
        at_s - step_s / 2,
        member(rank) if by is None else by,
        rank=rank,
        world=world,
        generation=generation,
        step=step,
        samples=ids(step, rank) if samples is None else samples,
        loss=None,
    )


def stepped(
    first: int,
    last: int,
    *,
    from_s: float,
    step_s: float = STEP_S,
    generation: int = 0,
    holders: Sequence[MemberId] | None = None,
) -> Seen:
    """Steps `first`..`last` of the whole world; the first completes one step time after `from_s`."""
    who = [member(rank) for rank in range(WORLD)] if holders is None else holders
    return [
        step_done(step, rank, from_s + (step - first + 1) * step_s, by=who[rank], generation=generation, step_s=step_s)
        for step in range(first, last + 1)
        for rank in range(len(who))
    ]


def started(world: int = WORLD) -> Seen:
    """The run starts at 0, all members are there at 1, ranks are held and loaded by 1.5."""
    seen: Seen = [RunStarted(0.0)]
    seen += [MemberJoined(1.0, member(number), "member") for number in range(world)]
    seen.append(MemberJoined(1.0, member(SPARE), "spare"))
    seen += held(1.25, 0, range(world))
    seen += loaded(1.5, 0, 0, world)
    return seen


def held(at_s: float, generation: int, numbers: Iterable[int]) -> Seen:
    """Members `numbers`, in order, hold ranks 0, 1, …"""
    return [RankHeld(at_s, member(number), rank, WORLD, generation) for rank, number in enumerate(numbers)]


def loaded(at_s: float, generation: int, step: int, world: int = WORLD) -> Seen:
    return [StateLoaded(at_s, member(rank), rank, generation, step) for rank in range(world)]


def finished(at_s: float, holders: Sequence[MemberId], step: int = STEPS) -> Seen:
    """All ranks say their weights and that they are done, then their processes end, after the run was declared over."""
    seen: Seen = []
    for rank, who in enumerate(holders):
        seen.append(WeightsDigest(at_s, who, rank, step, DIGEST))
        seen.append(TrainingFinished(at_s, who, rank, step))
        seen.append(ProcessExited(at_s + 0.5, who, 0, None))
    seen.append(RunEnded(at_s + 0.25, "finished"))
    return seen


def injected(at_s: float = KILL_S, rank: int = 2, *, fault: str = "f0", kind: str = "kill") -> FaultInjected:
    who = member(rank)
    return FaultInjected(at_s, fault, kind, f"rank {rank}", (rank,), (who,), (who.node,))


def claim(
    at_s: float,
    rank: int | None = 2,
    *,
    kind: str = "crash",
    confirmed: bool = True,
    generation: int = 0,
    **more: object,
) -> Claim:
    """A claim about a rank's first holder; `pid` and `node` may be given apart."""
    who = member(rank) if rank is not None else None
    pid = more.get("pid", who.pid if who is not None else None)
    node = more.get("node", who.node if who is not None else None)
    assert pid is None or isinstance(pid, int)
    assert node is None or isinstance(node, str)
    return Claim(at_s, at_s, kind, rank, pid, node, generation, confirmed, "")


NEW_WORLD = (member(0), member(1), member(SPARE), member(3))


def control_run() -> Seen:
    """No fault at all."""
    everybody = [member(rank) for rank in range(WORLD)]
    return [*started(), *stepped(1, STEPS, from_s=FIRST_S), *finished(done_s(STEPS), everybody)]


def killed(*, resume: int = KILL_STEP + 1, pause_s: float = 1 / 8, step_s: float = STEP_S) -> Seen:
    """Rank 2 is killed in step 21; the new world's first step is `resume`, complete `pause_s` after the kill."""
    first_s = KILL_S + pause_s
    last_s = first_s + (STEPS - resume) * step_s
    return [
        *started(),
        *stepped(1, KILL_STEP, from_s=FIRST_S),
        injected(),
        ProcessExited(KILL_S + 1 / 128, member(2), None, 9),
        FaultEffective(KILL_S + 1 / 64, "f0", "process gone"),
        claim(KILL_S + 1 / 32),
        *held(KILL_S + 3 / 64, 1, (0, 1, SPARE, 3)),
        *loaded(KILL_S + 1 / 16, 1, resume - 1),
        *stepped(resume, STEPS, from_s=first_s - step_s, step_s=step_s, generation=1, holders=NEW_WORLD),
        *finished(last_s, NEW_WORLD),
    ]


def never_back() -> Seen:
    """Rank 2 is killed and nothing happens any more, until the horizon."""
    return [*[seen for seen in killed() if seen.at_s <= KILL_S + 1 / 64], RunEnded(60.0, "horizon")]


def ridden_out(*, stopped_s: float = 0.5, transient: bool = True) -> tuple[Seen, Plan]:
    """Rank 2 is stopped in step 21 and runs again after `stopped_s`; the world waits, and nothing is replaced."""
    again_s = KILL_S + stopped_s
    last_s = again_s + (STEPS - KILL_STEP) * STEP_S
    seen: Seen = [
        *started(),
        *stepped(1, KILL_STEP, from_s=FIRST_S),
        injected(kind="stop"),
        FaultEffective(KILL_S + 1 / 64, "f0", "state T"),
        FaultHealed(again_s, "f0", True, "state S"),
        *stepped(KILL_STEP + 1, STEPS, from_s=again_s),
        *finished(last_s, [member(rank) for rank in range(WORLD)]),
    ]
    return seen, plan(faults=(stop_fault(transient=transient, duration_s=stopped_s),))


KILL = PlannedFault("f0", "kill", has_undo=False, transient=False, duration_s=None)
NOOP = PlannedFault("f0", "noop", has_undo=True, transient=False, duration_s=None)


def stop_fault(*, transient: bool = False, duration_s: float | None = None) -> PlannedFault:
    return PlannedFault("f0", "stop", has_undo=True, transient=transient, duration_s=duration_s)


PLAN = Plan(
    world=WORLD,
    steps=STEPS,
    faults=(KILL,),
    limits=(),
    weights_equal=False,
    steady_within_s=60.0,
    stack_alarms=True,
)
REFERENCE = Reference(
    weights=DIGEST,
    samples=tuple(tuple(range((step - 1) * 8, step * 8)) for step in range(1, STEPS + 1)),
    losses=(),
)


def plan(
    *,
    faults: tuple[PlannedFault, ...] = (KILL,),
    limits: tuple[Limit, ...] = (),
    weights_equal: bool = False,
    steady_within_s: float = 60.0,
    stack_alarms: bool = True,
) -> Plan:
    return replace(
        PLAN,
        faults=faults,
        limits=limits,
        weights_equal=weights_equal,
        steady_within_s=steady_within_s,
        stack_alarms=stack_alarms,
    )


CONTROL = plan(faults=())


OPERATORS: dict[str, Literal["max", "min", "equal"]] = {"max": "max", "min": "min", "equal": "equal"}


def limit(slo: str, op: str, value: float, unit: Literal["figure", "steps"] = "figure") -> Limit:
    return Limit(slo, OPERATORS[op], value, unit)


def figures(seen: Iterable[Observation], asked: Plan = PLAN, reference: Reference | None = REFERENCE) -> Figures:
    return measure(Timeline(seen), asked, reference)


def judged(
    seen: Iterable[Observation],
    asked: Plan = PLAN,
    reference: Reference | None = REFERENCE,
    dirty: tuple[str, ...] = (),
) -> Judgement:
    return judge(Timeline(seen), asked, reference, dirty)


def without(seen: Iterable[Observation], *which: Callable[[Observation], bool] | type[Observation]) -> Seen:
    """The timeline less all records of some types, or that some question says yes to."""
    kinds = tuple(one for one in which if isinstance(one, type))
    questions = [one for one in which if not isinstance(one, type)]
    return [one for one in seen if not isinstance(one, kinds) and not any(asks(one) for asks in questions)]


def of_rank(rank: int, *, step: int | None = None, generation: int | None = None) -> Callable[[Observation], bool]:
    """Ask whether a record is a step of one rank (of one step, of one generation)."""

    def asks(seen: Observation) -> bool:
        return (
            isinstance(seen, StepDone)
            and seen.rank == rank
            and step in (None, seen.step)
            and generation in (None, seen.generation)
        )

    return asks


def verdict_of(judgement: Judgement, slo: str) -> str:
    """The verdict of one check, or "" if there is no such check."""
    return next((str(check.verdict) for check in judgement.checks if check.slo == slo), "")
