"""report.md: the report for a pull request or a chat. Text of a run can start no markup in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.report import figures, formats
from harness.report.model import Report
from harness.report.views import environment_rows, fault_row, run_text

_SIGNS = {"PASS": "✅", "FAIL": "❌", "INCONCLUSIVE": "❔", "ERROR": "💥"}
# What starts markup anywhere in a line; what does so at its beginning only; and what makes a link of a bare address.
_MARKUP = re.compile(r"([\\`*_\[\]<>|~$&@]|^[#+\-=]|(?<=^www)\.|(?<=\swww)\.|:(?=//)|(?<=^\d)[.)])")


def escape(text: str, cap_chars: int = 600) -> str:
    """Return text of a run as one line that Markdown shows as it is: no link, no HTML, no mention, no table cell."""
    return _MARKUP.sub(r"\\\1", formats.line(text, cap_chars))


def code(text: str) -> str:
    """Return a fenced block of code whose fence the text does not hold."""
    shown = formats.visible(text, 4096)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


def render(report: Report) -> str:
    """Return the report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join(' --- ' for _ in head)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _lines(report: Report) -> Iterator[str]:
    about = report.about
    yield f"# {_SIGNS[report.verdict]} {report.verdict}: {escape(report.scenario)}"
    yield ""
    yield escape(report.headline)
    yield ""
    if report.reasons and report.reasons != [report.headline]:
        yield from (f"- {escape(reason)}" for reason in report.reasons)
        yield ""
    yield f"- **Claim**: {escape(about.claim)}"
    yield f"- **Why**: {escape(about.why)}"
    yield f"- **A pass certifies**: {escape(', '.join(about.certifies)) or 'nothing is named'}"
    yield f"- **It does not certify**: {escape(', '.join(about.not_)) or 'nothing is named'}"
    yield from (f"- **Backend**: {escape(text)}" for text in about.backend)
    yield (
        f"- **Run**: {escape(run_text(report))}; {formats.count(len(report.repeats), 'repeat')}, seed {report.seed}, "
        f"{formats.moment(report.started_at)}"
    )
    yield ""
    yield from _slos(report)
    yield from _figures(report)
    yield from _faults(report)
    yield "## Environment"
    yield ""
    yield from (f"- {name}: {escape(value)}" for name, value in environment_rows(report))
    yield ""
    yield "## Run it again"
    yield ""
    yield code(report.replay)


def _slos(report: Report) -> Iterator[str]:
    yield "## Service level objectives"
    yield ""
    if not report.slos:
        yield "No SLO was evaluated."
        yield ""
        return
    yield from _table(
        ("SLO", "Worst", "Median", "Limit", "Passed", "Verdict", "Reason"),
        (
            (
                f"`{slo.slo}`" if slo.slo.isidentifier() else escape(slo.slo),
                formats.figure(slo.slo, slo.worst),
                formats.figure(slo.slo, slo.median),
                escape(formats.limit(slo)),
                f"{slo.passed} of {slo.of}",
                f"{_SIGNS[slo.verdict]} {slo.verdict}",
                escape(slo.reason),
            )
            for slo in report.slos
        ),
    )


def _figures(report: Report) -> Iterator[str]:
    if not report.summary:
        return
    yield "## Figures"
    yield ""
    yield from _table(
        ("Figure", "n", "min", "p50", "p95", "max", "What it measures"),
        (
            (
                f"`{name}`",
                str(stats.n),
                *(formats.figure(name, value) for value in (stats.min, stats.p50, stats.p95, stats.max)),
                escape(figures.doc(name)),
            )
            for name, stats in report.summary.items()
        ),
    )


def _faults(report: Report) -> Iterator[str]:
    rows = [(repeat.number, fault_row(fault)) for repeat in report.repeats for fault in repeat.faults]
    yield "## Faults and their proofs"
    yield ""
    if not rows:
        yield "No fault was injected."
        yield ""
        return
    yield from _table(
        ("Repeat", "Fault", "Target", "Injected at", "Effect proven", "Healed", "Proof"),
        (
            (
                str(number),
                escape(f"{row.fault.id} {row.fault.kind}"),
                escape(row.fault.target),
                row.injected,
                row.effective,
                row.healed,
                escape(row.fault.proof),
            )
            for number, row in rows
        ),
    )
