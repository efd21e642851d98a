"""false_alarms, wrong_blame, ambient_alarms: what each claim is worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import HarnessError
from harness.judge.alarms import judge_claims
from harness.judge.evidence import gather
from harness.judge.expectations import EXPECTATIONS, expectation
from harness.judge.plan import Plan
from harness.observe.observation import (
    Claim,
    FaultInjected,
    MemberJoined,
    Observation,
    ProcessExited,
    RankHeld,
    WorkloadRaised,
)
from harness.observe.timeline import Timeline
from tests.judge import drills
from tests.judge.drills import (
    CONTROL,
    KILL_S,
    PLAN,
    SPARE,
    STEP_S,
    claim,
    figures,
    injected,
    killed,
    member,
    never_back,
    plan,
    without,
)


def words(seen: list[Observation], asked: Plan = PLAN) -> list[str]:
    return [one.word for one in judge_claims(gather(Timeline(seen), asked, None))]


def counts(seen: list[Observation], asked: Plan = PLAN) -> tuple[object, object, object]:
    found = figures(seen, asked)
    return found.false_alarms, found.wrong_blame, found.ambient_alarms


QUIET = without(killed(), Claim)


def test_a_right_claim_is_neither_false_nor_wrong() -> None:
    assert counts(killed()) == (0, 0, 0)
    assert words(killed()) == ["right"]


def test_nothing_was_claimed() -> None:
    assert counts(QUIET) == (0, 0, 0)


def test_the_same_right_claim_twice_is_still_right() -> None:
    assert words([*killed(), claim(KILL_S + 3)]) == ["right", "right"]


def test_a_claim_in_a_run_without_fault_is_false() -> None:
    assert counts([*drills.control_run(), claim(3.0)], CONTROL) == (1, 0, 0)


def test_a_suspicion_is_not_counted() -> None:
    seen = [*drills.control_run(), claim(3.0, confirmed=False)]
    assert counts(seen, CONTROL) == (0, 0, 0)
    assert words(seen, CONTROL) == ["suspicion"]


def test_a_claim_before_the_fault_is_false_even_if_it_names_the_later_victim() -> None:
    assert counts([*killed(), claim(KILL_S - 1 / 64)]) == (1, 0, 0)


def test_a_claim_that_names_a_neighbour_while_the_fault_is_open_is_wrong_blame() -> None:
    assert counts([*QUIET, claim(KILL_S + 1 / 32, 1)]) == (0, 1, 0)
    assert counts([*killed(), claim(KILL_S + 1 / 16, 1)]) == (0, 1, 0), "also after the right one"


def test_a_claim_after_the_run_is_normal_again_is_a_false_alarm() -> None:
    settled_s = KILL_S + 1 / 8 + STEP_S
    assert counts([*killed(), claim(settled_s, 1)]) == (0, 1, 0)
    assert counts([*killed(), claim(settled_s + 1 / 256, 1)]) == (1, 0, 0)


def test_a_fault_that_is_never_got_over_stays_open() -> None:
    assert counts([*never_back(), claim(50.0, 1)]) == (0, 1, 0)


def test_where_no_limit_is_known_a_fault_is_open_until_the_first_step() -> None:
    """Only five steps before the kill: no steady state, so no recovery to wait for."""
    seen = without(QUIET, lambda one: one.at_s < KILL_S - 5 * STEP_S and type(one).__name__ == "StepDone")
    assert counts([*seen, claim(KILL_S + 1 / 8, 1)]) == (0, 1, 0)
    assert counts([*seen, claim(KILL_S + 1 / 8 + 1 / 64, 1)]) == (1, 0, 0)


def test_the_right_culprit_with_the_wrong_kind_is_false() -> None:
    assert counts([*QUIET, claim(KILL_S + 1 / 256, kind="hang")]) == (1, 0, 0)


def test_a_claim_that_names_nobody_is_vague_if_its_kind_fits_and_false_if_not() -> None:
    assert words([*QUIET, claim(KILL_S + 1 / 256, None)]) == ["vague"]
    assert counts([*QUIET, claim(KILL_S + 1 / 256, None)]) == (0, 0, 0)
    assert words([*QUIET, claim(KILL_S + 1 / 256, None, kind="hang")]) == ["false alarm"]


def test_the_new_holder_of_a_rank_is_not_the_culprit() -> None:
    late = claim(KILL_S + 1 / 16, 2, pid=member(SPARE).pid, node="n4", generation=1)
    assert words([*QUIET, late]) == ["wrong blame"]


def test_a_fault_that_does_nothing_explains_no_claim() -> None:
    seen = [*drills.control_run(), injected(kind="noop"), claim(KILL_S + 1)]
    assert counts(seen, plan(faults=(drills.NOOP,))) == (1, 0, 0)


# ---------------------------------------------------------------------------------- ambient

DIED_S = KILL_S + 1


def test_a_second_death_that_was_not_injected_is_ambient_when_the_tester_saw_it() -> None:
    seen = [*killed(), ProcessExited(DIED_S, member(0), None, 11), claim(DIED_S + 1 / 64, 0)]
    assert counts(seen) == (0, 0, 1)


def test_the_same_without_any_fault() -> None:
    seen = [*drills.control_run(), ProcessExited(3.0, member(0), 1, None), claim(3.0, 0)]
    assert counts(seen, CONTROL) == (0, 0, 1)


def test_a_kill_after_the_claim_proves_nothing_either_way() -> None:
    """Claimed first, killed afterwards: a stack cannot make its own alarm true, nor is it shown to be wrong."""
    seen = [*killed(), claim(DIED_S, 0), ProcessExited(DIED_S + 1 / 256, member(0), None, 9)]
    assert words(seen)[-1] == "undecided"
    assert figures(seen).false_alarms is None
    assert "neither shown nor refuted" in figures(seen).unknown["false_alarms"]


@pytest.mark.parametrize(("code", "signal"), [(1, None), (0, None), (None, 11)])
def test_an_exit_of_its_own_may_be_seen_a_little_later_than_claimed(code: int | None, signal: int | None) -> None:
    """The connection of a dying process closes before its pidfd tells."""
    seen = [*killed(), claim(DIED_S, 0), ProcessExited(DIED_S + 1 / 16, member(0), code, signal)]
    assert counts(seen) == (0, 0, 1)
    seen[-1] = ProcessExited(DIED_S + 3, member(0), code, signal)
    assert counts(seen) == (1, 0, 0)


def test_an_exit_bears_out_a_crash_and_nothing_else() -> None:
    seen = [*killed(), ProcessExited(DIED_S, member(0), None, 11), claim(DIED_S, 0, kind="hang")]
    assert counts(seen) == (1, 0, 0)


def test_an_exit_with_unknown_code_is_an_exit() -> None:
    assert counts([*killed(), ProcessExited(DIED_S, member(0), None, None), claim(DIED_S, 0)]) == (0, 0, 1)


def test_the_exit_of_another_bears_out_nothing() -> None:
    assert counts([*killed(), ProcessExited(DIED_S, member(1), None, 11), claim(DIED_S, 0)]) == (1, 0, 0)


def test_a_member_may_be_named_by_rank_alone() -> None:
    seen = [*killed(), ProcessExited(DIED_S, member(0), None, 11), claim(DIED_S, 0, pid=None, node=None, generation=1)]
    assert counts(seen) == (0, 0, 1)


@pytest.mark.parametrize(("kind", "word"), [("exception", "ambient"), ("crash", "ambient"), ("hang", "false alarm")])
def test_the_programs_own_word_bears_out_an_exception(kind: str, word: str) -> None:
    raised = WorkloadRaised(DIED_S, member(0), 0, 30, "ValueError: no", "")
    assert words([*QUIET, raised, claim(DIED_S + 1 / 64, 0, kind=kind)]) == [word]
    assert words([*QUIET, replace(raised, at_s=DIED_S + 1), claim(DIED_S, 0, kind=kind)]) == ["false alarm"]


@pytest.mark.parametrize(
    ("code", "signal", "word"), [(0, None, "ambient"), (1, None, "false alarm"), (None, 9, "false alarm")]
)
def test_a_premature_exit_is_an_exit_with_code_0(code: int | None, signal: int | None, word: str) -> None:
    seen = [*QUIET, ProcessExited(DIED_S, member(0), code, signal), claim(DIED_S, 0, kind="premature-exit")]
    assert words(seen) == [word]


def test_an_exit_with_unknown_code_cannot_prove_a_premature_one() -> None:
    seen = [*QUIET, ProcessExited(DIED_S, member(0), None, None), claim(DIED_S, 0, kind="premature-exit")]
    assert words(seen) == ["undecided"]
    found = figures(seen)
    assert found.false_alarms is None
    assert "premature-exit" in found.unknown["false_alarms"]
    assert (found.wrong_blame, found.ambient_alarms) == (0, 0)


def test_a_lost_node_is_shown_by_the_exit_of_all_its_members() -> None:
    two = [MemberJoined(1.0, member(0), "member"), MemberJoined(1.0, member(6)._replace(node="n0"), "spare")]
    lost = claim(DIED_S, None, node="n0", kind="node-lost")
    one_gone: list[Observation] = [*QUIET, *two, ProcessExited(DIED_S, member(0), None, 9), lost]
    assert words(one_gone) == ["false alarm"]
    assert words([*one_gone, ProcessExited(DIED_S, member(6)._replace(node="n0"), None, 9)]) == ["ambient"]
    assert words([*QUIET, claim(DIED_S, None, node="n77", kind="node-lost")]) == ["false alarm"]


def test_a_pid_that_nobody_ever_saw_is_false() -> None:
    assert words([*QUIET, claim(DIED_S, None, pid=4711, node="n0")]) == ["false alarm"]


def test_programs_that_never_say_who_holds_a_rank_can_be_blamed_by_rank() -> None:
    seen = without(QUIET, RankHeld)
    assert words([*seen, claim(KILL_S + 1 / 32, 2, pid=None, node=None)]) == ["right"]
    assert words([*seen, claim(KILL_S + 1 / 32, 1, pid=None, node=None)]) == ["wrong blame"]


# ---------------------------------------------------------------------------------- the rest


def test_stacks_without_alarms_have_none_to_count() -> None:
    assert counts(killed(), plan(stack_alarms=False)) == (None, None, None)


def test_an_agent_that_was_hit_is_its_node() -> None:
    agent = FaultInjected(KILL_S, "f0", "kill", "agent n2", (), (member(50)._replace(node="n2"),), ("n2",))
    seen = [*without(QUIET, FaultInjected), agent, claim(KILL_S + 1, None, node="n2", kind="node-lost")]
    assert words(seen) == ["right"]


def test_every_kind_that_part_a_knows_has_expectations() -> None:
    assert set(EXPECTATIONS) == {"kill", "stop", "noop"}
    assert expectation("kill").claims[0] == "crash"
    with pytest.raises(HarnessError, match="throttle"):
        expectation("throttle")
