"""samples_skipped, samples_repeated, weights_equal: the surviving history against a reference run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.observe.observation import Observation, RunEnded, StepDone, WeightsDigest
from tests.judge import drills
from tests.judge.drills import (
    CONTROL,
    KILL_S,
    NEW_WORLD,
    PLAN,
    REFERENCE,
    STEP_S,
    STEPS,
    figures,
    ids,
    killed,
    never_back,
    of_rank,
    step_done,
    without,
)

Change = Callable[[StepDone], tuple[int, ...]]


def with_samples(seen: list[Observation], which: Callable[[StepDone], bool], change: Change) -> list[Observation]:
    return [replace(one, samples=change(one)) if isinstance(one, StepDone) and which(one) else one for one in seen]


def after_the_kill(record: StepDone) -> bool:
    return record.generation == 1


def test_a_sound_recovery_takes_every_sample_once() -> None:
    found = figures(killed())
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (0, 0, True)


def test_a_control_run_is_compared_too() -> None:
    found = figures(drills.control_run(), CONTROL)
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (0, 0, True)


def test_a_rollback_repeats_nothing_in_the_surviving_history() -> None:
    found = figures(killed(resume=11))
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (0, 0, True)


def test_a_sample_that_one_rank_leaves_out_is_skipped() -> None:
    seen = with_samples(killed(), lambda one: one.step == 25 and one.rank == 1, lambda one: one.samples[:1])
    found = figures(seen)
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (1, 0, False)


def test_a_step_that_nobody_executes_is_skipped_whole() -> None:
    found = figures(killed(resume=22))
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (8, 0, False)


def test_data_that_moves_on_without_the_state_skips_and_repeats() -> None:
    """After the swap the sampler is one step ahead; its last step takes the first samples once more."""
    seen = with_samples(killed(), after_the_kill, lambda one: ids(one.step % STEPS + 1, one.rank))
    found = figures(seen)
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (8, 8, False)


def test_data_that_falls_back_repeats() -> None:
    seen = with_samples(killed(), after_the_kill, lambda one: ids(one.step - 1, one.rank))
    found = figures(seen)
    assert (found.samples_skipped, found.samples_repeated) == (8, 8)


def test_the_same_samples_by_other_ranks_are_the_same_samples() -> None:
    seen = with_samples(killed(), after_the_kill, lambda one: ids(one.step, 3 - one.rank))
    found = figures(seen)
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (0, 0, True)


def test_the_same_samples_in_other_steps_are_another_run() -> None:
    """Steps 30 and 31 are swapped: nothing is skipped or repeated, but it is not the reference run."""
    other = {30: 31, 31: 30}
    seen = with_samples(killed(), lambda one: one.step in other, lambda one: ids(other[one.step], one.rank))
    found = figures(seen)
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (0, 0, False)


def test_a_run_cut_short_is_compared_as_far_as_it_came() -> None:
    seen = [one for one in killed() if one.at_s <= KILL_S + 1 / 8 + 5 * STEP_S]
    found = figures([*seen, RunEnded(60.0, "horizon")])
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (0, 0, False)


def test_without_a_reference_only_repetition_is_known() -> None:
    found = figures(killed(), PLAN, None)
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (None, 0, None)
    assert "reference" in found.unknown["samples_skipped"]
    assert "reference" in found.unknown["weights_equal"]


def test_a_program_that_records_no_samples_leaves_them_unknown() -> None:
    found = figures(with_samples(killed(), lambda _: True, lambda _: ()))
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (None, None, None)
    assert "no samples" in found.unknown["samples_repeated"]


def test_a_rank_that_died_before_it_could_record_a_step_leaves_it_unknown() -> None:
    """The others completed step 21 and go on with 22: rank 2 did its part or did not, nobody can tell."""
    in_flight = [step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1, 3)]
    found = figures([*killed(resume=22), *in_flight])
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (None, None, None)
    assert "rank 2 has no record of step 21" in found.unknown["samples_skipped"]


def test_a_rank_that_lived_on_and_recorded_no_step_did_none() -> None:
    found = figures(without(killed(), of_rank(1, step=30)))
    assert (found.samples_skipped, found.weights_equal) == (2, False)


def test_a_dead_rank_that_had_recorded_the_step_in_flight_did_it() -> None:
    in_flight = [step_done(21, 2, KILL_S - 1 / 256), *(step_done(21, rank, KILL_S + 1 / 64) for rank in (0, 1, 3))]
    found = figures([*killed(resume=22), *in_flight])
    assert (found.samples_skipped, found.samples_repeated, found.weights_equal) == (0, 0, True)


def test_a_smaller_world_that_executes_a_step_again_voids_the_missing_ranks_record() -> None:
    three = [
        step_done(step, rank, KILL_S + 1 + (step - 20) * STEP_S, generation=1, world=3)
        for step in (20, 21)
        for rank in range(3)
    ]
    found = figures([*never_back(), *three])
    # Step 20 is the last full-world step; rank 3's part of it went with the rollback.
    assert found.samples_skipped == 2


# ---------------------------------------------------------------------------------- weights_equal


def test_one_rank_with_other_weights() -> None:
    seen = [replace(one, digest="d2") if isinstance(one, WeightsDigest) and one.rank == 3 else one for one in killed()]
    assert figures(seen).weights_equal is False


def test_all_ranks_agree_on_other_weights() -> None:
    assert figures(killed(), PLAN, replace(REFERENCE, weights="d2")).weights_equal is False


def test_a_missing_digest_leaves_it_unknown_unless_another_differs() -> None:
    seen = without(killed(), lambda one: isinstance(one, WeightsDigest) and one.rank == 3)
    assert figures(seen).weights_equal is None
    assert "rank 3" in figures(seen).unknown["weights_equal"]
    differs = [replace(one, digest="d2") if isinstance(one, WeightsDigest) else one for one in seen]
    assert figures(differs).weights_equal is False


def test_a_digest_of_another_step_is_no_final_digest() -> None:
    early = WeightsDigest(3.0, NEW_WORLD[0], 0, 10, "d2")
    assert figures([*killed(), early]).weights_equal is True


def test_a_run_that_did_not_finish_has_not_the_same_weights() -> None:
    assert figures(never_back()).weights_equal is False


def test_a_reference_of_fewer_steps_cannot_be_compared() -> None:
    short = replace(REFERENCE, samples=REFERENCE.samples[:30])
    assert figures(killed(), PLAN, short).weights_equal is None


@pytest.mark.parametrize("resume", [21, 15])
def test_the_reference_ledger_may_be_in_any_order(resume: int) -> None:
    turned = replace(REFERENCE, samples=tuple(tuple(reversed(step)) for step in REFERENCE.samples))
    assert figures(killed(resume=resume), PLAN, turned).weights_equal is True
