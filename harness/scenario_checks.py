"""Rules of a scenario that need more than one field: what is refused, and what is only warned of.

Refused is what cannot be meant: a selector that matches nothing, a trigger that never fires, a limit that nothing can
measure. Warned of is what is likely to make the verdict INCONCLUSIVE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.errors import InputError
from chaos.target import static_ranks
from chaos.trigger import FAULT_EVENT
from harness.fault_text import as_problem
from harness.problems import Problem
from harness.slo import percentile_problems
from harness.strict_yaml import field_name
from harness.words import nearest, one_of

if TYPE_CHECKING:
    from harness.scenario import Scenario

# Steady state is 10 consecutive steps after step 3, and recovery is 5 consecutive steps.
STEADY_AFTER_STEP = 3
STEADY_STEPS = 10
RECOVERED_STEPS = 5

# What harness/drill/view.py makes of observations; a trigger on anything else would wait for ever.
EVENTS = ("restoring", "restored", "joined", "finished")
CLAIM_EVENT = "claim:"

WORKLOADS = "workloads"
_ALARM_FIGURES = ("suspect_s", "detect_s")
_STACKS_WITHOUT_ALARMS = ("torchrun",)
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def find_program(program: str | None, folders: Sequence[Path]) -> Path | Problem:
    """Return the training program's file: a name in `workloads/` of one of the folders, or a path from the first."""
    place = ("workload", "program")
    if program is None:
        return Problem(place, "is missing; expected the name of a workload, or the path of a .py file")
    named = _NAME.fullmatch(program) is not None
    by_name = [folder / WORKLOADS / f"{program}.py" for folder in folders]
    candidates = by_name if named else [folders[0] / program]
    for candidate in candidates:
        try:
            if candidate.is_file():
                return candidate.resolve()
        except (OSError, ValueError):
            # Names that no file system can hold (too long, a NUL byte) name no file.
            continue
    names = sorted({path.stem for folder in folders for path in (folder / WORKLOADS).glob("*.py")})
    if named:
        expected = f"no such workload; expected {one_of(names) if names else 'the path of a .py file'}"
    else:
        expected = f"no such file; expected the path of a training program, relative to {folders[0]}"
    return Problem(place, expected, nearest(Path(program).stem, names) if names else None)


def refusals(scenario: Scenario) -> Iterator[Problem]:
    """Yield everything for which the scenario is refused."""
    yield from _workload(scenario)
    yield from _targets(scenario)
    yield from _triggers(scenario)
    yield from _limits(scenario)
    yield from percentile_problems(scenario.slo, scenario.repeat, ("slo",))


def warnings(scenario: Scenario) -> Iterator[Problem]:
    """Yield what is likely to make the verdict INCONCLUSIVE or to mislead."""
    workload, steady = scenario.workload, STEADY_AFTER_STEP + STEADY_STEPS
    for index, fault in enumerate(scenario.faults):
        step = fault.trigger.step
        place = ("faults", index, "when", "step")
        if step is None:
            continue
        if step < steady:
            message = (
                f"step {step} comes before steady state, which takes {STEADY_STEPS} steps after step "
                f"{STEADY_AFTER_STEP}; the verdict will be INCONCLUSIVE; expected step {steady} or later"
            )
            yield Problem(place, message)
        left = workload.steps - step
        if 0 <= left < RECOVERED_STEPS:
            message = f"step {step} leaves {left} steps to the end; recovery is seen after {RECOVERED_STEPS}"
            yield Problem(place, message)
    if scenario.stack.name in _STACKS_WITHOUT_ALARMS and workload.spares:
        yield Problem(("workload", "spares"), f"stack '{scenario.stack.name}' keeps no spares; they are not started")


def _workload(scenario: Scenario) -> Iterator[Problem]:
    workload = scenario.workload
    if workload.command is not None:
        message = f"stack '{scenario.stack.name}' starts a Python program; expected 'program' instead"
        yield Problem(("workload", "command"), message, "program")
    elif workload.program is None:
        yield Problem(("workload", "program"), "is missing; expected the name of a workload, or the path of a .py file")
    members = workload.ranks + workload.spares
    if workload.nodes > members:
        yield Problem(("workload", "nodes"), f"expected at most {members}, one member a node, found {workload.nodes}")


def _targets(scenario: Scenario) -> Iterator[Problem]:
    workload = scenario.workload
    plain = scenario.stack.name in _STACKS_WITHOUT_ALARMS
    spares = 0 if plain else workload.spares
    for index, fault in enumerate(scenario.faults):
        place = ("faults", index, fault.kind)
        if plain and fault.target.what in ("controller", "agent"):
            message = f"stack '{scenario.stack.name}' has no {fault.target.what}; expected a rank or a node"
            yield Problem((*place, fault.target.what), message)
            continue
        try:
            static_ranks(fault.target, workload.ranks, workload.nodes, spares, field=field_name(place))
        except InputError as error:
            yield as_problem(error)


def _triggers(scenario: Scenario) -> Iterator[Problem]:
    steps = scenario.workload.steps
    for index, fault in enumerate(scenario.faults):
        step = fault.trigger.step
        if step is not None and step > steps:
            message = f"never fires: the workload ends at step {steps}; expected a step from 1 to {steps}, found {step}"
            yield Problem(("faults", index, "when", "step"), message)
        if fault.trigger.phase is not None:
            message = "never fires: no stack tells the tester its phases yet; expected 'step', 'after_s' or 'event'"
            yield Problem(("faults", index, "when", "phase"), message)
        event = fault.trigger.event
        if event is not None and event not in EVENTS and not event.startswith((FAULT_EVENT, CLAIM_EVENT)):
            valid = (*EVENTS, f"{CLAIM_EVENT}KIND", f"{FAULT_EVENT}{fault.id}")
            message = f"never fires: no such event; expected {one_of(valid)}"
            yield Problem(("faults", index, "when", "event"), message, nearest(event, EVENTS))


def _limits(scenario: Scenario) -> Iterator[Problem]:
    stack = scenario.stack.name
    if stack not in _STACKS_WITHOUT_ALARMS:
        return
    for bound in scenario.slo.limits:
        if bound.slo in _ALARM_FIGURES:
            yield Problem(
                ("slo", bound.slo), f"stack '{stack}' raises no alarms; expected 'reaction_s' instead", "reaction_s"
            )
