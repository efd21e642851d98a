"""What a drill tells whoever watches it live. All calls come from one thread, and must return at once."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Progress(Protocol):
    """A display of what is going on. Text may come from a run: whoever prints it makes it harmless."""

    def started(self, what: str, *, steps: int) -> None:
        """A run begins: `what` is "kill-one-rank 2/3" or "reference run of kill-one-rank"; it trains `steps` steps."""
        ...

    def phase(self, text: str) -> None:
        """Something takes a while: "starting 3 agents", "stopping"."""
        ...

    def step(self, number: int) -> None:
        """The whole world has completed this step."""
        ...

    def event(self, text: str, at_s: float) -> None:
        """Something happened `at_s` seconds after the run's start: a fault, a claim, an end."""
        ...

    def ended(self, verdict: str, headline: str, folder: Path | None) -> None:
        """A scenario is judged; `folder` holds the report, None where none could be written."""
        ...


class Silent:
    """A `Progress` that shows nothing."""

    def started(self, what: str, *, steps: int) -> None:
        """Show nothing."""

    def phase(self, text: str) -> None:
        """Show nothing."""

    def step(self, number: int) -> None:
        """Show nothing."""

    def event(self, text: str, at_s: float) -> None:
        """Show nothing."""

    def ended(self, verdict: str, headline: str, folder: Path | None) -> None:
        """Show nothing."""
