"""One drill: the reference run where one is needed, the run with faults, and the judgement over what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import NamedTuple

from harness.drill import reference as references
from harness.drill.ends import End
from harness.drill.execute import Order, Record, Tools, execute
from harness.drill.request import plan_of, program_of, request_of
from harness.judge.plan import Plan, Reference
from harness.judge.verdict import Judgement, Verdict, judge
from harness.observe.timeline import Timeline
from harness.scenario import Scenario
from harness.stacks.base import Stack

# Figures that mean nothing without an unfaulted run beside them.
_NEED_REFERENCE = ("weights_equal", "samples_skipped", "samples_repeated")


class Drill(NamedTuple):
    """What one drill yielded.

    `end` says how the run was over, `interrupted` names the signal that ended it early; `dump` and `logs` are for
    readers. The timeline may be judged again, changed or not: `judge(timeline, plan, reference)`.
    """

    timeline: Timeline
    judgement: Judgement
    plan: Plan
    reference: Reference | None
    end: End
    logs: Mapping[str, bytes]
    dump: str
    interrupted: str | None


def run_drill(
    scenario: Scenario,
    seed: int,
    *,
    stack: Stack,
    tools: Tools,
    number: int = 1,
    of: int = 1,
    reference: Reference | None = None,
) -> Drill:
    """Run and judge repeat `number` of `of`. Raises UsageError before anything starts, HarnessError after cleaning up.

    Every repeat trains with the same seed, so that one reference serves all; which of several possible targets is hit
    is drawn anew. A `reference` that the caller has spares the unfaulted run.
    """
    plan = plan_of(scenario, stack)
    program_of(scenario, stack)
    key = references.key_of(scenario, stack, seed)
    reference = reference or references.read(key)
    if reference is None and _needs_reference(plan):
        record = execute(_order(scenario, seed, stack, f"reference run of {scenario.scenario}", None), tools)
        if record.end.reason != "finished" or record.interrupted or record.dirty:
            # Without a sound unfaulted run there is nothing to compare with, and the faulted one would say nothing.
            return _judged(record, plan, None)
        reference = references.reference_of(record.timeline, plan.world, plan.steps)
        if reference is not None:
            references.write(key, reference)
    repeat = f" {number}/{of}" if of > 1 else ""
    record = execute(_order(scenario, seed, stack, f"{scenario.scenario}{repeat}", number), tools)
    return _judged(record, plan, reference)


def _needs_reference(plan: Plan) -> bool:
    return plan.weights_equal or any(limit.slo in _NEED_REFERENCE for limit in plan.limits)


def _order(scenario: Scenario, seed: int, stack: Stack, what: str, number: int | None) -> Order:
    """Return the run to make; `number` None is the one without faults."""
    return Order(
        what=what,
        stack=stack,
        request_in=lambda workspace: request_of(scenario, stack, seed, workspace.root),
        faults=() if number is None else scenario.faults,
        seed=seed,
        random=Random(f"{seed} {number}"),
        horizon_s=scenario.horizon_s,
        first_step_within_s=scenario.steady_within_s,
    )


def _judged(record: Record, plan: Plan, reference: Reference | None) -> Drill:
    judgement = judge(record.timeline, plan, reference, record.dirty)
    return Drill(
        timeline=record.timeline,
        judgement=_explained(judgement, record.end),
        plan=plan,
        reference=reference,
        end=record.end,
        logs=record.logs,
        dump=record.dump,
        interrupted=record.interrupted,
    )


def _explained(judgement: Judgement, end: End) -> Judgement:
    """Add to the judge's reasons what a reader needs: the program's traceback, the stack's last words."""
    own = judgement.own_error
    if own is not None:
        return replace(judgement, reasons=(*judgement.reasons, own.traceback.rstrip()))
    said = any(end.detail in reason for reason in judgement.reasons)
    if judgement.verdict is Verdict.PASS or end.reason in ("finished", "interrupted") or said:
        return judgement
    return replace(judgement, reasons=(f"the run ended early ({end.reason}): {end.detail}", *judgement.reasons))
