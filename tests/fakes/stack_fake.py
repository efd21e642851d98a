"""The fake stack as an object that a drill can be given (see stack_program.py)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.launch.base import ProcessSpec
from harness.stacks.base import StackRequest, Stage, members_by_node

PROGRAM = Path(__file__).resolve().with_name("stack_program.py")


@dataclass(frozen=True)
class FakeStack:
    """A `Stack` whose processes need only the standard library. `controller_options` choose how it misbehaves."""

    controller_options: tuple[str, ...] = ()
    agent_options: tuple[str, ...] = ("--restock",)
    controller_program: Path = PROGRAM
    name: str = "reference"
    alarms: bool = True

    def program(self, workload: Path) -> Path:
        return workload

    def sources(self) -> tuple[Path, ...]:
        return (PROGRAM,)

    def stages(self, request: StackRequest) -> Iterator[Stage]:
        address_file = request.work / "controller.address"
        argv = [sys.executable, str(self.controller_program), "controller", "--world", str(request.world)]
        argv += ["--spares", str(request.spares), "--nodes", str(request.nodes), "--steps", str(request.steps)]
        argv += ["--address-file", str(address_file), *self.controller_options]
        yield Stage((ProcessSpec("controller", "n0", tuple(argv), role="controller"),), ready=address_file)
        address = address_file.read_text().strip()
        specs = []
        for node, members in members_by_node(request.world + request.spares, request.nodes).items():
            argv = [sys.executable, str(PROGRAM), "agent", "--members", str(members), "--controller", address]
            argv += [*self.agent_options, "--", str(request.program), *request.arguments]
            specs.append(ProcessSpec(f"agent-{node}", node, tuple(argv), role="agent"))
        yield Stage(tuple(specs))
