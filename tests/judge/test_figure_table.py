"""The table of figures, the values and the document name the same figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.judge.figures import BADPUT_CAUSES, FIGURES, Figures, field_names
from tests.judge.drills import figures, killed

DOCUMENT = Path(__file__).parents[2] / "docs" / "figures.md"


def test_the_document_explains_exactly_the_figures_of_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(FIGURES)


def test_the_document_gives_units_other_than_seconds() -> None:
    units = dict(re.findall(r"^\| `(\w+)` \| (steps|samples|members|ratio) \|", DOCUMENT.read_text(), re.MULTILINE))
    assert units == {name: spec.unit for name, spec in FIGURES.items() if spec.unit not in ("s", "claims", "bool")}


def test_the_document_names_every_cause_of_badput() -> None:
    text = DOCUMENT.read_text()
    assert [cause for cause in BADPUT_CAUSES if f"`{cause}`" not in text] == []


def test_every_figure_has_a_value_and_no_other() -> None:
    assert field_names() == tuple(FIGURES)
    assert tuple(Figures().as_dict()) == tuple(FIGURES)
    assert tuple(figures(killed()).badput_s) == BADPUT_CAUSES


def test_times_end_in_their_unit() -> None:
    assert all(name.endswith("_s") == (spec.unit == "s") for name, spec in FIGURES.items())


def test_another_name_is_no_figure() -> None:
    with pytest.raises(KeyError, match="badput_s"):
        figures(killed()).value("badput_s")
