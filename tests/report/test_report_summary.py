"""Many repeats become one verdict, one line a figure, one line an SLO."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pytest

from harness.report.model import Check, Repeat, VerdictWord
from harness.report.summary import featured, figures, headline, merged, nearest_rank, reasons, slos
from tests.report.report_samples import Shape, repeat_of, report_of

BASE = repeat_of(Shape())


def repeat_with(
    number: int = 1, verdict: VerdictWord = "PASS", why: Sequence[str] = (), **values: float | None
) -> Repeat:
    return BASE.model_copy(update={"number": number, "verdict": verdict, "reasons": list(why), "figures": values})


def check_with(
    value: float | None, verdict: VerdictWord = "PASS", op: Literal["max", "min", "equal"] = "max", limit: float = 1.0
) -> Check:
    return Check(
        slo="detect_s", limit="max 1 s", value=value, verdict=verdict, reason=f"{value}", op=op, limit_value=limit
    )


def repeat_checked(check: Check) -> Repeat:
    return BASE.model_copy(update={"checks": [check]})


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ([], "INCONCLUSIVE"),
        (["PASS", "PASS"], "PASS"),
        (["PASS", "INCONCLUSIVE"], "INCONCLUSIVE"),
        (["INCONCLUSIVE", "FAIL"], "FAIL"),
        (["FAIL", "ERROR", "PASS"], "ERROR"),
    ],
)
def test_the_worst_verdict_is_the_reports(verdicts: list[VerdictWord], whole: str) -> None:
    assert merged(verdicts) == whole


def test_statistics_of_ten_repeats() -> None:
    found = figures([repeat_with(detect_s=value / 10) for value in range(1, 11)])["detect_s"]
    assert (found.n, found.min, found.p50, found.p95, found.max) == (10, 0.1, 0.55, 1.0, 1.0)


def test_figures_that_do_not_apply_are_left_out() -> None:
    found = figures([repeat_with(detect_s=0.1, swap_s=None), repeat_with(detect_s=None, swap_s=None)])
    assert found["detect_s"].n == 1
    assert "swap_s" not in found


def test_never_is_worse_than_any_number() -> None:
    found = figures([repeat_with(first_step_s=value) for value in (0.1, math.inf, 0.2)])["first_step_s"]
    assert (found.p50, found.p95, found.max) == (0.2, math.inf, math.inf)


def test_the_median_of_a_number_and_never_is_never() -> None:
    assert figures([repeat_with(pause_s=1.0), repeat_with(pause_s=math.inf)])["pause_s"].p50 == math.inf


def test_true_counts_one() -> None:
    found = figures([repeat_with(weights_equal=True), repeat_with(weights_equal=False)])["weights_equal"]
    assert (found.min, found.p50, found.max) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (2, 2), (19, 19), (20, 19), (21, 20), (59, 57), (100, 95)])
def test_p95_is_a_measured_value(n: int, rank: int) -> None:
    assert nearest_rank([float(value) for value in range(1, n + 1)], 0.95) == rank


def test_a_reason_that_many_repeats_share_is_said_once() -> None:
    given = [repeat_with(1, "FAIL", ["slow"]), repeat_with(2, "PASS"), repeat_with(3, "FAIL", ["slow", "lost"])]
    assert reasons(given) == ["repeats 1, 3: slow", "repeat 3: lost"]


def test_the_reasons_of_the_worst_repeats_come_first() -> None:
    given = [repeat_with(1, "INCONCLUSIVE", ["unsteady"]), repeat_with(2, "FAIL", ["slow"])]
    assert reasons(given) == ["repeat 2: slow", "repeat 1: unsteady"]


@pytest.mark.parametrize(
    ("checks", "worst"),
    [
        ([check_with(0.1), check_with(0.3), check_with(0.2)], 0.3),
        ([check_with(0.1), check_with(math.inf, "FAIL")], math.inf),
        ([check_with(0.9, op="min", limit=0.5), check_with(0.6, op="min", limit=0.5)], 0.6),
        ([check_with(4.0, op="equal", limit=4), check_with(7.0, "FAIL", op="equal", limit=4)], 7.0),
        ([check_with(None, "INCONCLUSIVE"), check_with(0.2)], 0.2),
        ([check_with(None, "INCONCLUSIVE")], None),
    ],
)
def test_the_worst_value_of_an_slo(checks: list[Check], worst: float | None) -> None:
    assert slos([repeat_checked(check) for check in checks])[0].worst == worst


def test_an_slo_counts_its_passes_and_gives_the_reason_of_its_worst_verdict() -> None:
    found = slos([repeat_checked(check_with(0.1)), repeat_checked(check_with(3.0, "FAIL"))])[0]
    assert (found.verdict, found.passed, found.of, found.reason, found.values) == ("FAIL", 1, 2, "3.0", [0.1, 3.0])


def test_failed_slos_come_first() -> None:
    verdicts = [slo.verdict for slo in report_of(Shape(redo=3, dead_s=1.5)).slos]
    assert verdicts == sorted(verdicts, key=["ERROR", "FAIL", "INCONCLUSIVE", "PASS"].index)
    assert verdicts[0] == "FAIL"


def test_the_drill_that_decided_is_drawn_else_the_slowest() -> None:
    given = [repeat_with(1, first_step_s=0.1), repeat_with(2, first_step_s=0.3), repeat_with(3, first_step_s=0.2)]
    assert featured(given) == 1
    assert featured([*given, repeat_with(4, "FAIL"), repeat_with(5, "INCONCLUSIVE")]) == 3
    assert featured([]) is None


def test_a_pass_is_told_as_what_happened() -> None:
    assert report_of(Shape()).headline == (
        "Kill rank 2: detected after 31 ms, replaced after 38 ms, the whole world stepped again after 112 ms, "
        "no step lost."
    )


def test_a_fail_names_what_was_missed() -> None:
    report = report_of(Shape(dead_s=1.5, redo=2))
    assert report.headline.startswith("3 of 9 SLOs missed: first step 1.5 s (limit ≤ 1 s), steps lost 2 (limit ≤ 0), ")


def test_anything_else_gives_its_first_reason() -> None:
    assert headline("INCONCLUSIVE", [], [], {}, ["no steady state", "more"]) == "no steady state"
    assert headline("ERROR", [], [], {}, []) == "No reason was recorded."
