"""Observations as lines of live progress: the collector's thread leaves them here, the drill's thread shows them."""

from __future__ import annotations

from collections import deque

from harness.drill.progress import Progress
from harness.drill.view import RunView
from harness.observe.observation import (
    Claim,
    FaultEffective,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    Observation,
    RunEnded,
    StackStopped,
    WorkloadRaised,
)


class Telling:
    """Keeps what is to be shown until somebody asks."""

    def __init__(self, view: RunView, progress: Progress) -> None:
        self._view = view
        self._progress = progress
        self._waiting: deque[tuple[str, float]] = deque()
        self._step = 0

    def see(self, seen: Observation) -> None:
        """Take in an observation; from any thread."""
        line = _line(seen)
        if line is not None:
            self._waiting.append((line, seen.at_s))

    def show(self, started_s: float) -> None:
        """Show what is new."""
        while self._waiting:
            line, at_s = self._waiting.popleft()
            self._progress.event(line, at_s - started_s)
        step = self._view.world_step()
        for number in range(self._step + 1, step + 1):
            self._progress.step(number)
        self._step = max(step, self._step)


def _line(seen: Observation) -> str | None:
    match seen:
        case FaultInjected():
            line = f"{seen.kind} {seen.target}: injected"
        case FaultEffective():
            line = f"{seen.fault}: effect proven: {seen.proof}"
        case FaultFailed():
            line = f"{seen.fault}: {seen.reason}"
        case FaultHealed():
            line = f"{seen.fault}: {'healed' if seen.verified else 'NOT healed'}: {seen.detail}"
        case Claim():
            line = f"the stack {'says' if seen.confirmed else 'suspects'}: {seen.kind} {_whom(seen)}".rstrip()
        case StackStopped():
            line = f"the stack gave up: {seen.reason}"
        case WorkloadRaised():
            line = f"the training program raised {seen.error}"
        case RunEnded():
            line = f"the run is over: {seen.reason}"
        case _:
            return None
    return line


def _whom(claim: Claim) -> str:
    named = (("rank", claim.rank), ("node", claim.node), ("pid", claim.pid))
    return " ".join(f"{name} {value}" for name, value in named if value is not None)
