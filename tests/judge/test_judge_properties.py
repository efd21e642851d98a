"""What holds for every timeline, tried on drills that hypothesis makes up."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.judge.figures import FIGURES
from harness.judge.outcome import Verdict
from harness.judge.plan import Plan
from harness.observe.observation import Claim, Observation, ProcessExited, RankHeld, StateLoaded, StepDone
from harness.observe.timeline import Timeline
from tests.judge import drills
from tests.judge.drills import (
    CONTROL,
    STEPS,
    claim,
    control_run,
    figures,
    judged,
    killed,
    limit,
    member,
    never_back,
    plan,
    ridden_out,
    without,
)

Drill = tuple[list[Observation], Plan]

# Multiples of 1/256 keep all sums exact, so that figures can be compared bit by bit.
FRACTIONS = st.integers(1, 512).map(lambda number: number / 256)
QUIET = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fault_drills() -> st.SearchStrategy[Drill]:
    kills = st.builds(
        lambda resume, pause_s, step: (killed(resume=resume, pause_s=pause_s, step_s=step / 256), plan()),
        st.integers(1, 38),
        FRACTIONS,
        st.integers(8, 32),
    )
    waits = st.builds(
        lambda pause_s, transient: ridden_out(stopped_s=pause_s, transient=transient), FRACTIONS, st.booleans()
    )
    return kills | waits | st.just((never_back(), plan()))


@st.composite
def any_drills(draw: st.DrawFn) -> Drill:
    """A drill with some noise: claims, exits, lost records, slow steps, an early end."""
    seen, asked = draw(fault_drills() | st.just((control_run(), CONTROL)))
    at_s = st.integers(0, 2560).map(lambda number: number / 256)
    seen += draw(st.lists(st.builds(claim, at_s, st.integers(0, 3), confirmed=st.booleans()), max_size=3))
    seen += draw(
        st.lists(st.builds(ProcessExited, at_s, st.integers(0, 5).map(member), st.just(0), st.none()), max_size=2)
    )
    rank, step = draw(st.tuples(st.integers(0, 5), st.integers(1, STEPS)))
    seen = without(seen, lambda one: isinstance(one, StepDone) and one.rank == rank and one.step >= step)
    slow, more_s = draw(st.tuples(st.integers(1, STEPS), FRACTIONS))
    return [
        replace(one, at_s=one.at_s + more_s) if isinstance(one, StepDone) and one.step >= slow else one for one in seen
    ], asked


def moved(seen: Observation, by_s: float) -> Observation:
    """The same observation on a clock that started earlier."""
    times = [item.name for item in fields(seen) if item.name in {"at_s", "said_s", "started_s"}]
    values = {name: getattr(seen, name) for name in times}
    return replace(seen, **{name: at + by_s for name, at in values.items() if at is not None})


@QUIET
@given(any_drills(), st.sampled_from([1024.0, -8.0, 0.5]))
def test_the_zero_of_the_clock_does_not_matter(drill: Drill, by_s: float) -> None:
    seen, asked = drill
    here, there = figures(seen, asked), figures([moved(one, by_s) for one in seen], asked)
    assert here.as_dict() == there.as_dict()
    assert judged(seen, asked).verdict is judged([moved(one, by_s) for one in seen], asked).verdict


@QUIET
@given(any_drills())
def test_no_figure_is_negative_or_undefined(drill: Drill) -> None:
    found = figures(*drill)
    for name, value in found.as_dict().items():
        assert value is None or (not math.isnan(value) and value >= 0), (name, value)
    assert all(value >= 0 for value in found.badput_s.values())


@QUIET
@given(any_drills(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(drill: Drill, random: Any) -> None:
    """Records of equal time come in any order; so do all, since a timeline sorts them."""
    seen, asked = drill
    mixed = list(seen)
    random.shuffle(mixed)
    assert figures(mixed, asked).as_dict() == figures(seen, asked).as_dict()


@QUIET
@given(any_drills(), st.permutations([0, 1, 3]))
def test_the_names_of_the_bystanders_do_not_matter(drill: Drill, order: list[int]) -> None:
    """Healthy ranks exchange their numbers, samples and weights in hand; nothing was about them in particular."""
    seen, asked = drill
    new = dict(zip([0, 1, 3], order, strict=True))

    def renamed(one: Observation) -> Observation:
        if isinstance(one, StepDone | RankHeld | StateLoaded) and one.rank in new:
            return replace(one, rank=new[one.rank])
        return one

    quiet = without(seen, ProcessExited, Claim)
    names = [name for name in FIGURES if name not in {"bystanders_restarted", "false_alarms", "wrong_blame"}]
    here, there = figures(quiet, asked), figures([renamed(one) for one in quiet], asked)
    assert [here.value(name) for name in names] == [there.value(name) for name in names]


@QUIET
@given(any_drills())
def test_a_suspicion_comes_no_later_than_a_detection(drill: Drill) -> None:
    found = figures(*drill)
    if found.detect_s is not None:
        assert found.suspect_s is not None
        assert found.suspect_s <= found.detect_s


@QUIET
@given(fault_drills())
def test_stages_come_in_their_order(drill: Drill) -> None:
    found = figures(*drill)
    assert found.first_step_s is not None
    if found.recover_s is not None:
        assert found.first_step_s <= found.recover_s
    if found.caught_up_s is not None:
        assert found.first_step_s <= found.caught_up_s


@QUIET
@given(fault_drills())
def test_what_is_lost_is_what_was_repeated(drill: Drill) -> None:
    seen, asked = drill
    found = figures(seen, asked)
    records = [one for one in seen if isinstance(one, StepDone) and one.rank == 0]
    repeated = len(records) - len({one.step for one in records})
    assert found.lost_steps == (math.inf if found.first_step_s == math.inf else repeated)


@QUIET
@given(any_drills(), st.floats(0, 10))
def test_a_looser_limit_never_turns_a_pass_into_a_fail(drill: Drill, value: float) -> None:
    seen, asked = drill
    tight = judged(seen, replace(asked, limits=(limit("pause_s", "max", value),)))
    loose = judged(seen, replace(asked, limits=(limit("pause_s", "max", value + 1),)))
    if tight.verdict is Verdict.PASS:
        assert loose.verdict is Verdict.PASS


@QUIET
@given(any_drills())
def test_a_dirty_host_is_always_an_error(drill: Drill) -> None:
    assert judged(*drill, None, ("a process",)).exit_code == 3


@QUIET
@given(st.lists(st.sampled_from(list(killed()) + list(control_run())), max_size=60))
def test_any_heap_of_records_gets_a_verdict(seen: list[Observation]) -> None:
    judgement = judged(seen, plan(limits=(limit("recover_s", "max", 1),), weights_equal=True))
    assert judgement.exit_code == judgement.verdict.exit_code
    assert not any("crashed" in reason for reason in judgement.reasons)


def test_timelines_are_grouped_by_type_in_order_of_time() -> None:
    timeline = Timeline(reversed(killed()))
    assert len(timeline) == len(killed())
    steps = timeline.of(StepDone)
    assert len(steps) == STEPS * drills.WORLD
    assert [one.at_s for one in steps] == sorted(one.at_s for one in steps)
    assert timeline.first(StepDone) == steps[0]
    assert Timeline([]).first(StepDone) is None
    assert [one.at_s for one in timeline] == sorted(one.at_s for one in killed())
