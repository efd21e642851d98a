"""The command line. It parses, calls what does the work, and turns every outcome into one exit code.

    0 all limits met    1 a limit missed    2 inconclusive    3 error, or interrupted    4 usage

Parsing is kept apart from doing: a command returns an action, and `main` performs it where every way to fail is
caught, so that nobody ever sees a traceback. Heavy modules are imported by the action that needs them.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from chaos.errors import ChaosError
from harness.doors import Doors, RunRequest
from harness.errors import Interrupted, RankdrillError, UsageError
from harness.terminal import visible
from harness.words import nearest

Action = Callable[[], int]

PASS, FAIL, INCONCLUSIVE, ERROR, USAGE = range(5)
# What typer returns when Ctrl-C arrives while it still parses.
_TYPER_INTERRUPTED = 130

_HELP = """Break multi-rank training runs on purpose and prove with numbers whether they recover.

Exit codes: 0 all limits met, 1 a limit missed, 2 inconclusive, 3 error or interrupted, 4 usage."""

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scenario files.", show_default=False)]


def main(arguments: list[str] | None = None, doors: Doors | None = None) -> int:
    """Run one command line and return its exit code. Never raises."""
    own = Doors() if doors is None else doors
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no "≤" shows an escape instead of ending the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _Signals():
            action = _parse(sys.argv[1:] if arguments is None else arguments, own)
            code = action if isinstance(action, int) else action()
            sys.stdout.flush()
            return code
    except (KeyboardInterrupt, Interrupted) as stop:
        _complain(f"interrupted{f': {stop}' if str(stop) else ''}")
        return ERROR
    except RankdrillError as error:
        _complain(str(error))
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output (head, say) has gone; what Python flushes at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    except ChaosError as error:
        _complain(str(error))
        return ERROR
    except OSError as error:
        # The machine refused something: a full disk, a folder without permission. That is no bug of ours.
        _complain(f"{error.strerror or error}{'' if error.filename is None else f': {error.filename}'}")
        return ERROR
    except Exception as error:  # noqa: BLE001
        # Everything that is raised on purpose was caught above: this is a bug, and is reported as one.
        _complain(own.internal_error(error))
        return ERROR


class _Signals:
    """SIGTERM ends a command as Ctrl-C does: through an exception, so that everything is cleaned up on the way."""

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGTERM, _terminate)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)


def _terminate(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(signal.Signals(number).name)


def _parse(arguments: list[str], doors: Doors) -> Action | int:
    command = typer.main.get_command(build_app(doors))
    try:
        result = command.main(arguments, prog_name="rankdrill", standalone_mode=False)
    except typer.TyperException as error:
        if not arguments:
            raise UsageError(_HELP.splitlines()[0] + " Try 'rankdrill --help'.") from None
        raise UsageError(_usage_message(error)) from None
    except typer.Abort:
        raise Interrupted from None
    if result == _TYPER_INTERRUPTED:
        raise Interrupted
    return PASS if result is None else result


def _usage_message(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    name = context.command_path if context is not None else "rankdrill"
    return f"{error.format_message().rstrip('.')}; try '{name} --help'"


def _complain(message: str) -> None:
    """Print an error; what it quotes cannot act on the terminal."""
    print("rankdrill: " + visible(message, keep_newlines=True), file=sys.stderr, flush=True)


def build_app(doors: Doors) -> typer.Typer:
    """Return the command line over `doors`. Each command returns the action that performs it."""
    app = typer.Typer(help=_HELP, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    _add_scenario_commands(app, doors)
    _add_machine_commands(app, doors)
    _add_proof_commands(app, doors)

    @app.callback(invoke_without_command=True)
    def top(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    ) -> None:
        if version:
            doors.version()
            raise typer.Exit(PASS)
        if context.invoked_subcommand is None:
            print(context.get_help())
            raise typer.Exit(USAGE)

    return app


def _add_scenario_commands(app: typer.Typer, doors: Doors) -> None:
    @app.command()
    def run(  # noqa: PLR0917 - typer passes everything by name.
        files: Files,
        repeat: Annotated[int | None, typer.Option(min=1, max=1000, help="Repeats, instead of the file's.")] = None,
        seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Seed, instead of the file's.")] = None,
        out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the report.")] = None,
        on: Annotated[str | None, typer.Option(help="Where nodes run: local.")] = None,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; start nothing.")] = False,
    ) -> Action:
        """Run drills, judge them and write their reports."""
        _expect_one_of("--on", on, ("local",))
        request = RunRequest(tuple(files), repeat=repeat, seed=seed, out=out, on=on)
        return lambda: doors.dry_run(request) if dry_run else doors.run(request)

    @app.command()
    def check(files: Files) -> Action:
        """Say what is wrong with scenario files; start nothing."""
        return lambda: doors.check(tuple(files))

    @app.command()
    def schema() -> Action:
        """Print the JSON Schema of scenario files."""
        return doors.schema

    @app.command("list")
    def list_() -> Action:
        """List the scenarios that come with rankdrill."""
        return doors.list


def _add_machine_commands(app: typer.Typer, doors: Doors) -> None:
    @app.command()
    def report(
        folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.", show_default=False)],
    ) -> Action:
        """Write the report of a finished run again, in every format."""
        return lambda: doors.report(folder)

    @app.command()
    def heal() -> Action:
        """Undo what drills that died have left on this host."""
        return doors.heal

    @app.command()
    def doctor() -> Action:
        """Say what this machine can do, and what is missing for what."""
        return doors.doctor


def _add_proof_commands(app: typer.Typer, doors: Doors) -> None:
    @app.command()
    def bench(
        name: Annotated[str, typer.Argument(metavar="NAME", help="Which benchmark.", show_default=False)],
        quick: Annotated[bool, typer.Option("--quick", help="Fewer repeats (3 or more), the same limits.")] = False,
        json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures there.")] = None,
    ) -> Action:
        """Measure rankdrill itself; exit 0 only if every limit holds."""
        return lambda: doors.bench(name, quick, json)

    @app.command()
    def selftest() -> Action:
        """Show that broken stacks fail for the right reason, and that the sound one passes."""
        return doors.selftest


def _expect_one_of(option: str, value: str | None, valid: tuple[str, ...]) -> None:
    if value is not None and value not in valid:
        near = nearest(value, valid)
        hint = "" if near is None else f"; did you mean '{near}'?"
        raise UsageError(f"{option}: expected {' or '.join(valid)}, found '{value}'{hint}")


if __name__ == "__main__":
    sys.exit(main())
