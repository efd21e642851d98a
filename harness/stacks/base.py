"""What a stack is to the tester: the processes to start, in stages, and what it can do. Argv and environment only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.launch.base import ProcessSpec


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What a drill asks of a stack. `arguments` are the program's own; `work` is a folder of this run."""

    program: Path
    arguments: tuple[str, ...]
    world: int
    spares: int
    nodes: int
    steps: int
    limits: str
    port: int | None
    work: Path


@dataclass(frozen=True, slots=True)
class Stage:
    """Processes to start together; the next stage may be asked for when the file `ready` exists."""

    specs: tuple[ProcessSpec, ...]
    ready: Path | None = None


class Stack(Protocol):
    """A way to run training on several ranks."""

    @property
    def name(self) -> str:
        """The word for it in a scenario."""
        ...

    @property
    def alarms(self) -> bool:
        """Whether it writes claims; without, detection is not judged but the first visible reaction."""
        ...

    def program(self, workload: Path) -> Path:
        """The file that this stack runs for a workload."""
        ...

    def sources(self) -> tuple[Path, ...]:
        """Files and folders whose change makes a cached reference run worthless."""
        ...

    def stages(self, request: StackRequest) -> Iterator[Stage]:
        """Yield what to start. Raises UsageError for a request it cannot serve."""
        ...


def node_names(nodes: int) -> tuple[str, ...]:
    """Return the names n0, n1 and so on."""
    return tuple(f"n{index}" for index in range(nodes))


def members_by_node(members: int, nodes: int) -> dict[str, int]:
    """Spread members over nodes as evenly as can be, the first nodes taking one more."""
    share, more = divmod(members, nodes)
    return {name: share + (index < more) for index, name in enumerate(node_names(nodes))}
