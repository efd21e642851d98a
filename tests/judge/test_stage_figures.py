"""suspect_s, detect_s, reaction_s, swap_s, restore_s, first_step_s, recover_s, caught_up_s: corner by corner."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.judge.figures import FIGURES
from harness.observe.observation import (
    Claim,
    FaultEffective,
    FaultInjected,
    MemberJoined,
    Observation,
    ProcessExited,
    RankHeld,
    RunEnded,
    StackStopped,
    StateLoaded,
    StepDone,
    WorkloadRaised,
)
from tests.judge import drills
from tests.judge.drills import (
    CONTROL,
    KILL_S,
    NOOP,
    SPARE,
    STEP_S,
    STEPS,
    claim,
    figures,
    injected,
    killed,
    member,
    never_back,
    of_rank,
    plan,
    ridden_out,
    step_done,
    stepped,
    without,
)

ALL_TIMES = [name for name, spec in FIGURES.items() if spec.unit == "s"]


def test_the_plain_drill() -> None:
    found = figures(killed())
    assert found.suspect_s == 1 / 32, "a confirmed claim is a suspicion too"
    assert found.detect_s == 1 / 32
    assert found.reaction_s is None, "only for stacks without alarms"
    assert found.swap_s == 3 / 64
    assert found.restore_s == 1 / 16
    assert found.first_step_s == 1 / 8
    assert found.recover_s == 1 / 8 + STEP_S, "the first step holds the pause, so the second is the first normal one"
    assert found.caught_up_s == 1 / 8


def test_without_a_fault_nothing_that_starts_at_one_applies() -> None:
    found = figures(drills.control_run(), CONTROL)
    for name in [*ALL_TIMES, "lost_steps", "redone_steps"]:
        assert found.value(name) is None, name
        assert name not in found.unknown, name


def test_what_is_not_seen_by_the_horizon_is_infinite() -> None:
    found = figures(never_back())
    for name in ("suspect_s", "detect_s", "swap_s", "restore_s", "first_step_s", "recover_s", "caught_up_s", "pause_s"):
        assert found.value(name) == math.inf, name


# ---------------------------------------------------------------------------------- suspect_s, detect_s


def test_a_yellow_card_is_a_suspicion_and_no_detection() -> None:
    seen = [*killed(), claim(KILL_S + 1 / 64, kind="slow", confirmed=False)]
    assert figures(seen).suspect_s == 1 / 64
    assert figures(seen).detect_s == 1 / 32


def test_a_yellow_card_for_another_suspects_nobody() -> None:
    assert figures([*killed(), claim(KILL_S + 1 / 64, 1, confirmed=False)]).suspect_s == 1 / 32


def test_a_suspicion_that_is_never_confirmed_detects_nothing() -> None:
    seen = [*without(killed(), Claim), claim(KILL_S + 1 / 64, confirmed=False)]
    assert figures(seen).suspect_s == 1 / 64
    assert figures(seen).detect_s == math.inf


def test_a_claim_counts_from_its_receipt() -> None:
    late = replace(claim(KILL_S + 0.5), said_s=KILL_S + 1 / 64)
    assert figures([*without(killed(), Claim), late]).detect_s == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        claim(KILL_S + 1 / 64, kind="hang"),
        claim(KILL_S + 1 / 64, 1),
        claim(KILL_S + 1 / 64, None, node="n2", kind="node-lost"),
        claim(KILL_S + 1 / 64, None),
        claim(KILL_S + 1 / 64, 2, pid=101),
        claim(KILL_S + 1 / 64, 2, node="n1"),
        claim(KILL_S - 1 / 64),
    ],
    ids=["kind", "rank", "node for a rank", "nobody", "pid", "node", "before the fault"],
)
def test_only_the_right_kind_and_culprit_detect(wrong: Claim) -> None:
    assert figures([*without(killed(), Claim), wrong, claim(KILL_S + 0.5)]).detect_s == 0.5


@pytest.mark.parametrize(
    "right",
    [
        claim(KILL_S + 1 / 64, 2, pid=None, node=None),
        claim(KILL_S + 1 / 64, None, pid=102, node=None),
        claim(KILL_S + 1 / 64, None, pid=102, node="n2"),
        claim(KILL_S + 1 / 64, 2, pid=None, node="n2"),
    ],
    ids=["rank alone", "pid alone", "pid and node", "rank and node"],
)
def test_a_culprit_may_be_named_in_part(right: Claim) -> None:
    assert figures([*without(killed(), Claim), right]).detect_s == 1 / 64


def test_after_the_swap_the_same_rank_is_somebody_else() -> None:
    late = claim(KILL_S + 0.5, 2, pid=None, node=None, generation=1)
    assert figures([*without(killed(), Claim), late]).detect_s == math.inf
    still_the_old_one = replace(late, generation=0)
    assert figures([*without(killed(), Claim), still_the_old_one]).detect_s == 0.5


def test_a_whole_node_may_be_named_where_a_node_was_hit() -> None:
    at_node = replace(injected(), target="node n2")
    seen = [
        *without(killed(), Claim, FaultInjected),
        at_node,
        claim(KILL_S + 1 / 64, None, node="n2", kind="node-lost"),
    ]
    assert figures(seen).detect_s == 1 / 64


def test_stacks_without_alarms_have_no_detection() -> None:
    found = figures(killed(), plan(stack_alarms=False))
    assert (found.suspect_s, found.detect_s) == (None, None)
    assert not {"suspect_s", "detect_s"} & set(found.unknown)


def test_a_fault_that_does_nothing_is_not_to_be_detected() -> None:
    seen = [*without(drills.control_run()), injected(kind="noop"), FaultEffective(KILL_S, "f0", "nothing done")]
    found = figures(seen, plan(faults=(NOOP,)))
    assert (found.detect_s, found.swap_s, found.restore_s, found.first_step_s) == (None, None, None, None)
    assert found.recover_s == 3 / 4 * STEP_S, "the step in flight is as normal as any"
    assert found.caught_up_s == 3 / 4 * STEP_S


# ---------------------------------------------------------------------------------- reaction_s

WITHOUT_ALARMS = plan(stack_alarms=False)


@pytest.mark.parametrize(
    "reaction",
    [
        ProcessExited(KILL_S + 1 / 256, member(0), None, 15),
        MemberJoined(KILL_S + 1 / 256, member(7), "member"),
        RankHeld(KILL_S + 1 / 256, member(7), 2, 4, 1),
        StateLoaded(KILL_S + 1 / 256, member(0), 0, 1, 20),
        StackStopped(KILL_S + 1 / 256, "no spare"),
        claim(KILL_S + 1 / 256, 0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_first_visible_reaction(reaction: Observation) -> None:
    assert figures([*killed(), reaction], WITHOUT_ALARMS).reaction_s == 1 / 256


def test_what_the_fault_does_by_itself_is_no_reaction() -> None:
    raised = WorkloadRaised(KILL_S + 1 / 256, member(1), 1, 21, "RuntimeError: peer closed", "")
    seen = [*without(never_back(), Claim), raised, ProcessExited(KILL_S + 1 / 128, member(1), 1, None)]
    assert figures(seen, WITHOUT_ALARMS).reaction_s == math.inf


def test_what_came_before_the_fault_is_no_reaction() -> None:
    early = MemberJoined(KILL_S - 1 / 256, member(7), "spare")
    assert figures([*without(killed(), Claim), early], WITHOUT_ALARMS).reaction_s == 3 / 64


# ---------------------------------------------------------------------------------- swap_s


def test_the_old_holder_holding_its_rank_again_is_no_swap() -> None:
    seen, asked = ridden_out()
    assert figures([*seen, RankHeld(KILL_S + 0.25, member(2), 2, 4, 1)], asked).swap_s == math.inf


def test_another_rank_passed_on_is_no_swap() -> None:
    seen = [*never_back(), RankHeld(KILL_S + 0.25, member(SPARE), 1, 4, 1)]
    assert figures(seen).swap_s == math.inf


def test_a_fault_on_two_ranks_is_swapped_when_both_are_held() -> None:
    both = FaultInjected(KILL_S, "f0", "kill", "node n2", (2, 3), (member(2), member(3)), ("n2", "n3"))
    seen = [*without(killed(), FaultInjected, RankHeld), both, RankHeld(KILL_S + 1 / 64, member(SPARE), 2, 4, 1)]
    assert figures([*never_back(), both]).swap_s == math.inf
    seen.append(RankHeld(KILL_S + 1 / 8, member(5), 3, 4, 1))
    assert figures(seen).swap_s == 1 / 8


def test_a_replacement_that_never_says_it_holds_the_rank_is_a_missing_record() -> None:
    found = figures(without(killed(), RankHeld))
    assert found.swap_s is None
    assert "rank 2" in found.unknown["swap_s"]


def test_a_fault_that_hits_no_rank_needs_no_swap() -> None:
    spare = FaultInjected(KILL_S, "f0", "kill", "any spare", (), (member(SPARE),), ("n4",))
    found = figures([*drills.control_run(), spare, FaultEffective(KILL_S + 1 / 64, "f0", "gone")])
    assert (found.swap_s, found.restore_s, found.first_step_s) == (None, None, None)
    assert found.detect_s == math.inf, "a dead spare is to be found all the same"
    assert found.recover_s == 3 / 4 * STEP_S


# ---------------------------------------------------------------------------------- restore_s


def test_restored_is_when_the_last_rank_has_loaded() -> None:
    late = StateLoaded(KILL_S + 3 / 32, member(3), 3, 1, 20)
    assert (
        figures([*without(killed(), lambda one: isinstance(one, StateLoaded) and one.rank == 3), late]).restore_s
        == 3 / 32
    )


def test_ranks_that_load_different_steps_have_not_restored() -> None:
    """C3: one rank resumes from another step than the rest."""
    other = StateLoaded(KILL_S + 1 / 16, member(3), 3, 1, 19)
    seen = [
        *without(killed(), lambda one: isinstance(one, StateLoaded) and one.rank == 3 and one.generation == 1),
        other,
    ]
    assert figures(seen).restore_s == math.inf


def test_a_second_try_restores() -> None:
    seen = without(killed(), lambda one: isinstance(one, StateLoaded) and one.rank == 3 and one.generation == 1)
    assert figures([*seen, *drills.loaded(KILL_S + 1 / 10, 2, 20)]).restore_s == pytest.approx(1 / 10)


def test_a_world_that_steps_again_without_saying_what_it_loaded_is_a_missing_record() -> None:
    found = figures(without(killed(), StateLoaded))
    assert found.restore_s is None
    assert "0 of 4" in found.unknown["restore_s"]


def test_a_world_that_only_waited_has_restored_nothing() -> None:
    seen, asked = ridden_out()
    assert figures(seen, asked).restore_s == math.inf


# ---------------------------------------------------------------------------------- first_step_s


def test_the_step_in_flight_that_the_old_world_still_completes_is_not_the_first_one() -> None:
    """Rank 2 recorded step 21 just before it died; the others completed it a moment later."""
    in_flight: list[Observation] = [step_done(21, 2, KILL_S - 1 / 256)]
    in_flight += [step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1, 3)]
    found = figures([*killed(resume=22), *in_flight])
    assert found.first_step_s == 1 / 8
    assert found.caught_up_s == 1 / 8, "H is 21: the dead rank's record counts"


def test_a_record_that_the_victim_writes_after_the_clock_started_is_still_the_old_world() -> None:
    in_flight = [step_done(21, rank, KILL_S + 1 / 512) for rank in range(4)]
    assert figures([*killed(resume=22), *in_flight]).first_step_s == 1 / 8


def test_a_stopped_rank_that_runs_again_completes_the_first_step() -> None:
    seen, asked = ridden_out(stopped_s=0.5)
    assert figures(seen, asked).first_step_s == 0.5 + STEP_S


def test_a_record_between_the_clock_and_the_proof_of_a_stop_is_the_old_world() -> None:
    seen, asked = ridden_out(stopped_s=0.5)
    early = [step_done(21, rank, KILL_S + 1 / 128) for rank in range(4)]
    rest = without(seen, lambda one: isinstance(one, StepDone) and one.step == 21)
    assert figures([*rest, *early], asked).first_step_s == 0.5 + 2 * STEP_S


def test_a_step_of_a_smaller_world_is_no_step_of_the_whole_world() -> None:
    three = [
        step_done(21 + more, rank, KILL_S + 1 / 4 + more * STEP_S, generation=1, world=3)
        for more in range(10)
        for rank in range(3)
    ]
    assert figures([*never_back(), *three]).first_step_s == math.inf


def test_a_step_that_one_rank_lacks_is_not_complete() -> None:
    seen = without(killed(), of_rank(1, step=21))
    # The others never go on to step 22, so the record may not be missing: the step is.
    seen = [one for one in seen if not (isinstance(one, StepDone) and one.step > 21) and one.at_s < 4]
    assert figures([*seen, RunEnded(60.0, "horizon")]).first_step_s == math.inf


def test_restarted_processes_without_generations_are_a_new_world() -> None:
    """A launcher that starts all processes anew and knows no generation: all records say generation 0."""
    fresh = [member(10 + rank) for rank in range(4)]
    seen = [one for one in killed() if one.at_s <= KILL_S + 1 / 32]
    seen += stepped(11, STEPS, from_s=KILL_S + 5, holders=fresh)
    found = figures([*seen, RunEnded(60.0, "finished")])
    assert found.first_step_s == 5 + STEP_S
    assert found.caught_up_s == 5 + 11 * STEP_S
