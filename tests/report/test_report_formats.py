from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.figures import FIGURES
from harness.report import formats


@pytest.mark.parametrize(
    ("value_s", "words"),
    [
        (0.0, "0 s"),
        (1e-9, "0 s"),
        (0.000_5, "0.5 ms"),
        (0.004, "4 ms"),
        (0.0312, "31.2 ms"),
        (0.1116, "112 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (1.402, "1.4 s"),
        (99.96, "100 s"),
        (599.9, "600 s"),
        (600, "10.0 min"),
        (math.inf, "never"),
        (math.nan, "undefined"),
        (-0.05, "-50 ms"),
    ],
)
def test_seconds(value_s: float, words: str) -> None:
    assert formats.seconds(value_s) == words


@given(st.floats(1e-5, 1e5))
def test_seconds_are_never_wrong_by_more_than_the_third_digit(value_s: float) -> None:
    number, unit = formats.seconds(value_s).split()
    factor = {"ms": 1e-3, "s": 1, "min": 60}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(value_s, rel=0.006, abs=6e-7)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("detect_s", 0.031, "31 ms"),
        ("detect_s", None, "n/a"),
        ("first_step_s", math.inf, "never"),
        ("lost_steps", 0, "0"),
        ("lost_steps", 1200.0, "1,200"),
        ("lost_steps", math.inf, "∞"),
        ("lost_steps", 0.5, "0.5"),
        ("goodput", 0.9342, "93.4 %"),
        ("goodput", 1.0, "100 %"),
        ("weights_equal", True, "yes"),
        ("weights_equal", 1.0, "yes"),
        ("weights_equal", 0.0, "no"),
        ("weights_equal", 0.9, "90 % equal"),
        ("weights", False, "no"),
    ],
)
def test_figures(name: str, value: float | None, words: str) -> None:
    assert formats.figure(name, value) == words


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_a_title_and_its_unit_is_known(name: str) -> None:
    assert formats.title(name)
    assert formats.is_seconds(name) == (FIGURES[name].unit == "s")
    assert formats.is_share(name) == (FIGURES[name].unit == "ratio")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ntext", "plain\ntext"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\u202eb", "a\\u202eb"),
        ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
    ],
)
def test_text_is_made_visible(raw: str, shown: str) -> None:
    assert formats.visible(raw) == shown


def test_huge_text_is_cut_and_says_so() -> None:
    assert formats.visible("x" * 5000, 10) == "xxxxxxxxxx… (4,990 more characters)"


@given(st.text(max_size=80), st.integers(1, 30))
def test_clipped_text_fits(raw: str, cells: int) -> None:
    clipped = formats.clip(raw, cells)
    assert formats.width_cells(clipped) <= cells
    assert "\n" not in clipped


def test_moments_read_well() -> None:
    assert formats.moment("2025-06-01T12:00:00+00:00") == "2025-06-01 12:00:00 UTC"
    assert formats.moment("2025-06-01T14:00:00+02:00") == "2025-06-01 12:00:00 UTC"
    assert formats.moment("<yesterday>") == "<yesterday>"
