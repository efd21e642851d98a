"""Names and meanings of figures: the judge's own table."""

from __future__ import annotations

from harness.judge.figures import FIGURES
from harness.report.model import Report


def names(report: Report) -> list[str]:
    """Return the figures of a report in the judge's order; those that it does not know come last."""
    known = dict.fromkeys(FIGURES)
    found = dict.fromkeys(name for repeat in report.repeats for name in repeat.figures)
    return [name for name in known if name in found] + [name for name in found if name not in known]


def doc(name: str) -> str:
    """Return what a figure measures."""
    spec = FIGURES.get(name)
    return "" if spec is None else spec.doc
