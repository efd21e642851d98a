"""The self-test's broken stacks over a literal sound timeline, and that the self-test itself can fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.judge.outcome import Verdict
from harness.judge.plan import Limit
from harness.judge.verdict import judge
from harness.observe.timeline import Timeline
from harness.scenario import load
from harness.selftest.run import BROKEN, SOUND, BrokenStack, prove, prove_sound
from tests.judge import drills

WORKLOADS = Path(SOUND).parents[1] / "workloads"
LIMITS = tuple(
    Limit(slo, "max", value, "figure")
    for slo, value in (
        ("detect_s", 1.0),
        ("first_step_s", 5.0),
        ("lost_steps", 0),
        ("samples_skipped", 0),
        ("bystanders_restarted", 0),
        ("bystanders_rolled_back", 0),
    )
)
PLAN = drills.plan(limits=LIMITS, weights_equal=True)
SEEN = Timeline(drills.killed())
WRAPPED = [broken for broken in BROKEN if broken.wrap is not None]


def test_the_sound_timeline_passes() -> None:
    assert prove_sound(judge(SEEN, PLAN, drills.REFERENCE)).right


@pytest.mark.parametrize("broken", WRAPPED, ids=lambda broken: str(broken.name))
def test_each_broken_timeline_is_caught_for_the_right_reason(broken: BrokenStack) -> None:
    assert broken.wrap is not None
    proof = prove(broken, judge(broken.wrap(SEEN), PLAN, drills.REFERENCE))
    assert proof.right, proof


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: str(broken.name))
def test_a_broken_stack_that_passes_is_a_failure_of_the_self_test(broken: BrokenStack) -> None:
    assert not prove(broken, judge(SEEN, PLAN, drills.REFERENCE)).right


def test_a_sound_stack_that_fails_is_a_failure_of_the_self_test() -> None:
    assert not prove_sound(judge(Timeline(drills.never_back()), PLAN, drills.REFERENCE)).right


def test_the_right_verdict_for_the_wrong_reason_is_not_right() -> None:
    judgement = judge(Timeline(drills.never_back()), PLAN, drills.REFERENCE)
    assert judgement.verdict is Verdict.FAIL
    assert not prove(BrokenStack("alarms falsely", "false_alarms"), judgement).right


def test_every_live_way_to_be_broken_is_one_that_the_program_knows() -> None:
    known = re.search(r"WAYS = \(([^)]*)\)", (WORKLOADS / "gpt_broken.py").read_text())
    assert known is not None
    for broken in BROKEN:
        assert broken.way is None or f'"{broken.way}"' in known.group(1)


def test_the_sound_scenario_binds_every_check_that_a_broken_stack_must_fail() -> None:
    scenario = load(SOUND)
    bound = {limit.slo for limit in scenario.slo.limits} | {"weights"}
    assert scenario.slo.weights_equal
    assert {broken.check for broken in BROKEN if broken.check is not None} <= bound
