"""What a launcher offers: start a drill's processes, say how they fare, stop them, and prove that nothing is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.observe.processes import ExitStatus

TAG_VARIABLE = "RANKDRILL_RUN"


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process to start. `role` is "controller", "agent" or "launcher"; `env` comes on top of the tester's own."""

    name: str
    node: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    role: str = "launcher"


class Running(Protocol):
    """A process that was started."""

    @property
    def spec(self) -> ProcessSpec:
        """What it was started from."""
        ...

    @property
    def pid(self) -> int:
        """Its pid on its node."""
        ...

    @property
    def started_ticks(self) -> int:
        """Its start in clock ticks since boot, which with the pid names it for good."""
        ...

    def status(self) -> ExitStatus | None:
        """How it ended, or None while it lives."""
        ...

    def log_tail(self, lines: int) -> str:
        """The last lines that it, or a child that shares its output, has written."""
        ...


class Launcher(Protocol):
    """Where nodes run."""

    def start(self, spec: ProcessSpec) -> Running:
        """Start one process. Raises LaunchError when it cannot be started."""
        ...

    def running(self) -> tuple[Running, ...]:
        """All processes that were started, ended ones too, in order of their start."""
        ...

    def tagged(self) -> tuple[int, ...]:
        """The pids of all living processes of this run, whoever started them."""
        ...

    def stop_all(self, grace_s: float) -> None:
        """TERM what was started, and after `grace_s` KILL all that carries the run's tag. Never raises."""
        ...

    def leftovers(self) -> tuple[str, ...]:
        """Describe every living process that still carries the run's tag; empty = clean."""
        ...

    def logs(self) -> Mapping[str, bytes]:
        """The capped output of each process by name."""
        ...
