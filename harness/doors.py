"""What the command line does behind each command. Every function imports what it needs when it is called.

Tests of the command line pass other doors in; harness/answers.py turns results into text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import answers
from harness.answers import PASS, say


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What `rankdrill run` was asked for; None means: as the scenario says."""

    files: tuple[Path, ...]
    repeat: int | None = None
    seed: int | None = None
    out: Path | None = None
    on: str | None = None


class Doors:
    """One method a command. Each returns an exit code, or raises a RankdrillError."""

    def run(self, request: RunRequest) -> int:
        """Run the scenarios."""
        from harness.display import on_stderr
        from harness.run import RunOptions, run_scenarios

        options = RunOptions(repeat=request.repeat, seed=request.seed, out=request.out, on=request.on)
        with on_stderr() as display:
            return run_scenarios(request.files, options, display)

    def dry_run(self, request: RunRequest) -> int:
        """Print who would be hit, when, by what, and how it would be undone."""
        from harness.run import dry_run
        from harness.scenario import load

        scenarios = [load(path).override(repeat=request.repeat, seed=request.seed) for path in request.files]
        for scenario in scenarios:
            say(dry_run(scenario))
        return PASS

    def check(self, files: Sequence[Path]) -> int:
        """Print what is wrong with each file."""
        from harness.drill.request import program_of
        from harness.run import STACKS

        return answers.check(files, lambda scenario: program_of(scenario, STACKS[scenario.stack.name]))

    def schema(self) -> int:
        """Print the JSON Schema of scenario files."""
        from harness.scenario import json_schema

        say(json.dumps(json_schema(), indent=2, ensure_ascii=True))
        return PASS

    def list(self) -> int:
        """Print the shipped scenarios."""
        from harness.scenario import SHIPPED, shipped

        return answers.list_scenarios(shipped(), SHIPPED)

    def report(self, folder: Path) -> int:
        """Render the report of a finished run again, and print its summary."""
        from harness.report.folder import read, render_folder
        from harness.report.text import print_summary

        render_folder(folder)
        print_summary(read(folder), folder, sys.stdout)
        return PASS

    def heal(self) -> int:
        """Undo what dead drills have left."""
        from chaos.clock import SystemClock
        from chaos.ledger import state_dir
        from chaos.leftovers import heal_left_overs

        return answers.tell_healed(heal_left_overs(state_dir(), SystemClock()))

    def doctor(self) -> int:
        """Print what this machine can do."""
        from chaos.ledger import state_dir
        from harness.doctor import examine, machine_probes

        return answers.tell_findings(examine(machine_probes(Path(state_dir()), Path("runs"))))

    def bench(self, name: str, quick: bool, json_file: Path | None) -> int:
        """Run one benchmark."""
        from harness.bench.registry import NAMES

        return answers.run_bench(NAMES, name, quick, json_file)

    def selftest(self) -> int:
        """Drill broken stacks."""
        from harness.selftest.run import main

        return main()

    def version(self) -> None:
        """Print the version."""
        from importlib.metadata import version

        say(f"rankdrill {version('rankdrill')}")

    def internal_error(self, error: Exception) -> str:
        """Write the details of a bug of ours to a file, and return what to tell the user."""
        from chaos.ledger import state_dir

        return answers.internal_error(error, Path(state_dir()) / "internal-errors")
