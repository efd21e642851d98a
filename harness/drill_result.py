"""A finished drill as tests see it, read from its report."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError
from harness.report.formats import figure, title
from harness.report.model import Check, Report

_WORDS = {0: "PASS", 1: "FAIL", 2: "INCONCLUSIVE", 3: "ERROR", 4: "USAGE"}
_REPORT = "report.json"
_PAGE = "report.html"


class DrillNotPassed(AssertionError):
    """The verdict is not PASS; the message holds its word, the checks that did not pass and the report's path."""


@dataclass(frozen=True, slots=True)
class DrillResult:
    """Verdict and figures of one drill. `folder` holds the report in every format."""

    folder: Path
    exit_code: int
    report: Report

    @property
    def verdict(self) -> str:
        """PASS, FAIL, INCONCLUSIVE or ERROR."""
        return self.report.verdict

    @property
    def figures(self) -> Mapping[str, float]:
        """The median of each figure over the repeats; figures that do not apply are left out."""
        return {name: summary.p50 for name, summary in self.report.summary.items()}

    def properties(self) -> Iterator[tuple[str, object]]:
        """Yield what goes into JUnit: verdict, report, and each figure's median and largest value."""
        yield "verdict", self.verdict
        yield "seed", self.report.seed
        yield "report", str(self.folder / _REPORT)
        for name, summary in self.report.summary.items():
            yield name, summary.p50
            if summary.n > 1:
                yield f"{name}.max", summary.max

    def require_pass(self) -> None:
        """Raise DrillNotPassed unless the verdict is PASS."""
        if self.exit_code != 0 or self.verdict != "PASS":
            raise DrillNotPassed("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        word = self.verdict if self.verdict != "PASS" else _WORDS.get(self.exit_code, "ERROR")
        yield f"{word}: {self.report.headline}"
        yield from (f"  because: {reason}" for reason in self.report.reasons)
        for repeat in self.report.repeats:
            for check in repeat.checks:
                if check.verdict != "PASS":
                    yield f"  repeat {repeat.number}: {_check_line(check)}"
        yield f"  report: {self.folder / _PAGE}"
        yield f"  again:  {self.report.replay}"


def _check_line(check: Check) -> str:
    measured = figure(check.slo, check.value)
    return f"{check.verdict} {check.slo} ({title(check.slo)}): limit {check.limit}, measured {measured}; {check.reason}"


def read_result(folder: Path, exit_code: int) -> DrillResult:
    """Read the report in `folder`. Raises HarnessError when there is none."""
    path = folder / _REPORT
    try:
        report = Report.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        word = _WORDS.get(exit_code, "ERROR")
        raise HarnessError(
            f"{word}: the drill ended with exit code {exit_code} and wrote no report to {folder}"
        ) from None
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path} cannot be read: {error}") from None
    return DrillResult(folder, exit_code, report)


def new_folder(base: Path, name: str) -> Path:
    """Return a new folder `base/name/<UTC time>` for a report; it exists afterwards. Raises HarnessError."""
    stamp = dt.datetime.now(tz=dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        for number in itertools.count(1):
            folder = base / name / (stamp if number == 1 else f"{stamp}-{number}")
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise HarnessError(f"no folder for the report can be made in {base}: {error.strerror}") from None
    raise AssertionError
