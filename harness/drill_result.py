"""A finished drill as tests see it, read from its report."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import store
from harness.errors import HarnessError
from harness.report.formats import figure, title
from harness.report.model import Check, Summary
from harness.terminal import visible

_WORDS = {0: "PASS", 1: "FAIL", 2: "INCONCLUSIVE", 3: "ERROR", 4: "USAGE"}
# The words of harness/run.py.
_INTERRUPTED = "interrupted by SIG"
_REPORT = "report.json"
_PAGE = "report.html"


class DrillNotPassed(AssertionError):
    """The verdict is not PASS; the message holds its word, the checks that did not pass and the report's path."""


@dataclass(frozen=True, slots=True)
class DrillResult:
    """Verdict and figures of one drill. `folder` holds the report in every format, `report` is its report.json."""

    folder: Path
    exit_code: int
    report: Mapping[str, Any]
    checks: tuple[tuple[int, Check], ...]
    summary: Mapping[str, Summary]

    @property
    def verdict(self) -> str:
        """PASS, FAIL, INCONCLUSIVE or ERROR."""
        return str(self.report["verdict"])

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended the drill."""
        return any(str(reason).startswith(_INTERRUPTED) for reason in self.report["reasons"])

    @property
    def figures(self) -> Mapping[str, float]:
        """The median of each figure over the repeats; figures that do not apply are left out."""
        return {name: summary.p50 for name, summary in self.summary.items()}

    def properties(self) -> Iterator[tuple[str, object]]:
        """Yield what goes into JUnit: verdict, report, and each figure's median and largest value."""
        yield "verdict", self.verdict
        yield "seed", self.report["seed"]
        yield "report", str(self.folder / _REPORT)
        for name, summary in self.summary.items():
            yield name, summary.p50
            if summary.n > 1:
                yield f"{name}.max", summary.max

    def require_pass(self) -> None:
        """Raise DrillNotPassed unless the verdict is PASS."""
        if self.exit_code != 0 or self.verdict != "PASS":
            raise DrillNotPassed("\n".join(visible(line) for line in self._lines()))

    def _lines(self) -> Iterator[str]:
        word = self.verdict if self.verdict != "PASS" else _WORDS.get(self.exit_code, "ERROR")
        yield f"{word}: {self.report['headline']}"
        yield from (f"  because: {reason}" for reason in self.report["reasons"])
        for number, check in self.checks:
            if check.verdict != "PASS":
                yield f"  repeat {number}: {_check_line(check)}"
        yield f"  report: {self.folder / _PAGE}"
        yield f"  again:  {self.report['replay']}"


def _check_line(check: Check) -> str:
    measured = figure(check.slo, check.value)
    return f"{check.verdict} {check.slo} ({title(check.slo)}): limit {check.limit}, measured {measured}; {check.reason}"


def read_result(folder: Path, exit_code: int) -> DrillResult:
    """Read the report in `folder`. Raises HarnessError when there is none."""
    path = folder / _REPORT
    try:
        report = json.loads(path.read_bytes())
        checks = tuple(
            (int(repeat["number"]), Check.model_validate(check))
            for repeat in report["repeats"]
            for check in repeat["checks"]
        )
        summary = {name: Summary.model_validate(values) for name, values in report["summary"].items()}
    except FileNotFoundError:
        word = _WORDS.get(exit_code, "ERROR")
        raise HarnessError(
            f"{word}: the drill ended with exit code {exit_code} and wrote no report to {folder}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(f"{path} is no report of ours: {type(error).__name__}: {error}") from None
    return DrillResult(folder, exit_code, report, checks, summary)


def new_folder(base: Path, scenario: str) -> Path:
    """Return a new folder `base/scenario/<UTC time>` for a report. Raises StoreError."""
    return store.create(base, scenario, dt.datetime.now(tz=dt.UTC)).path
