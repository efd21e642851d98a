"""Validity: what makes a drill INCONCLUSIVE before any limit is looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.judge.outcome import Verdict
from harness.judge.plan import Plan
from harness.observe.observation import (
    FaultEffective,
    FaultFailed,
    FaultInjected,
    Observation,
    ObserverLost,
    RunEnded,
    RunStarted,
    StackStopped,
    StepDone,
    WorkloadRaised,
)
from tests.judge import drills
from tests.judge.drills import (
    CONTROL,
    FIRST_S,
    KILL,
    KILL_S,
    STEP_S,
    control_run,
    done_s,
    injected,
    judged,
    killed,
    limit,
    member,
    never_back,
    of_rank,
    plan,
    stepped,
    verdict_of,
    without,
)

FAST = plan(limits=(limit("first_step_s", "max", 0.5),))


# ---------------------------------------------------------------------------------- validity


def inconclusive(seen: list[Observation], asked: Plan = FAST) -> str:
    """Judge, require INCONCLUSIVE with no check evaluated, and return the first reason."""
    judgement = judged(seen, asked)
    assert (judgement.verdict, judgement.exit_code) == (Verdict.INCONCLUSIVE, 2)
    assert {check.verdict for check in judgement.checks} == {Verdict.INCONCLUSIVE}
    assert all(check.reason == f"not evaluated: {judgement.reasons[0]}" for check in judgement.checks)
    return judgement.reasons[0]


def test_a_trigger_that_fires_before_steady_state() -> None:
    early = [one for one in killed() if not isinstance(one, FaultInjected)]
    reason = inconclusive([*early, injected(done_s(12) + 1 / 64)])
    assert reason.startswith("no steady state before the fault")
    assert judged([*early, injected(done_s(13))], FAST).steady is not None


def test_steady_state_too_late() -> None:
    reason = inconclusive(killed(), replace(FAST, steady_within_s=2.5))
    assert "after the start" in reason
    assert judged(killed(), replace(FAST, steady_within_s=FIRST_S + 13 * STEP_S)).verdict is Verdict.PASS


def test_a_rank_that_never_recorded_a_step_is_named() -> None:
    judgement = judged(without(killed(), of_rank(3)), FAST)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "rank 3 has no step records from step 1 on" in judgement.reasons[1]


def test_records_that_end_after_the_fault_leave_their_figures_inconclusive_and_judge_the_rest() -> None:
    silent = without(killed(), lambda one: isinstance(one, StepDone) and one.rank == 1 and one.step > 30)
    judgement = judged(silent, plan(limits=(*FAST.limits, limit("detect_s", "max", 1))))
    assert [verdict_of(judgement, slo) for slo in ("first_step_s", "detect_s")] == ["INCONCLUSIVE", "PASS"]
    assert judgement.verdict is Verdict.INCONCLUSIVE
    too_late = judged(silent, plan(limits=(*FAST.limits, limit("detect_s", "max", 0.001))))
    assert too_late.verdict is Verdict.FAIL


def test_a_fault_without_effect() -> None:
    seen = [*without(killed(), FaultEffective), FaultFailed(KILL_S + 1, "f0", "the process is still there")]
    assert inconclusive(seen) == "f0 (kill) had no effect: the process is still there"


def test_a_fault_whose_effect_nothing_shows() -> None:
    assert "took effect" in inconclusive(without(killed(), FaultEffective))


def test_a_fault_that_was_never_injected() -> None:
    assert inconclusive(control_run()) == "f0 (kill) was never injected (the run ended: finished)"


def test_a_fault_that_came_when_all_was_done() -> None:
    seen = [*without(control_run(), RunEnded), injected(done_s(40) + 1 / 64), RunEnded(9.0, "finished")]
    assert "all steps were done" in inconclusive([*seen, FaultEffective(done_s(40) + 1 / 32, "f0", "gone")])


def test_an_observer_that_was_lost() -> None:
    assert "the collector stopped" in inconclusive([*killed(), ObserverLost(4.0, "the collector stopped")])


def test_a_run_whose_end_was_not_recorded() -> None:
    assert "end of the run" in inconclusive(without(killed(), RunEnded))


def test_a_second_fault_that_could_not_be_tried_takes_nothing_from_a_first_that_was_never_got_over() -> None:
    two = replace(FAST, faults=(KILL, replace(KILL, id="f1")))
    assert judged(never_back(), two).verdict is Verdict.FAIL
    assert judged([*never_back(), FaultFailed(50.0, "f1", "no rank 0")], two).verdict is Verdict.FAIL
    assert inconclusive(killed(), two) == "f1 (kill) was never injected (the run ended: finished)"


def workload_bug(at_step: int) -> list[Observation]:
    """The same exception on rank 1, whatever is injected: nothing was yet."""
    seen: list[Observation] = [*drills.started(), *stepped(1, at_step - 1, from_s=FIRST_S)]
    seen.append(WorkloadRaised(done_s(at_step), member(1), 1, at_step, "ValueError: bad batch", "Traceback …"))
    return [*seen, RunEnded(done_s(at_step) + 0.5, "workload-error", "ValueError: bad batch")]


@pytest.mark.parametrize("at_step", [1, 7, 18])
def test_a_workload_that_raises_by_itself_is_named(at_step: int) -> None:
    seen = workload_bug(at_step)
    reason = inconclusive(seen)
    assert reason == f"the workload raised by itself at step {at_step} on rank 1: ValueError: bad batch"
    own_error = judged(seen, FAST).own_error
    assert own_error is not None
    assert own_error.traceback == "Traceback …"


def test_a_workload_that_raises_in_a_control_run() -> None:
    assert inconclusive(workload_bug(18), CONTROL).startswith("the workload raised by itself")


def test_a_workload_that_cannot_even_be_imported() -> None:
    seen: list[Observation] = [RunStarted(0.0), RunEnded(2.0, "workload-error", "SyntaxError")]
    assert inconclusive(seen) == "the workload failed by itself: SyntaxError"
    anonymous = [*seen, WorkloadRaised(1.0, member(0), None, None, "ImportError: x", "")]
    assert inconclusive(anonymous) == "the workload raised by itself: ImportError: x"


def test_survivors_that_raise_after_the_fault_are_its_consequence() -> None:
    seen = [*killed(), WorkloadRaised(KILL_S + 1 / 64, member(1), 1, 21, "RuntimeError: peer closed", "")]
    assert judged(seen, FAST).verdict is Verdict.PASS


def test_a_stack_that_gives_up_before_any_fault() -> None:
    seen: list[Observation] = [*drills.started(), StackStopped(2.0, "port taken"), RunEnded(2.0, "stopped")]
    assert inconclusive(seen) == "the stack stopped before any fault: port taken"
