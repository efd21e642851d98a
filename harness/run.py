"""The composition root: scenario files -> drills -> verdicts -> reports. Nothing else picks a concrete class.

    load all files → refuse what cannot be done → heal left-overs → for each file: repeats → report → store

Ctrl-C and SIGTERM end the run at the next look, after cleaning up; what exists by then is reported, and the verdict is
ERROR.
"""

from __future__ import annotations

import datetime as dt
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

from chaos.catalog import default_catalog
from chaos.clock import SystemClock
from chaos.ledger import state_dir
from chaos.leftovers import heal_left_overs
from chaos.local_host import LocalHost
from harness.drill.about import about
from harness.drill.execute import Tools
from harness.drill.faults import check_capable
from harness.drill.forecast import forecast
from harness.drill.interrupt import Interrupt
from harness.drill.keeping import Keeper
from harness.drill.perform import Drill, run_drill
from harness.drill.progress import Progress
from harness.drill.request import program_of
from harness.errors import DirtyHostError, HarnessError, StoreError, UsageError
from harness.judge.outcome import Verdict
from harness.report import environment
from harness.report.build import RunFacts, build_repeat, build_report
from harness.report.model import Repeat, Report
from harness.report.text import print_summary
from harness.scenario import Scenario, load
from harness.stacks.base import Stack, node_names
from harness.stacks.reference import ReferenceStack
from harness.stacks.torchrun import TorchrunStack

STACKS: Mapping[str, Stack] = MappingProxyType({"reference": ReferenceStack(), "torchrun": TorchrunStack()})
# From worst to best; a usage error is raised, not returned.
_CODES_WORST_FIRST = (3, 1, 2, 0)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What was asked for beside the files; None means: as the scenario says. `out` is the folder of the report."""

    repeat: int | None = None
    seed: int | None = None
    out: Path | None = None
    on: str | None = None


def run_scenarios(
    paths: Sequence[Path],
    options: RunOptions,
    progress: Progress,
    *,
    stacks: Mapping[str, Stack] = STACKS,
    stream: TextIO | None = None,
) -> int:
    """Run, judge and report; print a summary of each scenario to `stream` (stdout); return the worst exit code.

    Raises UsageError before anything is started, DirtyHostError before anything is started, StoreError after a report
    that could not be written was at least printed.
    """
    scenarios = [_load(path, options) for path in paths]
    for scenario in scenarios:
        _refuse_impossible(scenario, stacks)
    _heal_earlier()
    codes: list[int] = []
    unwritten: StoreError | None = None
    with Interrupt() as interrupt:
        tools = Tools(interrupt, progress)
        for scenario in scenarios:
            keeper = Keeper(_folder_of(scenario, options, len(scenarios)), scenario.scenario, _now())
            report, error = _run_one(scenario, keeper, stacks[scenario.stack.name], tools)
            unwritten = unwritten or error
            folder = keeper.path if error is None else None
            print_summary(report, folder, sys.stdout if stream is None else stream)
            progress.ended(report.verdict, report.headline, folder)
            codes.append(report.exit_code)
            if interrupt.name is not None:
                break
    if unwritten is not None:
        raise unwritten
    return min(codes, key=_CODES_WORST_FIRST.index)


def dry_run(scenario: Scenario, stacks: Mapping[str, Stack] = STACKS) -> str:
    """Say what a run of this scenario would do. Raises UsageError when it cannot be done."""
    return forecast(scenario, stacks[scenario.stack.name], default_catalog())


def _load(path: Path, options: RunOptions) -> Scenario:
    scenario = load(path).override(repeat=options.repeat, seed=options.seed)
    if options.on not in (None, "local"):
        raise UsageError(f"--on: expected local, found {options.on!r}")
    return scenario


def _refuse_impossible(scenario: Scenario, stacks: Mapping[str, Stack]) -> None:
    """Raise CapabilityError for a program that is not there or a fault that cannot be applied here."""
    program_of(scenario, stacks[scenario.stack.name])
    hosts = {node: LocalHost(node) for node in node_names(scenario.workload.nodes)}
    check_capable(scenario.faults, default_catalog(), hosts)


def _heal_earlier() -> None:
    left = [reason for report in heal_left_overs(state_dir(), SystemClock()) for reason in report.failed]
    if left:
        raise DirtyHostError(
            f"an earlier drill has left something on this host: {'; '.join(left)}; nothing was started"
        )


def _folder_of(scenario: Scenario, options: RunOptions, scenarios: int) -> Path | None:
    if options.out is None or scenarios == 1:
        return options.out
    return options.out / scenario.scenario


def _run_one(scenario: Scenario, keeper: Keeper, stack: Stack, tools: Tools) -> tuple[Report, StoreError | None]:
    """Run all repeats of one scenario; return its report, and why it could not be written if it could not."""
    keeper.check()
    facts = _facts(scenario)
    repeats: list[Repeat] = []
    failure: str | None = None
    unwritten: StoreError | None = None
    for number in range(1, scenario.repeat + 1):
        try:
            drill = run_drill(scenario, scenario.seed, stack=stack, tools=tools, number=number, of=scenario.repeat)
        except HarnessError as error:
            failure = str(error)
            break
        repeats.append(_repeat(number, scenario.seed, drill))
        try:
            if drill.judgement.verdict is not Verdict.PASS:
                keeper.keep_evidence(number, drill.logs, drill.dump)
        except StoreError as error:
            unwritten = error
        if drill.interrupted is not None:
            failure = f"interrupted by {drill.interrupted}"
        if drill.interrupted is not None or _pointless_to_repeat(drill):
            break
    report = build_report(facts, repeats, error=failure)
    try:
        keeper.save(report)
    except StoreError as error:
        unwritten = unwritten or error
    if unwritten is not None:
        keeper.discard_empty()
        report = build_report(facts, repeats, error=str(unwritten))
    return report, unwritten


def _pointless_to_repeat(drill: Drill) -> bool:
    """Whether another repeat can only show the same: a dirty host, or a program that fails by itself."""
    return drill.judgement.verdict is Verdict.ERROR or drill.end.reason == "workload-error"


def _repeat(number: int, seed: int, drill: Drill) -> Repeat:
    return build_repeat(
        number=number,
        seed=seed,
        timeline=drill.timeline,
        plan=drill.plan,
        reference=drill.reference,
        judgement=drill.judgement,
    )


def _facts(scenario: Scenario) -> RunFacts:
    command = ["rankdrill", "run", str(scenario.path), "--seed", str(scenario.seed), "--repeat", str(scenario.repeat)]
    return RunFacts(
        scenario=scenario.scenario,
        seed=scenario.seed,
        started_at=_now().isoformat(timespec="seconds"),
        replay=shlex.join(command),
        about=about(scenario),
        environment=environment.collect(),
    )


def _now() -> dt.datetime:
    return dt.datetime.now(tz=dt.UTC)
