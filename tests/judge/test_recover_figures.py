"""recover_s, caught_up_s, and several faults in one drill: corner by corner."""

from __future__ import annotations

import math
from dataclasses import replace

from harness.observe.observation import (
    Claim,
    FaultEffective,
    FaultHealed,
    FaultInjected,
    Observation,
    ProcessExited,
    RankHeld,
    RunEnded,
    StepDone,
)
from tests.judge import drills
from tests.judge.drills import (
    KILL,
    KILL_S,
    NEW_WORLD,
    NOOP,
    STEP_S,
    STEPS,
    claim,
    figures,
    injected,
    killed,
    member,
    never_back,
    plan,
    ridden_out,
    stepped,
    stop_fault,
    without,
)

# ---------------------------------------------------------------------------------- recover_s


def test_four_normal_steps_are_no_recovery() -> None:
    slow = [*killed(resume=21)]
    cut_s = KILL_S + 1 / 8 + 4 * STEP_S
    seen = [one for one in slow if one.at_s <= cut_s]
    assert figures([*seen, RunEnded(60.0, "horizon")]).recover_s == math.inf
    seen = [one for one in slow if one.at_s <= cut_s + STEP_S]
    assert figures([*seen, RunEnded(60.0, "horizon")]).recover_s == 1 / 8 + STEP_S


def test_a_slow_step_starts_the_count_anew() -> None:
    first = stepped(21, 24, from_s=KILL_S + 1 / 16, generation=1, holders=NEW_WORLD)
    then_s = KILL_S + 1 / 16 + 4 * STEP_S + STEP_S
    rest = stepped(25, STEPS, from_s=then_s, generation=1, holders=NEW_WORLD)
    before = without(killed(), lambda one: isinstance(one, StepDone) and one.generation == 1)
    assert figures([*before, *first, *rest]).recover_s == then_s - KILL_S + 2 * STEP_S


def test_steps_at_the_limit_are_normal_and_above_it_are_not() -> None:
    # All steps before are equal, so MAD is 0 and the limit is 1.1 medians.
    assert figures(killed(step_s=STEP_S * 17 / 16)).recover_s == 1 / 8 + STEP_S * 17 / 16
    assert figures(killed(step_s=STEP_S * 18 / 16)).recover_s == math.inf


def test_a_heal_before_the_fifth_step_is_no_recovery() -> None:
    """Stopped for half a second and waited for: the world was healed, it did not recover."""
    seen, _ = ridden_out(stopped_s=0.5)
    asked = plan(faults=(stop_fault(duration_s=0.5),))
    assert figures(seen, asked).recover_s == math.inf


def test_a_transient_fault_may_be_waited_for() -> None:
    seen, asked = ridden_out(stopped_s=0.5, transient=True)
    assert figures(seen, asked).recover_s == 0.5 + 2 * STEP_S


def swapped_stop(healed_s: float, *, old_holder_ends_s: float | None, replaced: bool = True) -> list[Observation]:
    """A stopped rank; the stack goes on at `KILL_S` + 1/8 with the spare (or, not `replaced`, by some other way)."""
    seen = without(killed(), FaultInjected, ProcessExited, *(() if replaced else (RankHeld,)))
    seen += [injected(kind="stop"), FaultHealed(healed_s, "f0", True, "gone")]
    if old_holder_ends_s is not None:
        seen.append(ProcessExited(old_holder_ends_s, member(2), None, 9))
    return seen


def test_a_target_that_the_stack_killed_or_replaced_is_not_healed() -> None:
    asked = plan(faults=(stop_fault(duration_s=0.25),))
    recovered_s = 1 / 8 + STEP_S
    healed_s = KILL_S + recovered_s + 2 * STEP_S
    killed_before = swapped_stop(healed_s, old_holder_ends_s=KILL_S + 1 / 32, replaced=False)
    assert figures(killed_before, asked).recover_s == recovered_s
    replaced_before = swapped_stop(healed_s, old_holder_ends_s=None)
    assert figures(replaced_before, asked).recover_s == recovered_s
    neither = swapped_stop(healed_s, old_holder_ends_s=None, replaced=False)
    assert figures(neither, asked).recover_s == math.inf, "healed between the second and the fifth step"


def test_all_five_steps_must_come_before_the_heal() -> None:
    asked = plan(faults=(stop_fault(),))
    fifth_s = KILL_S + 1 / 8 + 5 * STEP_S
    in_time = swapped_stop(fifth_s + 1 / 256, old_holder_ends_s=None, replaced=False)
    assert figures(in_time, asked).recover_s == 1 / 8 + STEP_S
    at_once = swapped_stop(fifth_s, old_holder_ends_s=None, replaced=False)
    assert figures(at_once, asked).recover_s == math.inf


def test_a_kind_without_undo_holds_to_the_end_whatever_is_called_healed() -> None:
    seen = [*without(killed(), ProcessExited), FaultHealed(KILL_S + 1 / 16, "f0", True, "nothing to undo")]
    assert figures(seen).recover_s == 1 / 8 + STEP_S


def test_normal_steps_before_the_fault_bites_are_no_recovery() -> None:
    """The effect was proven only 8 steps later; from then on the world stands."""
    seen = [one for one in drills.control_run() if one.at_s <= drills.done_s(28)]
    seen += [
        injected(kind="stop"),
        FaultEffective(drills.done_s(28) + 1 / 64, "f0", "state T"),
        RunEnded(60.0, "horizon"),
    ]
    assert figures(seen, plan(faults=(stop_fault(),))).recover_s == math.inf


def test_a_late_proof_of_effect_moves_neither_start_nor_end() -> None:
    late = FaultEffective(KILL_S + 0.75, "f0", "process gone")
    assert figures([*without(killed(), FaultEffective), late]).recover_s == 1 / 8 + STEP_S


def test_an_effect_that_nothing_shows_leaves_recovery_unknown() -> None:
    found = figures(without(killed(), FaultEffective))
    assert found.recover_s is None
    assert "f0" in found.unknown["recover_s"]


def test_a_run_that_ends_too_soon_to_recover_shows_nothing() -> None:
    found = figures(killed(resume=36))
    assert found.recover_s is None
    assert "too few" in found.unknown["recover_s"]
    assert figures(killed(resume=35)).recover_s == 1 / 8 + STEP_S


def test_redone_steps_at_full_speed_are_a_recovery() -> None:
    found = figures(killed(resume=11))
    assert found.recover_s == 1 / 8 + STEP_S
    assert found.caught_up_s == 1 / 8 + 10 * STEP_S


def test_without_steady_state_before_there_is_no_step_limit() -> None:
    seen = [
        replace(one, at_s=one.at_s + (one.step % 5 == 0) / 32) if isinstance(one, StepDone) else one for one in killed()
    ]
    found = figures(seen)
    assert found.recover_s is None
    assert "steady" in found.unknown["recover_s"]
    assert found.first_step_s is not None, "needs no limit"


# ---------------------------------------------------------------------------------- caught_up_s


def test_a_fault_that_was_only_waited_for_counts_from_the_step_before_it() -> None:
    seen, asked = ridden_out(stopped_s=0.5)
    assert figures(seen, asked).caught_up_s == 0.5 + STEP_S


def test_a_world_that_broke_late_is_caught_up_where_it_broke() -> None:
    """The stack trains on for ten steps beside the fault, then regroups and goes back five."""
    seen: list[Observation] = [*drills.started(), *stepped(1, 30, from_s=drills.FIRST_S)]
    seen += [injected(kind="noop"), FaultEffective(KILL_S, "f0", "nothing")]
    seen += stepped(26, STEPS, from_s=drills.done_s(30) + 1, generation=1, holders=NEW_WORLD)
    found = figures(seen, plan(faults=(NOOP,)))
    assert found.caught_up_s == drills.done_s(30) + 1 + 6 * STEP_S - KILL_S


def test_a_fault_after_the_last_step_is_not_judged() -> None:
    seen = [*without(drills.control_run(), RunEnded), injected(drills.done_s(40) + 1 / 64), RunEnded(9.0, "finished")]
    found = figures(seen)
    for name in ("caught_up_s", "lost_steps", "redone_steps"):
        assert found.value(name) is None
        assert "all steps were done" in found.unknown[name]


# ---------------------------------------------------------------------------------- several faults

TWO = plan(faults=(KILL, replace(KILL, id="f1")))


def killed_twice(second: int = 30, pause_s: float = 1 / 8) -> list[Observation]:
    """Rank 2 dies in step 21, rank 0 a quarter into step 31; the world is back after 1/8, then after `pause_s`."""
    first = killed()
    again_s = KILL_S + 1 / 8 + (second - 21) * STEP_S + STEP_S / 4
    world = (member(5), *NEW_WORLD[1:])
    seen = [one for one in first if one.at_s < again_s]
    seen += [
        injected(again_s, 0, fault="f1"),
        ProcessExited(again_s + 1 / 128, member(0), None, 9),
        FaultEffective(again_s + 1 / 64, "f1", "process gone"),
        claim(again_s + 1 / 32, 0, generation=1),
        RankHeld(again_s + 3 / 64, member(5), 0, 4, 2),
        *drills.loaded(again_s + 1 / 16, 2, second),
        *stepped(second + 1, STEPS, from_s=again_s + pause_s - STEP_S, generation=2, holders=world),
    ]
    return [*seen, *drills.finished(again_s + pause_s + (STEPS - second - 1) * STEP_S, world)]


def test_with_several_faults_a_figure_is_the_slowest_of_them() -> None:
    found = figures(killed_twice(pause_s=1 / 4), TWO)
    assert found.detect_s == 1 / 32
    assert found.swap_s == 3 / 64
    assert found.restore_s == 1 / 16
    assert found.first_step_s == 1 / 4
    assert found.recover_s == 1 / 4 + STEP_S
    assert found.caught_up_s == 1 / 4


def test_a_second_fault_that_is_never_got_over_makes_the_figures_infinite() -> None:
    seen = killed_twice()
    second_s = next(one.at_s for one in seen if isinstance(one, FaultInjected) and one.fault == "f1")
    cut = [one for one in seen if one.at_s <= second_s + 1 / 32]
    found = figures([*cut, RunEnded(60.0, "horizon")], TWO)
    assert (found.first_step_s, found.recover_s, found.lost_steps) == (math.inf, math.inf, math.inf)
    assert found.detect_s == 1 / 32
    undetected = figures([*without(cut, Claim), claim(KILL_S + 1 / 32), RunEnded(60.0, "horizon")], TWO)
    assert undetected.detect_s == math.inf


def test_faults_in_one_pause_count_from_the_first() -> None:
    """Rank 0 dies while the world still regroups for rank 2; it steps again 1/2 after the first kill."""
    second_s = KILL_S + 1 / 4
    world = (member(5), *NEW_WORLD[1:])
    seen = [
        *(one for one in killed() if one.at_s <= KILL_S + 1 / 16),
        injected(second_s, 0, fault="f1"),
        FaultEffective(second_s + 1 / 64, "f1", "process gone"),
        claim(second_s + 1 / 32, 0, generation=1),
        RankHeld(second_s + 3 / 64, member(5), 0, 4, 2),
        *drills.loaded(second_s + 1 / 16, 2, 20),
        *stepped(21, STEPS, from_s=KILL_S + 1 / 2 - STEP_S, generation=2, holders=world),
        RunEnded(60.0, "finished"),
    ]
    found = figures(seen, TWO)
    assert (found.first_step_s, found.recover_s, found.caught_up_s) == (1 / 2, 1 / 2 + STEP_S, 1 / 2)
    assert (found.detect_s, found.swap_s) == (1 / 32, 3 / 64), "each was found and replaced as fast"
    assert found.lost_steps == 0
    assert found.redone_steps == 1, "one break, one step in flight"


def test_a_stage_that_is_never_reached_outweighs_what_is_not_known() -> None:
    seen = [*never_back(), injected(KILL_S + 1, 0, fault="f1")]
    assert figures(seen, TWO).recover_s == math.inf


def test_a_second_fault_that_does_no_harm_is_got_over_with_the_next_step() -> None:
    harmless = plan(faults=(KILL, replace(NOOP, id="f1")))
    seen = [
        *killed(),
        injected(KILL_S + 0.5, 0, fault="f1", kind="noop"),
        FaultEffective(KILL_S + 0.5, "f1", "nothing"),
    ]
    found = figures(seen, harmless)
    assert found.first_step_s == 1 / 8
    assert found.recover_s == 1 / 8 + STEP_S
