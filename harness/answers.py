"""Results of commands as text on a terminal, and the exit code that goes with them.

Text that comes from files, runs or errors is made harmless before it is printed. On a terminal, tables are drawn with
rich; elsewhere every line is plain, so that it can be searched.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DirtyHostError, ScenarioError, UsageError
from harness.terminal import visible
from harness.words import nearest, one_of

if TYPE_CHECKING:
    from chaos.leftovers import HealReport
    from harness.doctor import Finding
    from harness.scenario import Scenario

PASS, FAIL, INCONCLUSIVE, ERROR, USAGE = range(5)

Bench = Callable[[bool, Path | None], int]
Row = tuple[str, ...]


def say(text: str) -> None:
    """Print text; newlines stay, everything else that acts on a terminal is written as an escape."""
    print(visible(text, keep_newlines=True))


def complain(text: str) -> None:
    """Print an error or a warning on stderr."""
    print(visible(text, keep_newlines=True), file=sys.stderr, flush=True)


def check(files: Sequence[Path], further: Callable[[Scenario], object] = lambda _scenario: None) -> int:
    """Print what is wrong with each file; return 4 if any is refused. `further` may refuse by raising UsageError."""
    from harness.scenario import load

    code = PASS
    for path in files:
        try:
            scenario = load(path)
            further(scenario)
        except UsageError as error:
            complain(str(error))
            code = USAGE
            continue
        for warning in scenario.warnings():
            complain(warning)
        say(f"{path}: ok: {scenario.scenario}, {scenario.describe()}")
    return code


def list_scenarios(paths: Sequence[Path], folder: Path) -> int:
    """Print name, claim and tags of each scenario."""
    from harness.scenario import load

    if not paths:
        raise UsageError(f"no scenarios are installed at {folder}; name scenario files of your own instead")
    rows: list[Row] = []
    for path in paths:
        try:
            scenario = load(path)
        except ScenarioError as error:
            rows.append((path.stem, f"cannot be used: {error}", ""))
        else:
            rows.append((scenario.scenario, scenario.claim, " ".join(scenario.tags)))
    print_table(("scenario", "claim", "tags"), rows)
    say(f"They are in {folder}; run one with: rankdrill run {shlex.quote(str(paths[0]))}")
    return PASS


def tell_findings(findings: Sequence[Finding]) -> int:
    """Print one line a capability; return 4 if something is missing that every drill needs."""
    rows = [
        (finding.name, "ok" if finding.ok else "missing", finding.detail, finding.needed_for + _required(finding))
        for finding in findings
    ]
    print_table(("capability", "state", "seen", "needed for"), rows)
    lacking = [finding.name for finding in findings if finding.required and not finding.ok]
    if lacking:
        complain(f"No drill can run here: {', '.join(lacking)} missing.")
        return USAGE
    say("Drills can run here.")
    return PASS


def _required(finding: Finding) -> str:
    return " (always)" if finding.required else ""


def tell_healed(reports: Sequence[HealReport]) -> int:
    """Print what was undone of each dead drill. Raises DirtyHostError if something could not be."""
    for report in reports:
        for text in report.healed:
            say(f"healed: {text} (run {report.run_id})")
        for text in report.failed:
            say(f"NOT healed: {text} (run {report.run_id}, {report.path})")
        if report.clean:
            say(f"clean: nothing is left of run {report.run_id}")
    if not reports:
        say("Nothing is left over; this host is clean.")
    dirty = [report.run_id for report in reports if not report.clean]
    if dirty:
        raise DirtyHostError(
            f"something is left of {', '.join(dirty)}; drills are refused on this host until 'rankdrill heal' succeeds"
        )
    return PASS


def run_bench(names: Mapping[str, Bench], name: str, quick: bool, json_file: Path | None) -> int:
    """Run the named benchmark. Raises UsageError for an unknown name or an impossible output file."""
    if name not in names:
        expected = one_of(sorted(names)) if names else "nothing, since no benchmark is registered"
        near = nearest(name, names)
        hint = "" if near is None else f"; did you mean '{near}'?"
        raise UsageError(f"bench: no benchmark '{name}'; expected {expected}{hint}")
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise UsageError(f"--json: expected a file in an existing folder, found '{json_file}'")
    return names[name](quick, json_file)


def internal_error(error: BaseException, folder: Path) -> str:
    """Write the details of a bug of ours to a file in `folder`; return what to tell the user."""
    summary = f"internal error: {type(error).__name__}: {_first_line(str(error))}\nThis is a bug in rankdrill"
    details = "".join(traceback.format_exception(error))
    header = f"command: {shlex.join(sys.argv)}\npython: {sys.version}\nsystem: {platform.platform()}\n\n"
    path = folder / f"{os.getpid()}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(header + details, encoding="utf-8", errors="backslashreplace")
    except OSError as reason:
        return f"{summary}; its details could not be written to {folder} ({reason.strerror})."
    return f"{summary}; please report it together with {path}"


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0][:200]


def print_table(head: Row, rows: Iterable[Row]) -> None:
    """Print a table; plain lines where stdout is not a terminal."""
    if not sys.stdout.isatty():
        widths = [0] * len(head)
        safe = [tuple(visible(cell) for cell in row) for row in rows]
        for row in safe:
            widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
        for row in safe:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head)
    for row in rows:
        # Text, not str: rich reads markup such as [bold] in strings.
        table.add_row(*(Text(visible(cell)) for cell in row))
    Console().print(table)
