"""The reference stack's command lines: one controller, then one agent a node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from harness.launch.base import ProcessSpec
from harness.stacks.base import StackRequest, Stage, members_by_node

_HARNESS = Path(__file__).resolve().parents[1]


class ReferenceStack:
    """harness.resilience: hot spares, snapshots in memory, alarms."""

    name = "reference"
    alarms = True

    def program(self, workload: Path) -> Path:
        """The workload itself."""
        return workload

    def sources(self) -> tuple[Path, ...]:
        """The runtime and the probe."""
        return (_HARNESS / "resilience", _HARNESS / "probe")

    def stages(self, request: StackRequest) -> Iterator[Stage]:
        """Yield the controller, then, when it has written its address, the agents."""
        address_file = request.work / "controller.address"
        yield Stage((self._controller(request, address_file),), ready=address_file)
        address = address_file.read_text().strip()
        members = members_by_node(request.world + request.spares, request.nodes)
        yield Stage(tuple(self._agent(request, address, node, count) for node, count in members.items()))

    def _controller(self, request: StackRequest, address_file: Path) -> ProcessSpec:
        argv = [sys.executable, "-m", "harness.resilience.controller"]
        argv += ["--world", str(request.world), "--steps", str(request.steps)]
        argv += ["--nodes", str(request.nodes), "--spares", str(request.spares)]
        argv += ["--limits", request.limits, "--address-file", str(address_file)]
        if request.port is not None:
            argv += ["--port", str(request.port)]
        return ProcessSpec("controller", "n0", tuple(argv), role="controller")

    def _agent(self, request: StackRequest, address: str, node: str, members: int) -> ProcessSpec:
        argv = [sys.executable, "-m", "harness.resilience.agent", "--controller", address]
        argv += ["--node", node, "--members", str(members), "--world", str(request.world)]
        argv += ["--limits", request.limits]
        argv += ["--", str(request.program), *request.arguments]
        return ProcessSpec(f"agent-{node}", node, tuple(argv), role="agent")
