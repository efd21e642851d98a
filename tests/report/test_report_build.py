"""Judgement and timeline become a report: every moment and every number that renderers show."""

from __future__ import annotations

import math

import pytest

from harness.judge.figures import FIGURES
from harness.judge.verdict import judge
from harness.observe.observation import (
    FaultInjected,
    MemberId,
    ObserverLost,
    ProcessExited,
    RunEnded,
    RunStarted,
    StepDone,
    WorkloadRaised,
)
from harness.observe.timeline import Timeline
from harness.report.build import build_repeat, build_report
from harness.report.model import Report
from harness.report.series import Roll, holds, loss_curves, tracks
from tests.report.report_samples import (
    START_S,
    Shape,
    drill,
    facts_of,
    plan_of,
    repeat_of,
    report_of,
)

A, B = MemberId("n0", 11, 1), MemberId("n1", 12, 1)


def step_at(at_s: float, number: int, member: MemberId = A, rank: int = 0, **more: float | None) -> StepDone:
    started_s, loss = more.get("started_s"), more.get("loss")
    return StepDone(at_s, started_s, member, rank, 1, 0, number, (), loss)


def test_a_killed_rank_is_told_moment_by_moment() -> None:
    drawing = repeat_of(Shape()).timeline
    fault_s = drawing.marks[0].at_s
    assert [(mark.kind, mark.after_s) for mark in drawing.marks[:5]] == [
        ("injected", 0.0),
        ("effective", pytest.approx(0.004, abs=1e-5)),
        ("detected", pytest.approx(0.031, abs=1e-5)),
        ("swapped", pytest.approx(0.038, abs=1e-5)),
        ("restored", pytest.approx(0.062, abs=1e-5)),
    ]
    assert [mark.kind for mark in drawing.marks[5:]] == ["first_step", "recovered"]
    assert [(span.from_s, span.ends) for span in drawing.dead] == [(fault_s, True)]
    assert drawing.dead[0].to_s == drawing.marks[5].at_s
    assert drawing.affected == [2]


def test_the_zoom_holds_some_steps_before_and_after() -> None:
    drawing = repeat_of(Shape()).timeline
    assert drawing.zoom is not None
    inside = [step.step for step in drawing.world_steps if drawing.zoom.from_s <= step.at_s <= drawing.zoom.to_s]
    assert inside == list(range(15, 30))


def test_a_run_that_never_steps_again_is_zoomed_to_the_fault_not_to_the_horizon() -> None:
    repeat = repeat_of(Shape(dead_s=None))
    drawing = repeat.timeline
    assert drawing.zoom is not None
    assert drawing.dead[0].ends is False
    assert drawing.dead[0].to_s == pytest.approx(drawing.end_s)
    assert drawing.zoom.to_s - drawing.zoom.from_s < 3
    assert repeat.figures["first_step_s"] == math.inf
    assert {mark.kind for mark in drawing.marks} == {"injected", "effective", "detected"}


def test_each_of_two_faults_has_its_own_marks() -> None:
    drawing = repeat_of(Shape(second_kill=(26, 0), spares=2)).timeline
    assert [mark.text for mark in drawing.marks if mark.kind == "injected"] == ["kill rank 2", "kill rank 0"]
    assert [mark.after_s for mark in drawing.marks if mark.kind == "detected"] == [
        pytest.approx(0.031, abs=1e-5),
        pytest.approx(0.031, abs=1e-5),
    ]
    assert len(drawing.dead) == 2
    assert drawing.affected == [0, 2]


def test_a_stopped_rank_has_a_heal() -> None:
    repeat = repeat_of(Shape(stop_instead=True, detect_s=0.1, swap_s=0.12, restore_s=0.15, dead_s=0.3))
    assert [mark.text for mark in repeat.timeline.marks if mark.kind == "healed"] == ["stop rank 2 healed"]
    assert repeat.faults[0].healed_at_s is not None


def test_without_a_fault_there_is_nothing_to_enlarge() -> None:
    drawing = repeat_of(Shape(kill_rank=None)).timeline
    assert (drawing.zoom, drawing.marks, drawing.dead, drawing.affected) == (None, [], [], [])


def test_the_figures_are_the_judges_in_its_order() -> None:
    assert list(repeat_of(Shape()).figures) == list(FIGURES)


def test_times_are_seconds_since_the_start() -> None:
    repeat = repeat_of(Shape())
    injected = drill(Shape()).of(FaultInjected)[0]
    assert repeat.faults[0].injected_at_s == pytest.approx(injected.at_s - START_S, abs=1e-6)
    assert repeat.faults[0].effective_after_s == pytest.approx(0.004)
    assert all(0 <= mark.at_s <= repeat.duration_s for mark in repeat.timeline.marks)


def test_a_limit_in_steps_is_given_in_seconds() -> None:
    repeat = repeat_of(Shape())
    check = next(check for check in repeat.checks if check.slo == "recover_s")
    assert repeat.steady is not None
    assert check.limit == "max 45 steps"
    assert check.limit_value == pytest.approx(45 * repeat.steady.median_s, rel=1e-4)


def test_steps_done_again_are_marked() -> None:
    drawing = repeat_of(Shape(redo=3)).timeline
    again = [step for step, redone in zip(drawing.tracks[0].step, drawing.tracks[0].redone, strict=True) if redone]
    assert again == [18, 19, 20]


def test_the_members_say_who_held_what_and_how_they_ended() -> None:
    drawing = repeat_of(Shape()).timeline
    held = {(drawing.members[hold.member].name, hold.rank) for hold in drawing.holds}
    assert {("n1/4102", 2), ("n2/5200", 2)} <= held
    ends = {member.name: (member.exit, member.clean) for member in drawing.members}
    assert ends["n1/4102"] == ("signal 9", False)
    assert ends["n0/4100"] == ("exit code 0", True)
    assert ends["n2/5300"] == ("", False)


def test_a_hold_ends_with_its_member() -> None:
    timeline = Timeline(
        [step_at(1.0, 1), ProcessExited(1.5, A, None, 9), step_at(3.0, 2, B), RunEnded(4.0, "finished")]
    )
    assert [(hold.member, hold.from_s, hold.to_s) for hold in holds(timeline, Roll(timeline))] == [
        (0, 0.0, 0.5),
        (1, 2.0, 3.0),
    ]


def test_a_step_without_a_start_begins_where_the_one_before_ended() -> None:
    timeline = Timeline([RunStarted(0.0), step_at(1.0, 1), step_at(2.0, 2), step_at(4.0, 3, started_s=3.5)])
    track = tracks(timeline, Roll(timeline))[0]
    assert (track.start_s, track.end_s) == ([1.0, 1.0, 3.5], [1.0, 2.0, 4.0])


def test_losses_are_means_of_the_whole_world_and_do_not_depend_on_order() -> None:
    losses = (0.1, 0.2, 0.3)
    members = [MemberId("n0", rank, 1) for rank in range(3)]
    for order in ((0, 1, 2), (2, 1, 0)):
        seen = [StepDone(1.0 + at, None, members[r], r, 3, 0, 1, (), losses[r]) for at, r in enumerate(order)]
        curve = loss_curves(
            Timeline([*seen, StepDone(9, None, members[0], 0, 3, 0, 2, (), 9.0)]), (math.fsum(losses) / 3,)
        )
        assert curve.run == [pytest.approx(0.2, abs=1e-15), None]
        assert curve.max_difference == 0


def test_losses_that_are_not_finite_survive_json() -> None:
    curve = loss_curves(Timeline([step_at(1.0, 1, loss=math.nan), step_at(2.0, 2, loss=math.inf)]), ())
    assert '"run":["nan","inf"]' in curve.model_dump_json()


def test_the_workloads_own_traceback_is_a_reason() -> None:
    raised = WorkloadRaised(
        START_S + 5.2, MemberId("n0", 4100, 100), 0, 3, "ValueError: bad", "Traceback …\nValueError: bad\n"
    )
    repeat = repeat_of(Shape(), more=[raised])
    assert repeat.verdict == "INCONCLUSIVE"
    assert repeat.reasons[-1] == "Traceback …\nValueError: bad"


def test_a_judge_that_crashed_still_gives_a_report() -> None:
    stranger = FaultInjected(START_S + 6, "f9", "kill", "rank 1", (1,), (), ())
    repeat = repeat_of(Shape(kill_rank=None), more=[stranger])
    assert repeat.verdict == "ERROR"
    assert any("the judge crashed" in reason for reason in repeat.reasons)
    assert repeat.timeline.tracks
    assert repeat.timeline.marks == []


def test_an_empty_timeline_gives_a_report() -> None:
    plan = plan_of(Shape(kill_rank=None))
    empty = Timeline([])
    judgement = judge(empty, plan, None)
    repeat = build_repeat(number=1, seed=0, timeline=empty, plan=plan, reference=None, judgement=judgement)
    report = build_report(facts_of(Shape()), [repeat])
    assert report.verdict == "INCONCLUSIVE"
    assert report.repeats[0].timeline.tracks == []


def test_an_error_of_ours_decides_the_verdict_whatever_the_repeats_say() -> None:
    report = report_of(Shape(), error="the port 29500 is in use")
    assert (report.verdict, report.exit_code) == ("ERROR", 3)
    assert report.reasons[0] == report.headline == "the port 29500 is in use"


def test_a_report_without_repeats_says_so() -> None:
    report = build_report(facts_of(Shape()), [])
    assert (report.verdict, report.reasons, report.featured) == ("INCONCLUSIVE", ["nothing was run"], None)


def test_json_and_back_is_the_same_report() -> None:
    report = report_of(Shape(dead_s=None), Shape(seed=2))
    text = report.to_json()
    assert Report.model_validate_json(text) == report
    assert '"first_step_s": "inf"' in text
    assert '"not": [' in text
    assert "Infinity" not in text
    assert "NaN" not in text


def test_a_report_of_a_later_version_with_more_keys_is_read() -> None:
    text = report_of(Shape()).to_json().replace('"schema_version": 1,', '"schema_version": 1, "new": {"a": 1},', 1)
    assert Report.model_validate_json(text).verdict == "PASS"


def test_huge_and_unwritable_text_is_capped_and_encodable() -> None:
    report = report_of(Shape(), more=[ObserverLost(START_S + 8, "x" * 1_000_000 + "\udc80")])
    text = report.to_json()
    text.encode()
    assert len(text) < 600_000
    assert "more characters)" in text
