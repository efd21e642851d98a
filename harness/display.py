"""The live view of a drill: a progress bar on a terminal, plain lines elsewhere; on stderr, since stdout is the result.

The display must not disturb what it shows: a step costs one comparison, and the bar is redrawn four times a second.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from harness.drill.progress import Progress
from harness.terminal import visible

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_REDRAWS_PER_S = 4
_PLAIN_STEP_LINES = 5


class Display(Progress, Protocol):
    """A Progress that is entered before the first call and left after the last."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        ...


def display_on(stream: TextIO) -> Display:
    """Return the display that fits the stream."""
    return LiveDisplay(stream) if stream.isatty() else PlainDisplay(stream)


class PlainDisplay:
    """One line for whatever happens, a few for the steps."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._every = 1
        self._steps = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def started(self, what: str, *, steps: int) -> None:
        """Print what begins."""
        self._steps = steps
        self._every = max(1, steps // _PLAIN_STEP_LINES)
        self._line(f"{what}: {steps} steps")

    def phase(self, text: str) -> None:
        """Print what takes a while."""
        self._line(f"  {text}")

    def step(self, number: int) -> None:
        """Print a few of the steps."""
        if number % self._every == 0 or number == self._steps:
            self._line(f"  step {number} of {self._steps}")

    def event(self, text: str, at_s: float) -> None:
        """Print what happened, and when."""
        self._line(f"  {at_s:8.3f} s  {text}")

    def ended(self, verdict: str, headline: str, folder: Path | None) -> None:
        """Print the verdict."""
        self._line(verdict_line(verdict, headline, folder))

    def _line(self, text: str) -> None:
        print(visible(text), file=self._stream, flush=True)


class LiveDisplay:
    """A bar for the steps; events scroll by above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            # Text of a run is never read as rich's markup.
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[phase]}", markup=False),
            TimeElapsedColumn(),
            console=Console(file=self._stream, markup=False, highlight=False),
            refresh_per_second=_REDRAWS_PER_S,
            # The summary on stdout is printed above the bar when both go to the terminal, and left alone otherwise.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=False,
            transient=True,
        )
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def started(self, what: str, *, steps: int) -> None:
        """Begin a new bar."""
        assert self._bar is not None
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(visible(what), total=steps, phase="")

    def phase(self, text: str) -> None:
        """Show what takes a while beside the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, phase=visible(text))

    def step(self, number: int) -> None:
        """Move the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=number, phase="")

    def event(self, text: str, at_s: float) -> None:
        """Print what happened above the bar."""
        self._print(f"{at_s:8.3f} s  {text}")

    def ended(self, verdict: str, headline: str, folder: Path | None) -> None:
        """Print the verdict above the bar."""
        self._print(verdict_line(verdict, headline, folder))

    def _print(self, text: str) -> None:
        assert self._bar is not None
        self._bar.console.print(visible(text), markup=False, highlight=False, soft_wrap=True)


def verdict_line(verdict: str, headline: str, folder: Path | None) -> str:
    """Return the last line about a scenario."""
    where = "no report could be written" if folder is None else f"report: {folder}"
    return f"{verdict}: {headline} ({where})"


def on_stderr() -> Display:
    """Return the display of the command line."""
    return display_on(sys.stderr)
