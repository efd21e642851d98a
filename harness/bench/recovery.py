"""How fast a killed rank is replaced, and what being ready for it costs. Every time is a ratio or a median over drills.

Each drill kills rank 2 and, when the world is steady again, rank 0: one drill yields both figures. Between drills a
world of the same size makes the same steps bare, so stack and yardstick alternate on the same machine in the same
minutes. The tester watches the drills, so its own cost is part of the ratio.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.bench.bare import WARM_STEPS, BareRanks
from harness.bench.figures import BenchFigure, conclude
from harness.drill.execute import Tools
from harness.drill.interrupt import Interrupt
from harness.drill.perform import Drill, run_drill
from harness.drill.progress import Silent
from harness.errors import HarnessError
from harness.judge.measure import measure
from harness.observe.observation import (
    FaultEffective,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    ObservationCost,
    RunStarted,
    StepDone,
)
from harness.observe.timeline import Timeline
from harness.report.environment import collect as environment
from harness.run import STACKS
from harness.scenario import load

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
REPEATS, QUICK_REPEATS = 10, 3
TORCHRUN_REPEATS, QUICK_TORCHRUN_REPEATS = 3, 1
BARE_STEPS, QUICK_BARE_STEPS = 40, 14
SEED = 7


@dataclass(slots=True)
class _Samples:
    """What the drills have yielded so far, one entry a drill."""

    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, *values: float) -> None:
        self.figures.setdefault(name, []).extend(values)

    def __getitem__(self, name: str) -> list[float]:
        return self.figures.get(name, [])


def bench(quick: bool, json_file: Path | None) -> int:
    """Run the benchmark; 0 only if every limit holds."""
    samples = _Samples()
    bare_steps = QUICK_BARE_STEPS if quick else BARE_STEPS
    with Interrupt() as interrupt:
        tools = Tools(interrupt, Silent())
        with BareRanks(SCENARIOS / "workloads" / "gpt_bare.py", world=4, seed=SEED) as bare:
            before_s = statistics.median(bare.durations_s(bare_steps))
            for _ in range(QUICK_REPEATS if quick else REPEATS):
                drill = _drill("recovery.yaml", tools)
                after_s = statistics.median(bare.durations_s(bare_steps))
                # The machine drifts: a drill is held against the bare blocks on both sides of it.
                _add_drill(samples, drill, (before_s + after_s) / 2)
                before_s = after_s
        for _ in range(QUICK_TORCHRUN_REPEATS if quick else TORCHRUN_REPEATS):
            samples.add("torchrun", _figure(_drill("recovery-torchrun.yaml", tools), "f0", "first_step_s"))
    ours_s = statistics.median(samples["first_step_s"])
    samples.add("torchrun_ratio", *(theirs_s / ours_s for theirs_s in samples["torchrun"]))
    return conclude(
        "recovery", _figures(samples), environment=environment().model_dump(), quick=quick, json_file=json_file
    )


def _figures(samples: _Samples) -> Mapping[str, BenchFigure]:
    zero = {
        name: BenchFigure("", samples[name], limit=0, worst=True)
        for name in ("lost_steps", "bystanders_restarted", "false_alarms", "wrong_blame")
    }
    return {
        "detect_s": BenchFigure("s", samples["detect_s"], limit=0.05),
        "first_step_s": BenchFigure("s", samples["first_step_s"], limit=0.3),
        "first_step_worst_s": BenchFigure("s", samples["first_step_s"], limit=0.6, worst=True),
        "first_step_rank_0_s": BenchFigure("s", samples["first_step_rank_0_s"], limit=0.3),
        "first_step_in_steps": BenchFigure("steps", samples["first_step_in_steps"]),
        **zero,
        "step_time_ratio": BenchFigure("× bare", samples["step_time_ratio"], limit=1.05),
        "observation_share": BenchFigure("of step", samples["observation_share"], limit=0.005),
        "start_s": BenchFigure("s", samples["start_s"], limit=12),
        "step_s": BenchFigure("s", samples["step_s"]),
        "torchrun_first_step_s": BenchFigure("s", samples["torchrun"]),
        "torchrun_ratio": BenchFigure("× ours", samples["torchrun_ratio"]),
    }


def _drill(name: str, tools: Tools) -> Drill:
    scenario = load(SCENARIOS / "bench" / name)
    drill = run_drill(scenario, SEED, stack=STACKS[scenario.stack.name], tools=tools)
    if drill.interrupted is not None:
        raise HarnessError(f"the benchmark was ended by {drill.interrupted}")
    return drill


def _add_drill(samples: _Samples, drill: Drill, bare_s: float) -> None:
    figures = drill.judgement.figures
    for name in ("lost_steps", "bystanders_restarted", "false_alarms", "wrong_blame"):
        samples.add(name, _figure(drill, None, name))
    samples.add("detect_s", *(_figure(drill, fault, "detect_s") for fault in ("f0", "f1")))
    samples.add("first_step_s", _figure(drill, "f0", "first_step_s"))
    samples.add("first_step_rank_0_s", _figure(drill, "f1", "first_step_s"))
    if figures.first_step_s is None:
        raise HarnessError(f"a drill yielded no first_step_s: {'; '.join(drill.judgement.reasons)}")
    step_s = _steady_step_s(drill.timeline)
    samples.add("step_s", step_s)
    samples.add("first_step_in_steps", figures.first_step_s / step_s)
    samples.add("step_time_ratio", step_s / bare_s)
    samples.add("start_s", _start_s(drill.timeline))
    for cost in drill.timeline.of(ObservationCost):
        samples.add("observation_share", (cost.probe_s + cost.stethoscope_s) / cost.training_s)


def _figure(drill: Drill, fault: str | None, name: str) -> float:
    """Return a figure of a drill, for one of its faults alone or (None) for all. HarnessError where it is not known."""
    timeline, plan = drill.timeline, drill.plan
    if fault is not None:
        timeline = _with_fault_only(timeline, fault)
        plan = replace(plan, faults=tuple(planned for planned in plan.faults if planned.id == fault))
    figures = measure(timeline, plan, drill.reference)
    value = figures.value(name)
    if value is None:
        raise HarnessError(
            f"a drill yielded no {name}: {figures.unknown.get(name, '; '.join(drill.judgement.reasons))}"
        )
    return float(value)


def _with_fault_only(timeline: Timeline, fault: str) -> Timeline:
    kinds = (FaultInjected, FaultEffective, FaultFailed, FaultHealed)
    return Timeline(seen for seen in timeline if not isinstance(seen, kinds) or seen.fault == fault)


def _steady_step_s(timeline: Timeline) -> float:
    """Median time of an undisturbed step on rank 0, as the bare ranks measure it; each generation's first are not."""
    spans_s: list[float] = []
    ends = [done for done in timeline.of(StepDone) if done.rank == 0]
    for before, after in itertools.pairwise(ends):
        first = min(done.step for done in ends if done.generation == after.generation)
        if before.generation == after.generation and before.step >= first + WARM_STEPS:
            spans_s.append(after.at_s - before.at_s)
    return statistics.median(spans_s)


def _start_s(timeline: Timeline) -> float:
    started = timeline.first(RunStarted)
    assert started is not None
    return max(done.at_s for done in timeline.of(StepDone) if done.step == 1) - started.at_s
