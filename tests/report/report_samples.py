"""Made-up drills of any size: their timelines, and the reports built from them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.judge.plan import Limit, Plan, PlannedFault, Reference
from harness.judge.verdict import judge
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
from harness.report.build import RunFacts, build_repeat, build_report
from harness.report.model import About, Environment, Repeat, Report

START_S = 1000.0
STEP_S = 0.070


@dataclass(frozen=True, slots=True)
class Shape:
    """How a made-up drill goes. `dead_s` None: no step ever again; `redo` completed steps are executed again."""

    ranks: int = 4
    spares: int = 1
    steps: int = 60
    kill_rank: int | None = 2
    kill_step: int = 20
    detect_s: float = 0.031
    swap_s: float = 0.038
    restore_s: float = 0.062
    dead_s: float | None = 0.110
    redo: int = 0
    second_kill: tuple[int, int] | None = None
    alarms: tuple[int, ...] = ()
    stop_instead: bool = False
    seed: int = 7


def member_of(rank: int) -> MemberId:
    return MemberId(f"n{rank // 2}", 4100 + rank, 100 + rank)


def spare_of(number: int, ranks: int) -> MemberId:
    return MemberId(f"n{(ranks + 1) // 2 + number}", 5200 + number, 900 + number)


class _Drill:
    """One made-up drill in progress."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.random = random.Random(shape.seed)
        self.now_s = START_S
        self.holders = {rank: member_of(rank) for rank in range(shape.ranks)}
        self.spares = [spare_of(number, shape.ranks) for number in range(shape.spares)]
        self.generation = 0
        self.fault = 0
        self.seen: list[Observation] = [RunStarted(START_S)]

    def run(self) -> Timeline:
        shape = self.shape
        self._start()
        kills = {} if shape.kill_rank is None else {shape.kill_step: shape.kill_rank}
        if shape.second_kill is not None:
            kills[shape.second_kill[0]] = shape.second_kill[1]
        step = 1
        while step <= shape.steps:
            self._step(step)
            rank = kills.pop(step, None)
            if rank is not None:
                self._break(rank, step)
                if shape.dead_s is None:
                    self.now_s += 12
                    self.seen.append(RunEnded(self.now_s, "horizon"))
                    return Timeline(self.seen)
                step -= shape.redo
            step += 1
        for rank, member in self.holders.items():
            self.seen.append(WeightsDigest(self.now_s + 0.005, member, rank, shape.steps, "d" * 64))
            self.seen.append(TrainingFinished(self.now_s + 0.01, member, rank, shape.steps))
            self.seen.append(ProcessExited(self.now_s + 0.1, member, 0, None))
        self.seen.append(RunEnded(self.now_s + 0.2, "finished"))
        return Timeline(self.seen)

    def _start(self) -> None:
        for rank, member in self.holders.items():
            self.seen.append(MemberJoined(START_S + 4 + self.random.random() / 5, member, "member"))
            self.seen.append(RankHeld(START_S + 4.4, member, rank, self.shape.ranks, 0))
        for member in self.spares:
            self.seen.append(MemberJoined(START_S + 4.5, member, "spare"))
        self.now_s = START_S + 4.9

    def _step(self, step: int, starts: dict[int, float] | None = None) -> None:
        duration_s = STEP_S * (1 + 0.04 * self.random.random())
        for rank, member in self.holders.items():
            started_s = self.now_s + 0.001 if starts is None else starts[rank]
            at_s = self.now_s + duration_s - 0.004 * self.random.random()
            samples = tuple(step * 10_000 + rank * 10 + number for number in range(4))
            loss = 5.5 * math.exp(-step / 40) + 0.2 + 0.03 * math.sin(step * 1.7)
            self.seen.append(
                StepDone(at_s, started_s, member, rank, self.shape.ranks, self.generation, step, samples, loss)
            )
        self.now_s += duration_s
        if step in self.shape.alarms:
            self._claim(self.now_s, 0, "hang")

    def _claim(self, at_s: float, rank: int, kind: str) -> None:
        member = self.holders[rank]
        self.seen.append(
            Claim(at_s, at_s - 0.002, kind, rank, member.pid, member.node, self.generation, True, "exit seen by pidfd")
        )

    def _break(self, rank: int, step: int) -> None:
        shape, name = self.shape, f"f{self.fault}"
        self.fault += 1
        victim, at_s = self.holders[rank], self.now_s + 0.012
        kind = "stop" if shape.stop_instead else "kill"
        self.seen.append(FaultInjected(at_s, name, kind, f"rank {rank}", (rank,), (victim,), (victim.node,)))
        self.seen.append(FaultEffective(at_s + 0.004, name, f"pid {victim.pid} is gone (state Z) after 4 ms"))
        if not shape.stop_instead:
            self.seen.append(ProcessExited(at_s + 0.004, victim, None, 9))
        self._claim(at_s + shape.detect_s, rank, "hang" if shape.stop_instead else "crash")
        if shape.dead_s is None:
            return
        replacement = self.spares.pop(0)
        self.generation += 1
        self.holders[rank] = replacement
        for other, member in self.holders.items():
            held_s = at_s + shape.swap_s + (0 if other == rank else 0.003)
            self.seen.append(RankHeld(held_s, member, other, shape.ranks, self.generation))
            self.seen.append(StateLoaded(at_s + shape.restore_s, member, other, self.generation, step))
        if shape.stop_instead:
            self.seen.append(FaultHealed(at_s + 2.0, name, True, "state R"))
        fresh = MemberId(replacement.node, replacement.pid + 100, 2000)
        self.seen.append(MemberJoined(at_s + 0.9, fresh, "spare"))
        self.spares.append(fresh)
        self.now_s = at_s + shape.dead_s - STEP_S


def drill(shape: Shape) -> Timeline:
    """Return the observations of a made-up drill."""
    return _Drill(shape).run()


LIMITS = (
    Limit("detect_s", "max", 0.2, "figure"),
    Limit("first_step_s", "max", 1.0, "figure"),
    Limit("recover_s", "max", 45, "steps"),
    Limit("lost_steps", "max", 0, "figure"),
    Limit("bystanders_restarted", "max", 0, "figure"),
    Limit("goodput", "min", 0.9, "figure"),
)


def plan_of(shape: Shape) -> Plan:
    """Return what a made-up drill was asked for."""
    kind = "stop" if shape.stop_instead else "kill"
    wanted = [shape.kill_rank is not None, shape.second_kill is not None]
    faults = tuple(PlannedFault(f"f{number}", kind, shape.stop_instead, False, None) for number in range(sum(wanted)))
    return Plan(shape.ranks, shape.steps, faults, LIMITS, True, 60.0, True)


def reference_of(shape: Shape) -> Reference:
    """Return the unfaulted run of a made-up drill."""
    seen = drill(replace(shape, kill_rank=None, second_kill=None)).of(StepDone)
    samples: dict[int, list[int]] = {}
    losses: dict[int, list[float]] = {}
    for step in seen:
        samples.setdefault(step.step, []).extend(step.samples)
        losses.setdefault(step.step, []).append(step.loss or 0.0)
    return Reference(
        weights="d" * 64,
        samples=tuple(tuple(sorted(samples[step])) for step in sorted(samples)),
        losses=tuple(math.fsum(losses[step]) / shape.ranks for step in sorted(losses)),
    )


def repeat_of(shape: Shape, number: int = 1, more: Sequence[Observation] = ()) -> Repeat:
    """Return a made-up drill, judged. `more` observations are put into its timeline."""
    timeline = Timeline([*drill(shape), *more])
    plan, reference = plan_of(shape), reference_of(shape)
    judgement = judge(timeline, plan, reference)
    return build_repeat(
        number=number, seed=shape.seed, timeline=timeline, plan=plan, reference=reference, judgement=judgement
    )


def facts_of(shape: Shape, **words: Any) -> RunFacts:
    """Return what a made-up report was asked for; `words` replace fields of its `about`."""
    about = About(
        file="scenarios/kill-one-rank.yaml",
        claim="A killed rank is replaced by a spare at once; no step is lost and no healthy rank is restarted.",
        why="One card of a synchronous run dies; everybody waits.",
        certifies=["rank-death"],
        not_=["node-loss", "network"],
        tags=["ci"],
        workload="gpt",
        ranks=shape.ranks,
        spares=shape.spares,
        nodes=3,
        steps=shape.steps,
        stack="reference (limits: ci)",
        launch="local",
        backend=["gloo over TCP, CPU; does not certify NCCL or RDMA"],
    ).model_copy(update=words)
    return RunFacts(
        scenario="kill-one-rank",
        seed=7,
        started_at="2025-06-01T12:00:00Z",
        replay="rankdrill run scenarios/kill-one-rank.yaml --repeat 1 --seed 7",
        about=about,
        environment=ENVIRONMENT,
    )


def report_of(*shapes: Shape, more: Sequence[Observation] = (), error: str | None = None, **words: Any) -> Report:
    """Return the report of made-up drills, one repeat each."""
    repeats = [repeat_of(shape, number, more) for number, shape in enumerate(shapes, start=1)]
    return build_report(facts_of(shapes[0] if shapes else Shape(), **words), repeats, error=error)


ENVIRONMENT = Environment(
    rankdrill="0.1.0",
    python="3.11.7",
    torch="2.13.0+cpu",
    kernel="Linux 6.1",
    cpu="A processor",
    cores=2,
    memory_gib=23.5,
    load_average=[0.5, 0.4, 0.3],
    host="0123456789ab",
)
