"""Steady state before the fault, the step limit, and steady state after the heal."""

from __future__ import annotations

import pytest

from harness.judge.steady import SteadyState, Unsteady, normal_runs, steady_again, steady_before, step_limit
from harness.judge.steps import Completion


def run(times_s: list[float], *, first_step: int = 1, generation: int = 0) -> list[Completion]:
    """Full-world steps that took the given times; the first began at 0 and has no completion before it."""
    done: list[Completion] = []
    at_s = 0.0
    for place, time_s in enumerate(times_s):
        at_s += time_s
        done.append(Completion(first_step + place, generation, 0, at_s, time_s if place else None))
    return done


def found(times_s: list[float], *, until_s: float = 1e9, within_s: float = 1e9) -> SteadyState | Unsteady:
    return steady_before(run(times_s), started_s=0.0, until_s=until_s, within_s=within_s)


def steady(times_s: list[float], **more: float) -> SteadyState:
    state = found(times_s, **more)
    assert isinstance(state, SteadyState)
    return state


def test_the_limit_is_a_tenth_above_the_median_when_steps_are_regular() -> None:
    assert step_limit([1.0] * 10) == (1.0, 0.0, 1.1)


def test_the_limit_is_4_5_mad_above_the_median_when_they_are_not() -> None:
    # Distances from the median of 10 are 4 3 2 1 0 0 1 2 3 4; their median is 2.
    assert step_limit([6.0, 7, 8, 9, 10, 10, 11, 12, 13, 14]) == (10.0, 2.0, 19.0)


def test_ten_steps_after_the_third_are_steady() -> None:
    state = steady([9.0, 9.0, 9.0, *[1.0] * 10])
    assert (state.from_step, state.to_step) == (4, 13)
    assert (state.median_s, state.mad_s, state.limit_s) == (1.0, 0.0, 1.1)
    assert state.reached_at_s == 37.0
    assert state.began_at_s == 27.0


def test_nine_are_not() -> None:
    state = found([9.0, 9.0, 9.0, *[1.0] * 9])
    assert isinstance(state, Unsteady)
    assert "9 such steps" in state.reason


def test_the_first_three_steps_do_not_count() -> None:
    assert isinstance(found([1.0] * 12), Unsteady)
    assert steady([1.0] * 13).from_step == 4


def test_one_slow_step_moves_the_window_behind_it() -> None:
    times_s = [1.0] * 8 + [2.0] + [1.0] * 10
    assert steady(times_s).from_step == 10
    assert isinstance(found(times_s[:-1]), Unsteady)


def test_only_steps_done_by_the_fault_count() -> None:
    times_s = [1.0] * 20
    assert isinstance(found(times_s, until_s=12.9), Unsteady)
    assert steady(times_s, until_s=13.0).to_step == 13
    assert steady(times_s, until_s=15.0).to_step == 15


def test_steady_state_must_come_in_time() -> None:
    times_s = [1.0] * 20
    assert steady(times_s, within_s=13.0).reached_at_s == 13.0
    late = found(times_s, within_s=12.9)
    assert isinstance(late, Unsteady)
    assert "13.0 s" in late.reason
    assert "12.9 s" in late.reason


def test_once_reached_a_spike_before_the_fault_does_not_undo_it() -> None:
    state = steady([1.0] * 20 + [5.0])
    assert state.to_step == 20


def test_the_limit_comes_from_the_last_steady_stretch() -> None:
    """Slow steady steps, a disturbance, then faster steady steps: the faster ones are what the fault must equal."""
    state = steady([2.0] * 13 + [9.0] + [1.0] * 12)
    assert (state.from_step, state.to_step, state.median_s) == (15, 26, 1.0)
    assert state.began_at_s == 6.0, "steady state began with the first stretch"


def test_steps_must_be_in_a_row() -> None:
    done = run([1.0] * 8) + [Completion(one.step + 9, 0, 0, one.at_s + 8, 1.0) for one in run([1.0] * 8)]
    assert isinstance(steady_before(done, started_s=0, until_s=99, within_s=99), Unsteady)


def test_steps_that_take_no_time_are_no_steps() -> None:
    assert isinstance(found([0.0] * 30), Unsteady)


def test_the_step_limit_is_printed_with_its_origin() -> None:
    assert steady([1.0] * 13).in_words() == (
        "step limit 1.1000 s = max(1.1 × 1.0000, 1.0000 + 4.5 × 0.0000), steps 4 to 13"
    )


# ---------------------------------------------------------------------------------- runs of normal steps


def test_runs_end_at_slow_steps_and_at_jumps() -> None:
    done = run([1.0, 1.0, 1.0, 3.0, 1.0, 1.0])
    done.append(Completion(3, 1, 0, done[-1].at_s + 1, 1.0))
    assert [[one.step for one in stretch] for stretch in normal_runs(done, 1.1)] == [[2, 3], [5, 6], [3]]


@pytest.mark.parametrize(("after_s", "again_s"), [(0.0, 6.0), (1.0, 6.0), (3.0, 8.0), (5.0, 10.0), (6.0, None)])
def test_five_normal_steps_that_all_end_after_the_heal(after_s: float, again_s: float | None) -> None:
    assert steady_again(run([1.0] * 10), 1.1, after_s) == again_s
