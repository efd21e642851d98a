"""Running the fake stack through the real drill code, without a judge."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from harness.drill.execute import Order, Record, Tools, execute
from harness.drill.interrupt import Interrupt
from harness.drill.progress import Silent
from harness.drill.request import request_of
from harness.scenario import Scenario
from harness.stacks.base import Stack


class Told(Silent):
    """Keeps what a drill tells."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.phases: list[str] = []
        self.steps: list[int] = []
        self.ends: list[tuple[str, str, Path | None]] = []

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def step(self, number: int) -> None:
        self.steps.append(number)

    def event(self, text: str, at_s: float) -> None:
        self.events.append(text)

    def ended(self, verdict: str, headline: str, folder: Path | None) -> None:
        self.ends.append((verdict, headline, folder))


class Places:
    """Folders of its own for everything that a drill writes, so that a test can see what is left."""

    def __init__(self, root: Path) -> None:
        self.state = root / "state"
        self.temporary = root / "tmp"
        self.cache = root / "cache"
        for folder in (self.state, self.temporary, self.cache):
            folder.mkdir()

    def environment(self) -> dict[str, str]:
        return {
            "RANKDRILL_STATE_DIR": str(self.state),
            "TMPDIR": str(self.temporary),
            "XDG_CACHE_HOME": str(self.cache),
        }

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import tempfile

        for name, value in self.environment().items():
            monkeypatch.setenv(name, value)
        # tempfile asks the environment only once.
        monkeypatch.setattr(tempfile, "tempdir", None)

    def left(self) -> list[str]:
        """Ledgers and temporary folders that are still there."""
        return sorted(path.name for folder in (self.state, self.temporary) for path in folder.iterdir())


def run(scenario: Scenario, stack: Stack, told: Told | None = None, interrupt: Interrupt | None = None) -> Record:
    """Run a scenario once, with its faults."""
    order = Order(
        what="test",
        stack=stack,
        request_in=lambda workspace: request_of(scenario, stack, 1, workspace.root),
        faults=scenario.faults,
        seed=1,
        random=Random(1),
        horizon_s=scenario.horizon_s,
        first_step_within_s=scenario.steady_within_s,
    )
    return execute(order, Tools(interrupt or Interrupt(), told or Told()))
