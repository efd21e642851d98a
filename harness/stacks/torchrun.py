"""Plain torchrun on one node: restarts all workers on a failure; no spares, no alarms."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from harness.errors import UsageError
from harness.launch.base import ProcessSpec
from harness.stacks.base import StackRequest, Stage

_HARNESS = Path(__file__).resolve().parents[1]
_MAX_RESTARTS = 3


class TorchrunStack:
    """`python -m torch.distributed.run --standalone`."""

    name = "torchrun"
    alarms = False

    def program(self, workload: Path) -> Path:
        """The same training written for torchrun: `gpt.py` has `gpt_torchrun.py` beside it."""
        return workload.with_name(f"{workload.stem}_torchrun.py")

    def sources(self) -> tuple[Path, ...]:
        """Only the probe is ours; torch itself is told apart by its version."""
        return (_HARNESS / "probe",)

    def stages(self, request: StackRequest) -> Iterator[Stage]:
        """Yield the one launcher, which starts the workers; it keeps no spares. UsageError for several nodes."""
        if request.nodes != 1:
            raise UsageError(f"stack torchrun runs on one node: write `nodes: 1` in the workload, not {request.nodes}")
        argv = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        argv += ["--nproc-per-node", str(request.world), "--max-restarts", str(_MAX_RESTARTS)]
        argv += [str(request.program), *request.arguments]
        # Without this the launcher's store outlives a restart and workers read the addresses of dead ones: on gloo the
        # run then never comes back.
        environment = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        yield Stage((ProcessSpec("torchrun", "n0", tuple(argv), environment),))
