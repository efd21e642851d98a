"""From figures to a verdict: limits, rules that always hold, validity, errors, and their order."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.judge.outcome import Verdict, merge
from harness.judge.plan import Plan, PlannedFault
from harness.observe.observation import (
    FaultEffective,
    FaultFailed,
    FaultHealed,
    Observation,
    ProcessExited,
    RunEnded,
    StackStopped,
    StepDone,
    TrainingFinished,
    WorkloadRaised,
)
from tests.judge import drills
from tests.judge.drills import (
    CONTROL,
    KILL,
    KILL_S,
    NOOP,
    STEP_S,
    STEPS,
    claim,
    control_run,
    done_s,
    injected,
    judged,
    killed,
    limit,
    member,
    never_back,
    plan,
    ridden_out,
    stepped,
    stop_fault,
    verdict_of,
    without,
)

FAST = plan(limits=(limit("first_step_s", "max", 0.5),))


# ---------------------------------------------------------------------------------- the four words


def test_exit_codes() -> None:
    assert {str(word): word.exit_code for word in Verdict} == {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 3}


def test_the_worst_verdict_counts() -> None:
    every = [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL, Verdict.ERROR]
    for last in range(1, 5):
        assert merge(every[:last]) is every[last - 1]
    assert merge([]) is Verdict.INCONCLUSIVE


def test_a_drill_that_keeps_its_limits_passes() -> None:
    asked = plan(limits=(limit("first_step_s", "max", 0.5), limit("lost_steps", "max", 0)), weights_equal=True)
    judgement = judged(killed(), asked)
    assert (judgement.verdict, judgement.exit_code, judgement.reasons) == (Verdict.PASS, 0, ())
    names = ["first_step_s", "lost_steps", "false_alarms", "wrong_blame", "weights"]
    assert [check.slo for check in judgement.checks] == names


# ---------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("op", "value", "verdict"),
    [
        ("max", 0.125, "PASS"),
        ("max", 0.1249, "FAIL"),
        ("min", 0.125, "PASS"),
        ("min", 0.1251, "FAIL"),
        ("equal", 0.125, "PASS"),
        ("equal", 0.12, "FAIL"),
    ],
)
def test_a_limit_holds_up_to_itself(op: str, value: float, verdict: str) -> None:
    judgement = judged(killed(), plan(limits=(limit("first_step_s", op, value),)))
    assert verdict_of(judgement, "first_step_s") == verdict
    assert judgement.verdict == verdict


def test_a_limit_in_steps_counts_median_steps_before_the_fault() -> None:
    # 1/8 s are exactly two median steps.
    judgement = judged(killed(), plan(limits=(limit("first_step_s", "max", 2, "steps"),)))
    check = judgement.checks[0]
    assert (check.verdict, check.limit, check.limit_value) == (Verdict.PASS, "max 2 steps", 2 * STEP_S)
    judgement = judged(killed(), plan(limits=(limit("first_step_s", "max", 1.9, "steps"),)))
    assert judgement.verdict is Verdict.FAIL


def test_the_limit_reads_the_same_in_every_repeat() -> None:
    texts = [check.limit for check in judged(killed(), plan(limits=(limit("goodput", "min", 0.9),))).checks]
    assert texts == ["min 0.9", "max 0 claims", "max 0 claims"]


def test_what_was_never_seen_misses_every_maximum() -> None:
    judgement = judged(never_back(), plan(limits=(limit("first_step_s", "max", 1000), limit("lost_steps", "max", 99))))
    assert judgement.verdict is Verdict.FAIL
    assert judgement.checks[0].value == math.inf
    assert judgement.checks[0].reason == "not seen by the horizon"


def test_a_stack_that_gave_up_is_quoted() -> None:
    seen = [*without(never_back(), RunEnded), StackStopped(4.0, "no spare for rank 2"), RunEnded(4.0, "stopped")]
    judgement = judged(seen, FAST)
    assert judgement.verdict is Verdict.FAIL
    assert "no spare for rank 2" in judgement.reasons[0]


def test_a_stack_may_give_up_where_that_is_allowed() -> None:
    seen = [
        *without(never_back(), RunEnded),
        claim(KILL_S + 1 / 32),
        StackStopped(4.0, "policy"),
        RunEnded(4.0, "stopped"),
    ]
    assert judged(seen, plan(limits=(limit("detect_s", "max", 0.1),))).verdict is Verdict.PASS


def test_recover_prints_its_step_limit() -> None:
    reason = judged(killed(), plan(limits=(limit("recover_s", "max", 1),))).checks[0].reason
    assert "step limit 0.0688 s = max(1.1 × 0.0625, 0.0625 + 4.5 × 0.0000), steps 4 to 20" in reason


def test_a_limit_on_a_figure_that_does_not_apply_is_not_kept() -> None:
    judgement = judged(control_run(), replace(CONTROL, limits=(limit("detect_s", "max", 1),)))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "does not apply" in judgement.checks[0].reason


def test_a_limit_on_a_figure_that_is_not_known_says_why() -> None:
    asked = plan(limits=(limit("samples_skipped", "max", 0),))
    judgement = judged(killed(), asked, None)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.checks[0].reason == "there is no reference run to compare with"


def test_a_truth_can_be_bound_too() -> None:
    assert judged(killed(), plan(limits=(limit("weights_equal", "equal", 1),))).verdict is Verdict.PASS


@pytest.mark.parametrize(("digest", "verdict"), [("d1", Verdict.PASS), ("d2", Verdict.FAIL)])
def test_weights(digest: str, verdict: Verdict) -> None:
    judgement = judged(killed(), plan(weights_equal=True), replace(drills.REFERENCE, weights=digest))
    assert (judgement.verdict, verdict_of(judgement, "weights")) == (verdict, verdict)


def test_weights_without_a_reference_are_inconclusive() -> None:
    assert judged(killed(), plan(weights_equal=True), None).verdict is Verdict.INCONCLUSIVE


# ---------------------------------------------------------------------------------- what always holds


def test_false_alarms_and_wrong_blame_must_be_zero_unless_the_scenario_says_otherwise() -> None:
    blamed = [*killed(), claim(KILL_S + 1 / 16, 1)]
    assert judged(blamed, FAST).verdict is Verdict.FAIL
    allowed = plan(limits=(*FAST.limits, limit("wrong_blame", "max", 1)))
    assert judged(blamed, allowed).verdict is Verdict.PASS
    assert verdict_of(judged([*killed(), claim(3.0)], FAST), "false_alarms") == "FAIL"


def test_a_control_run_is_judged_by_its_false_alarms() -> None:
    assert judged(control_run(), CONTROL).verdict is Verdict.PASS
    assert judged([*control_run(), claim(3.0)], CONTROL).verdict is Verdict.FAIL


def test_a_drill_without_any_check_shows_nothing() -> None:
    judgement = judged(killed(), plan(stack_alarms=False))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.reasons == ("nothing was checked: the drill has no limits",)


# ---------------------------------------------------------------------------------- steady state again


def test_a_verified_heal_must_be_followed_by_steady_state() -> None:
    seen, asked = ridden_out()
    judgement = judged(seen, asked)
    assert judgement.verdict is Verdict.PASS
    assert verdict_of(judgement, "steady_after_heal") == "PASS"


def test_no_steady_state_after_a_verified_heal_fails() -> None:
    seen, asked = ridden_out()
    slow = without(seen, lambda one: isinstance(one, StepDone) and one.step > 20, lambda one: one.at_s > KILL_S + 0.5)
    slow += stepped(21, STEPS, from_s=KILL_S + 0.5, step_s=2 * STEP_S)
    slow += drills.finished(KILL_S + 0.5 + 40 * STEP_S, [member(rank) for rank in range(4)])
    judgement = judged(slow, asked)
    assert judgement.verdict is Verdict.FAIL
    assert verdict_of(judgement, "steady_after_heal") == "FAIL"
    assert "heal" in judgement.reasons[0]


def test_four_steps_after_the_heal_are_too_few_to_fail_it() -> None:
    seen, asked = ridden_out()
    healed_s = KILL_S + 0.5 + 15 * STEP_S
    late = [*without(seen, FaultHealed), FaultHealed(healed_s, "f0", True, "state S")]
    judgement = judged(late, asked)
    assert verdict_of(judgement, "steady_after_heal") == "PASS", "five steps are left"
    later = [*without(seen, FaultHealed), FaultHealed(healed_s + STEP_S, "f0", True, "state S")]
    assert judged(later, asked).verdict is Verdict.INCONCLUSIVE


def test_a_heal_after_the_run_is_over_is_tidying_up() -> None:
    seen = [*killed(), FaultHealed(60.0, "f0", True, "gone")]
    assert verdict_of(judged(seen, FAST), "steady_after_heal") == ""
    stopped = [
        *without(never_back(), RunEnded),
        StackStopped(4.0, "x"),
        FaultHealed(4.1, "f0", True, ""),
        RunEnded(5, "stopped"),
    ]
    assert verdict_of(judged(stopped, FAST), "steady_after_heal") == ""


def test_missing_records_after_the_heal_fail_nothing() -> None:
    seen, asked = ridden_out()
    silent = without(seen, lambda one: isinstance(one, StepDone) and one.rank == 1 and one.step > 22)
    assert verdict_of(judged(silent, asked), "steady_after_heal") == "INCONCLUSIVE"


# ---------------------------------------------------------------------------------- training complete


def test_a_run_that_calls_itself_complete_too_early_is_no_success() -> None:
    """P2: a rank leaves with code 0 at 60 % of the run, and the stack calls the job completed."""
    seen = [one for one in control_run() if one.at_s <= done_s(24)]
    left = [*seen, ProcessExited(done_s(24) + 1 / 64, member(1), 0, None), RunEnded(5.0, "finished")]
    judgement = judged(left, CONTROL)
    assert judgement.verdict is Verdict.FAIL
    assert "premature exit at step 24 of 40" in judgement.reasons[0]


def test_an_unknown_exit_code_cannot_prove_it() -> None:
    seen = [one for one in control_run() if one.at_s <= done_s(24)]
    left = [*seen, ProcessExited(done_s(24) + 1 / 64, member(1), None, None), RunEnded(5.0, "finished")]
    judgement = judged(left, CONTROL)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert verdict_of(judgement, "training_complete") == "INCONCLUSIVE"


def test_its_own_word_proves_it() -> None:
    seen = [one for one in control_run() if one.at_s <= done_s(24)]
    said = [*seen, TrainingFinished(done_s(24) + 1 / 64, member(1), 1, 24), RunEnded(5.0, "finished")]
    assert judged(said, CONTROL).verdict is Verdict.FAIL


def test_the_victims_own_exit_is_not_premature() -> None:
    seen = [*without(never_back(), ProcessExited), ProcessExited(KILL_S + 1 / 128, member(2), 0, None)]
    assert verdict_of(judged(seen, plan()), "training_complete") == ""


def test_a_stack_that_gives_up_for_no_reason_fails_a_control_run() -> None:
    seen = [one for one in control_run() if one.at_s <= done_s(24)]
    gave_up = [*seen, StackStopped(4.0, "lost the plot"), RunEnded(4.0, "stopped")]
    judgement = judged(gave_up, CONTROL)
    assert judgement.verdict is Verdict.FAIL
    assert "lost the plot" in judgement.reasons[0]


def test_a_control_run_that_reaches_the_horizon_is_inconclusive() -> None:
    seen = [one for one in control_run() if one.at_s <= done_s(24)]
    assert judged([*seen, RunEnded(60.0, "horizon", "not finished")], CONTROL).verdict is Verdict.INCONCLUSIVE


def test_a_workload_that_ends_the_run_after_the_fault_is_not_passed() -> None:
    seen = [one for one in killed() if one.at_s <= KILL_S + 1]
    seen += [
        WorkloadRaised(KILL_S + 1.1, member(0), 0, 33, "ValueError: NaN", ""),
        RunEnded(KILL_S + 1.2, "workload-error", "ValueError: NaN"),
    ]
    judgement = judged(seen, FAST)
    assert verdict_of(judgement, "first_step_s") == "PASS"
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.own_error is None, "after a fault nobody can say whose it is"


# ---------------------------------------------------------------------------------- errors


def test_a_dirty_host_is_an_error_whatever_else_holds() -> None:
    judgement = judged(killed(), FAST, dirty=("pid 4711",))
    assert (judgement.verdict, judgement.exit_code) == (Verdict.ERROR, 3)
    assert judgement.reasons == ("left on this host: pid 4711",)
    assert verdict_of(judgement, "first_step_s") == "PASS", "the checks are still shown"
    assert judged(control_run(), FAST, dirty=("x",)).verdict is Verdict.ERROR, "also above INCONCLUSIVE"
    assert judged(never_back(), FAST, dirty=("x",)).verdict is Verdict.ERROR, "also above FAIL"


def test_an_undo_that_failed_is_an_error() -> None:
    judgement = judged([*killed(), FaultHealed(60.0, "f0", False, "no permission")], FAST)
    assert judgement.verdict is Verdict.ERROR
    assert judgement.reasons[0] == "f0 could not be undone: no permission"


def test_an_interrupted_run_is_an_error() -> None:
    seen = [*without(never_back(), RunEnded), RunEnded(4.0, "interrupted", "SIGINT")]
    judgement = judged(seen, FAST)
    assert judgement.verdict is Verdict.ERROR
    assert judgement.reasons[0] == "interrupted: SIGINT"


def test_a_check_that_crashes_is_an_error_and_the_others_still_count() -> None:
    asked = plan(limits=(limit("no_such_figure", "max", 1), *FAST.limits, limit("lost_steps", "max", 1, "steps")))
    judgement = judged(killed(), asked)
    assert (judgement.verdict, judgement.exit_code) == (Verdict.ERROR, 3)
    assert [str(check.verdict) for check in judgement.checks[:3]] == ["ERROR", "PASS", "ERROR"]
    assert "KeyError" in judgement.checks[0].reason
    assert "not a time" in judgement.checks[2].reason
    in_vain = judged(control_run(), asked)
    assert in_vain.verdict is Verdict.ERROR, "a crash outweighs an invalid drill"


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (killed(), plan(faults=(PlannedFault("f0", "throttle", True, False, None),))),
        ([*killed(), injected(fault="f9")], plan()),
    ],
    ids=["a kind without expectations", "a fault that nobody planned"],
)
def test_a_judge_that_crashes_is_an_error(seen: list[Observation], asked: Plan) -> None:
    judgement = judged(seen, asked)
    assert (judgement.verdict, judgement.exit_code) == (Verdict.ERROR, 3)
    assert judgement.reasons[0].startswith("the judge crashed: HarnessError")
    assert set(judgement.figures.as_dict().values()) == {None}


def test_the_order_is_error_fail_inconclusive_pass() -> None:
    limits = (limit("first_step_s", "max", 0.001), limit("samples_skipped", "max", 0), limit("lost_steps", "max", 0))
    judgement = judged(killed(), plan(limits=limits), None)
    assert [str(check.verdict) for check in judgement.checks[:3]] == ["FAIL", "INCONCLUSIVE", "PASS"]
    assert judgement.verdict is Verdict.FAIL


# ---------------------------------------------------------------------------------- outcomes of faults


def test_what_became_of_each_fault_is_told_in_the_order_of_the_plan() -> None:
    asked = plan(faults=(replace(stop_fault(), id="f1"), KILL, replace(NOOP, id="f2")))
    seen = [
        *killed(),
        injected(KILL_S + 1, 0, fault="f1", kind="stop"),
        FaultEffective(KILL_S + 1.1, "f1", "state T"),
        FaultHealed(KILL_S + 1.5, "f1", True, "state S"),
        FaultFailed(KILL_S + 2, "f2", "no such rank"),
    ]
    stop, kill, noop = judged(seen, asked).faults
    assert (stop.id, stop.kind, stop.target, stop.proof) == ("f1", "stop", "rank 0", "state T")
    assert (stop.injected_at_s, stop.effective_at_s, stop.healed_at_s) == (KILL_S + 1, KILL_S + 1.1, KILL_S + 1.5)
    assert (kill.id, kill.injected_at_s, kill.healed_at_s) == ("f0", KILL_S, None)
    assert (noop.target, noop.injected_at_s, noop.reason) == ("", None, "no such rank")


def test_every_claim_is_told_with_what_it_is_worth() -> None:
    judgement = judged([*killed(), claim(3.0)], FAST)
    assert [one.word for one in judgement.claims] == ["false alarm", "right"]
