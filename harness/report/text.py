"""The summary for a terminal: verdict, figures, faults, a small drawn timeline, and where the report lies."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.judge.figures import Value
from harness.report import formats
from harness.report.draw import cells
from harness.report.model import Repeat, Report
from harness.report.views import fault_row

PLAIN_WIDTH = 100
WIDEST = 140
REASONS_SHOWN = 5
_STYLES = {"PASS": "bold green", "FAIL": "bold red", "INCONCLUSIVE": "bold yellow", "ERROR": "bold magenta"}
_GENERATION_STYLES = ("blue", "cyan", "magenta", "yellow", "green", "white")
# For terminals whose encoding knows no more.
_ASCII = str.maketrans(
    {
        "≤": "<=",
        "≥": ">=",
        "∞": "inf",
        "█": "#",
        "▓": "=",
        "·": ".",
        "✕": "x",
        "×": "x",
        "…": "...",
        "→": "->",
        "–": "-",
        "−": "-",
    }
)


def as_text(report: Report, folder: Path | None) -> str:
    """Return the summary as plain text, the same everywhere."""
    stream = io.StringIO()
    console = Console(file=stream, width=PLAIN_WIDTH, force_terminal=False, color_system=None, legacy_windows=False)
    _print(console, report, folder)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def print_summary(report: Report, folder: Path | None, stream: TextIO) -> None:
    """Print the summary: in colour on a terminal, plain elsewhere, in ASCII where the stream can hold nothing else."""
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
    if not encoding.startswith("utf"):
        text = as_text(report, folder).translate(_ASCII)
        print(text.encode("ascii", "replace").decode("ascii"), file=stream, flush=True)
    elif not stream.isatty():
        print(as_text(report, folder), file=stream, flush=True)
    else:
        console = Console(file=stream, highlight=False)
        console.width = min(console.width, WIDEST)
        _print(console, report, folder)


def _print(console: Console, report: Report, folder: Path | None) -> None:
    for part in _parts(report, folder, console.width):
        # Paths and commands are for copying: they are never broken by us.
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, Text))


def _parts(report: Report, folder: Path | None, width: int) -> Iterator[RenderableType]:
    yield Text.assemble((report.verdict, _STYLES[report.verdict]), f"  {formats.line(report.scenario)}")
    yield Padding(Text(formats.line(report.headline, 400)), (0, 0, 0, 2))
    if report.verdict != "PASS":
        reasons = _reasons(report)
        for reason in reasons[:REASONS_SHOWN]:
            yield Padding(Text(f"· {formats.visible(reason, 1500)}"), (0, 0, 0, 2))
        if len(reasons) > REASONS_SHOWN:
            yield Text(f"  … and {formats.count(len(reasons) - REASONS_SHOWN, 'more reason')}")
    yield Text()
    if report.slos:
        yield _slo_table(report)
    others = _other_figures(report)
    if others:
        yield Padding(Text(others), (0, 0, 0, 2))
    if report.featured is not None:
        yield from _drill(report.repeats[report.featured], width, many=len(report.repeats) > 1)
    yield Text()
    for backend in report.about.backend:
        yield Text(f"backend: {formats.line(backend)}")
    if folder is not None:
        yield Text(f"report:  {formats.line(str(folder / 'report.html'), 4096)}")
    yield Text(f"again:   {formats.line(report.replay, 4096)}")


def _reasons(report: Report) -> list[str]:
    """Return the reasons that neither the headline nor the table of SLOs says."""
    said = [slo.reason for slo in report.slos if slo.reason]
    return [
        reason for reason in report.reasons if reason != report.headline and not any(text in reason for text in said)
    ]


def _slo_table(report: Report) -> Table:
    many = len(report.repeats) > 1
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("  SLO", no_wrap=True)
    table.add_column("worst" if many else "value", justify="right", no_wrap=True)
    if many:
        table.add_column("median", justify="right", no_wrap=True)
        table.add_column("passed", justify="right", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("")
    for slo in report.slos:
        reason = "" if slo.verdict == "PASS" else formats.line(slo.reason)
        extra = [formats.figure(slo.slo, slo.median), f"{slo.passed} of {slo.of}"] if many else []
        table.add_row(
            Text(f"  {formats.clip(slo.slo, 30)}"),
            Text(formats.figure(slo.slo, slo.worst)),
            *(Text(value) for value in extra),
            Text(formats.limit(slo)),
            Text(slo.verdict, style=_STYLES[slo.verdict]),
            Text(reason),
        )
    return table


def _other_figures(report: Report) -> str:
    bound = {slo.slo for slo in report.slos}
    if "weights" in bound:
        bound.add("weights_equal")
    shown = [f"{name} {formats.figure(name, _plain(report, name))}" for name in report.summary if name not in bound]
    if not shown:
        return ""
    return f"{'also (medians)' if len(report.repeats) > 1 else 'also'}: {', '.join(shown)}"


def _plain(report: Report, name: str) -> Value:
    return report.repeats[0].figures.get(name) if len(report.repeats) == 1 else report.summary[name].p50


def _drill(repeat: Repeat, width: int, *, many: bool) -> Iterator[RenderableType]:
    if many:
        yield Text(f"\nrepeat {repeat.number}:")
    for fault in repeat.faults:
        row = fault_row(fault)
        healed = "" if fault.healed_at_s is None else f", healed {row.healed}"
        yield Text(
            f"  {formats.line(fault.id)} {formats.line(fault.kind)} {formats.line(fault.target)}: injected at "
            f"{row.injected}, effect {row.effective}{healed}; {formats.line(fault.proof)}"
        )
    drawn = cells.lay_out(repeat.timeline, width - 12)
    if drawn is None:
        return
    yield Text()
    for line in drawn.marks:
        yield Text(f"{'':10}{line}")
    for cell_row in drawn.rows:
        text = Text(f"  {cell_row.label:<8}")
        for cell, generation in zip(cell_row.cells, cell_row.generations, strict=True):
            style = _GENERATION_STYLES[generation % len(_GENERATION_STYLES)] if generation >= 0 else "dim"
            text.append(cell, style="red" if cell == cells.END else style)
        yield text
    if drawn.more:
        yield Text(f"  {drawn.more}")
    yield Padding(Text(" · ".join([*drawn.legend, f"one cell = {drawn.cell_text}"])), (0, 0, 0, 10))
