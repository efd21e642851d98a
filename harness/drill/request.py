"""A scenario as the two things a drill needs: what the stack is asked to run, and what the judge is told."""

from __future__ import annotations

from pathlib import Path

from chaos.fault import KINDS
from harness.errors import CapabilityError
from harness.judge.plan import Limit, Plan, PlannedFault
from harness.scenario import Scenario
from harness.stacks.base import Stack, StackRequest


def plan_of(scenario: Scenario, stack: Stack) -> Plan:
    """Return what the judge is told of a scenario."""
    faults = tuple(
        PlannedFault(
            id=fault.id,
            kind=fault.kind,
            has_undo=KINDS[fault.kind].has_undo,
            transient=fault.transient,
            duration_s=fault.duration_s,
        )
        for fault in scenario.faults
    )
    return Plan(
        world=scenario.workload.ranks,
        steps=scenario.workload.steps,
        faults=faults,
        limits=tuple(Limit(bound.slo, bound.op, bound.value, bound.unit) for bound in scenario.slo.limits),
        weights_equal=scenario.slo.weights_equal,
        steady_within_s=scenario.steady_within_s,
        stack_alarms=stack.alarms,
    )


def program_of(scenario: Scenario, stack: Stack) -> Path:
    """Return the file that the stack runs. Raises CapabilityError when the workload has none for this stack."""
    program = stack.program(scenario.program_path)
    if not program.is_file():
        raise CapabilityError(
            f"{scenario.path}: workload.program: stack {stack.name!r} runs {program}, which is not there: "
            "write it, or choose another stack"
        )
    return program


def arguments_of(scenario: Scenario, seed: int) -> tuple[str, ...]:
    """Return the program's arguments; a flag that is true or false is written as 1 or 0."""
    arguments = ["--seed", str(seed), "--steps", str(scenario.workload.steps)]
    for key, value in scenario.workload.args.items():
        arguments += [f"--{key}", str(int(value) if isinstance(value, bool) else value)]
    return tuple(arguments)


def request_of(scenario: Scenario, stack: Stack, seed: int, work: Path) -> StackRequest:
    """Return what the stack is asked to run. Raises CapabilityError."""
    workload = scenario.workload
    return StackRequest(
        program=program_of(scenario, stack),
        arguments=arguments_of(scenario, seed),
        world=workload.ranks,
        spares=workload.spares,
        nodes=workload.nodes,
        steps=workload.steps,
        limits=scenario.stack.limits,
        port=scenario.stack.port or None,
        work=work,
    )
