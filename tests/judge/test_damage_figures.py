"""lost_steps, redone_steps, bystanders_*, pause_s, goodput, badput, utilization: corner by corner."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.observe.observation import (
    FaultEffective,
    FaultInjected,
    MemberJoined,
    Observation,
    ProcessExited,
    RankHeld,
    RunEnded,
    StackStopped,
    StepDone,
)
from tests.judge import drills
from tests.judge.drills import (
    CONTROL,
    FIRST_S,
    KILL,
    KILL_S,
    NEW_WORLD,
    NOOP,
    SPARE,
    STEP_S,
    STEPS,
    done_s,
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

# ---------------------------------------------------------------------------------- lost_steps, redone_steps


@pytest.mark.parametrize(("resume", "lost", "redone"), [(21, 0, 1), (20, 1, 1), (11, 10, 1), (1, 20, 1)])
def test_lost_is_what_was_completed_and_redone_is_what_was_in_flight(resume: int, lost: int, redone: int) -> None:
    found = figures(killed(resume=resume))
    assert (found.lost_steps, found.redone_steps) == (lost, redone)


def test_the_records_of_the_dead_and_of_the_survivors_count_for_what_was_complete() -> None:
    """All ranks recorded step 21, one before and three after the kill: going back to 21 loses it."""
    in_flight: list[Observation] = [step_done(21, 2, KILL_S - 1 / 256)]
    in_flight += [step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1, 3)]
    assert figures([*killed(resume=21), *in_flight]).lost_steps == 1
    assert figures([*killed(resume=22), *in_flight]).lost_steps == 0


def test_a_step_that_only_some_ranks_completed_is_redone_and_not_lost() -> None:
    some = [step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1)]
    found = figures([*killed(resume=21), *some])
    assert (found.lost_steps, found.redone_steps) == (0, 1)


def test_a_step_in_flight_that_nobody_executes_again_is_not_redone() -> None:
    some = [step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1, 3)]
    found = figures([*killed(resume=22), *some])
    assert (found.lost_steps, found.redone_steps) == (0, 0)


def test_a_world_that_only_waited_lost_nothing() -> None:
    seen, asked = ridden_out()
    found = figures(seen, asked)
    assert (found.lost_steps, found.redone_steps) == (0, 0)


def test_a_world_that_never_steps_again_lost_everything() -> None:
    found = figures(never_back())
    assert (found.lost_steps, found.redone_steps) == (math.inf, math.inf)


def test_a_new_world_that_stalls_in_its_first_step_has_shown_where_it_began() -> None:
    seen = [*never_back(), *(step_done(16, rank, KILL_S + 1, generation=1) for rank in (0, 1))]
    assert figures(seen).lost_steps == 5


def test_every_break_after_the_first_fault_counts() -> None:
    """The run goes back five steps at the kill, and five more, without any fault, ten steps later."""
    seen: list[Observation] = [one for one in killed(resume=16) if one.at_s <= KILL_S + 1 / 8 + 9 * STEP_S]
    seen += stepped(21, STEPS, from_s=KILL_S + 2, generation=2, holders=NEW_WORLD)
    found = figures([*seen, RunEnded(60.0, "finished")])
    # Steps 16..20 for the kill; then 21..25, measured by what had survived, not by the highest step ever.
    assert found.lost_steps == 5 + 5


def test_a_rollback_before_the_fault_is_not_the_faults_doing() -> None:
    early = stepped(1, 5, from_s=0.5)
    moved = [replace(one, generation=one.generation + 1) if isinstance(one, StepDone) else one for one in killed()]
    assert figures([*moved, *early]).lost_steps == 0


def test_steps_executed_again_are_seen_without_generations_too() -> None:
    """A stack that redoes steps in silence: the same processes, the same generation."""
    seen = [one for one in drills.control_run() if one.at_s <= done_s(30)]
    seen += [injected(kind="noop"), FaultEffective(KILL_S, "f0", "nothing")]
    seen += stepped(26, STEPS, from_s=done_s(30))
    found = figures([*seen, RunEnded(60.0, "finished")], plan(faults=(NOOP,)))
    assert found.lost_steps == 5
    assert found.redone_steps == 0, "nothing shows that step 31 had begun"
    assert found.bystanders_rolled_back == 3, "rank 2 was hit, whatever with"


# ---------------------------------------------------------------------------------- bystanders_rolled_back


def test_reloading_the_last_complete_step_rolls_nobody_back() -> None:
    assert figures(killed(resume=21)).bystanders_rolled_back == 0


def test_ranks_that_were_not_hit_and_executed_a_step_again_were_rolled_back() -> None:
    assert figures(killed(resume=20)).bystanders_rolled_back == 3


def test_the_replacement_alone_may_repeat_steps() -> None:
    """Rank 2 catches up on step 20 by itself; the others only wait."""
    seen = [*killed(resume=21), step_done(20, 2, KILL_S + 3 / 32, by=member(SPARE), generation=1)]
    assert figures(seen).bystanders_rolled_back == 0


# ---------------------------------------------------------------------------------- bystanders_restarted


def test_survivors_that_keep_their_process_were_not_restarted() -> None:
    assert figures(killed()).bystanders_restarted == 0


def test_exits_after_the_run_is_over_are_no_restarts() -> None:
    seen = [*never_back(), *(ProcessExited(60.5, member(rank), None, 9) for rank in (0, 1, 3))]
    assert figures(seen).bystanders_restarted == 0


def test_exits_after_the_stack_gave_up_are_no_restarts() -> None:
    seen = [*never_back(), StackStopped(3.5, "no spare"), ProcessExited(3.6, member(0), 1, None)]
    assert figures(seen).bystanders_restarted == 0


def test_a_rank_that_finished_may_end_before_the_others_have() -> None:
    last = done_s(STEPS)
    seen = without(drills.control_run(), of_rank(3, step=STEPS), lambda one: isinstance(one, RunEnded))
    seen += [
        step_done(STEPS, 3, last + 1 / 8),
        ProcessExited(last + 1 / 16, member(0), 0, None),
        RunEnded(9, "finished"),
    ]
    assert figures(seen, CONTROL).bystanders_restarted == 0


def restarted_everyone() -> list[Observation]:
    """What a launcher does that restarts all workers: the survivors are ended and new processes hold all ranks."""
    fresh = [member(10 + rank) for rank in range(4)]
    seen = [one for one in killed() if one.at_s <= KILL_S + 1 / 32]
    seen += [ProcessExited(KILL_S + 1 / 16, member(rank), None, 15) for rank in (0, 1, 3)]
    seen += drills.held(KILL_S + 4, 1, (10, 11, 12, 13))
    seen += stepped(16, STEPS, from_s=KILL_S + 5, generation=1, holders=fresh)
    return [*seen, *drills.finished(KILL_S + 5 + 25 * STEP_S, fresh)]


def test_everyone_restarted() -> None:
    found = figures(restarted_everyone())
    assert found.bystanders_restarted == 3
    assert found.bystanders_rolled_back == 3
    assert found.lost_steps == 5


def test_replaced_processes_count_although_nobody_saw_them_end() -> None:
    assert figures(without(restarted_everyone(), ProcessExited)).bystanders_restarted == 3
    assert figures(without(restarted_everyone(), ProcessExited, RankHeld)).bystanders_restarted == 3


def test_a_healthy_spare_that_is_ended_counts() -> None:
    seen = [*killed(), MemberJoined(1.0, member(9), "spare"), ProcessExited(KILL_S + 1, member(9), None, 15)]
    assert figures(seen).bystanders_restarted == 1


def test_a_death_by_itself_counts_too_since_nobody_can_tell_who_did_it() -> None:
    assert figures([*killed(), ProcessExited(KILL_S + 1, member(0), 1, None)]).bystanders_restarted == 1


def test_a_member_that_moves_to_another_rank_kept_its_process() -> None:
    seen = [*killed(), RankHeld(KILL_S + 1, member(0), 1, 4, 2), RankHeld(KILL_S + 1, member(1), 0, 4, 2)]
    assert figures(seen).bystanders_restarted == 0


def test_what_happened_before_the_fault_is_not_its_doing() -> None:
    seen = [*killed(), MemberJoined(0.5, member(9), "spare"), ProcessExited(1.0, member(9), 1, None)]
    assert figures(seen).bystanders_restarted == 0


def test_the_target_of_a_later_fault_is_a_bystander_until_then() -> None:
    two = plan(faults=(KILL, replace(KILL, id="f1")))
    later = injected(KILL_S + 1, 0, fault="f1")
    assert figures([*killed(), later, ProcessExited(KILL_S + 1.1, member(0), None, 9)], two).bystanders_restarted == 0
    assert figures([*killed(), later, ProcessExited(KILL_S + 0.9, member(0), None, 9)], two).bystanders_restarted == 1


def test_a_control_run_watches_everybody_from_the_start() -> None:
    assert figures(drills.control_run(), CONTROL).bystanders_restarted == 0
    assert figures([*drills.control_run(), ProcessExited(3.0, member(1), None, 15)], CONTROL).bystanders_restarted == 1
    assert figures(drills.control_run(), CONTROL).bystanders_rolled_back == 0


# ---------------------------------------------------------------------------------- pause_s


def test_the_pause_is_the_longest_gap_less_a_normal_step() -> None:
    # The gap begins with step 20, a quarter of a step before the kill.
    assert figures(killed(pause_s=1 / 8)).pause_s == STEP_S / 4 + 1 / 8 - STEP_S


def test_a_gap_later_on_may_be_the_longest() -> None:
    late = [
        replace(one, at_s=one.at_s + 3) if isinstance(one, StepDone) and one.step >= 30 else one for one in killed()
    ]
    assert figures(late).pause_s == 3.0


def test_gaps_before_the_fault_do_not_count() -> None:
    slow_start = [
        replace(one, at_s=one.at_s - 1) if isinstance(one, StepDone) and one.step <= 2 else one for one in killed()
    ]
    assert figures(slow_start).pause_s == figures(killed()).pause_s


def test_a_run_that_is_never_slower_than_its_median_has_no_pause() -> None:
    seen = [*drills.control_run(), injected(kind="noop"), FaultEffective(KILL_S, "f0", "nothing")]
    assert figures(seen, plan(faults=(NOOP,))).pause_s == 0.0


def test_a_world_that_stands_at_the_end_pauses_for_ever() -> None:
    assert figures(never_back()).pause_s == math.inf
    going_on = [one for one in killed() if one.at_s <= KILL_S + 0.5]
    assert figures([*going_on, RunEnded(KILL_S + 0.5, "horizon")]).pause_s == STEP_S / 4 + 1 / 8 - STEP_S
    gave_up = [*going_on, StackStopped(KILL_S + 0.5, "policy"), RunEnded(KILL_S + 0.5, "stopped")]
    assert figures(gave_up).pause_s == math.inf


# ---------------------------------------------------------------------------------- goodput, badput


def test_a_run_without_trouble_is_all_good() -> None:
    found = figures(drills.control_run(), CONTROL)
    assert found.goodput == 1.0
    assert found.badput_s == dict.fromkeys(found.badput_s, 0.0)


def test_goodput_and_badput_share_the_time() -> None:
    found = figures(killed(resume=16))
    assert found.goodput is not None
    # From the beginning of step 4 to the end of step 40; steps 16..20 were done twice.
    total_s = KILL_S + 1 / 8 + 24 * STEP_S - done_s(3)
    assert found.goodput == 37 * STEP_S / total_s
    assert sum(found.badput_s.values()) == pytest.approx(total_s - 37 * STEP_S)
    assert found.badput_s == {
        "in_flight": STEP_S / 4,
        "detect": 1 / 32,
        "swap": 1 / 64,
        "restore": 1 / 64,
        "restart": 1 / 8 - 1 / 16 - STEP_S,
        "redone": 5 * STEP_S,
        "slow": 0.0,
        "unfinished": 0.0,
    }


def test_stages_that_nobody_saw_leave_their_time_to_the_next() -> None:
    found = figures(without(killed(pause_s=1.0), RankHeld), plan(stack_alarms=False))
    assert found.badput_s["detect"] == 1 / 32
    assert found.badput_s["swap"] == 0.0
    assert found.badput_s["restore"] == 1 / 32


def test_the_pause_after_a_step_in_flight_is_the_faults() -> None:
    in_flight = [step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1, 3)] + [step_done(21, 2, KILL_S - 1 / 256)]
    found = figures([*killed(resume=22, pause_s=1.0), *in_flight])
    assert found.badput_s["slow"] == 0.0
    assert found.badput_s["restart"] == 1.0 - 1 / 16 - STEP_S


def test_slow_steps_are_slow() -> None:
    found = figures(killed(step_s=2 * STEP_S))
    assert found.badput_s["slow"] == 19 * STEP_S


def test_a_hang_earns_nothing() -> None:
    found = figures(never_back())
    assert found.goodput == 17 * STEP_S / (60.0 - done_s(3))
    assert found.badput_s["unfinished"] == 60.0 - done_s(20)


def test_without_steady_state_there_is_no_goodput() -> None:
    found = figures([*drills.started(), *stepped(1, 8, from_s=FIRST_S), RunEnded(9.0, "horizon")], CONTROL)
    assert found.goodput is None
    assert "steady" in found.unknown["goodput"]
    assert found.badput_s == {}


# ---------------------------------------------------------------------------------- utilization


def test_utilization_counts_spares_and_start_up() -> None:
    found = figures(drills.control_run(), CONTROL)
    # Half of every step time is spent in the step (see `step_done`); 5 cards are held from 0 to the end.
    assert found.utilization == 40 * 4 * (STEP_S / 2) / (5 * (done_s(40) + 0.25))


def test_a_replacement_that_comes_later_uses_a_card_that_was_there() -> None:
    extra = [*drills.control_run(), MemberJoined(4.0, member(9), "spare")]
    assert figures(extra, CONTROL).utilization == figures(drills.control_run(), CONTROL).utilization


def test_utilization_needs_to_know_when_steps_begin() -> None:
    seen = [replace(one, started_s=None) if isinstance(one, StepDone) else one for one in killed()]
    assert figures(seen).utilization is None
    assert "begin" in figures(seen).unknown["utilization"]
    assert figures([RunEnded(0.0, "stopped")], CONTROL).utilization is None


def test_a_run_without_length_has_no_utilization() -> None:
    seen = [replace(one, at_s=1.0) for one in without(drills.control_run())]
    assert figures(seen, CONTROL).utilization is None


# ---------------------------------------------------------------------------------- missing records


def test_a_rank_whose_records_stop_while_the_others_go_on_makes_step_figures_unknown() -> None:
    """Its probe could not write any more; in a synchronous run it must have stepped with the rest."""
    silent = without(killed(), lambda one: isinstance(one, StepDone) and one.rank == 1 and one.step > 30)
    found = figures(silent)
    for name in ("first_step_s", "recover_s", "caught_up_s", "pause_s", "lost_steps", "redone_steps", "goodput"):
        assert found.value(name) is None, name
        assert "rank 1 has no step records from step 31 of generation 1" in found.unknown[name], name
    for name in ("bystanders_rolled_back", "utilization", "samples_skipped", "samples_repeated", "weights_equal"):
        assert name in found.unknown, name
    assert found.detect_s == 1 / 32, "claims are seen all the same"
    assert found.swap_s == 3 / 64


def test_one_step_behind_is_a_step_in_flight_and_no_missing_record() -> None:
    ahead = [step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1, 3)]
    assert figures([*never_back(), *ahead]).first_step_s == math.inf


def test_two_silent_ranks_are_counted() -> None:
    silent = without(killed(), lambda one: isinstance(one, StepDone) and one.rank in (1, 3) and one.step > 30)
    assert "and 1 more" in figures(silent).unknown["lost_steps"]


def test_a_rank_without_any_record_is_missing_too() -> None:
    seen = without(killed(), of_rank(3, generation=1))
    assert "rank 3 has no step records from step 21" in figures(seen).unknown["first_step_s"]
    assert figures(without(seen, FaultInjected), CONTROL).lost_steps is None
