"""The yardstick of the stack's overhead: the same step with the same collectives, with nothing around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.errors import HarnessError

# The first steps of a block find cold caches, as those of a drill do, which are not counted there either.
WARM_STEPS = 3


class BareRanks:
    """Ranks of `gpt_bare.py`, idle between blocks of steps."""

    def __init__(self, program: Path, *, world: int, seed: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rankdrill-bare-")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        store = Path(self._folder.name) / "store"
        self._ranks = [
            subprocess.Popen(
                [sys.executable, str(program), *_options(rank=rank, world=world, store=store, seed=seed)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(world)
        ]

    def durations_s(self, steps: int) -> list[float]:
        """Make steps; return their durations on rank 0. Raises HarnessError when a rank has died."""
        try:
            for rank in self._ranks:
                assert rank.stdin is not None
                rank.stdin.write(f"{steps + WARM_STEPS}\n")
                rank.stdin.flush()
            assert self._ranks[0].stdout is not None
            durations: list[float] = json.loads(self._ranks[0].stdout.readline())
        except (OSError, ValueError) as error:
            raise HarnessError(f"the bare ranks died: {error}; run one by hand to see why") from error
        return durations[WARM_STEPS:]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for rank in self._ranks:
            rank.kill()
            rank.communicate()
        self._folder.cleanup()


def _options(**options: object) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]
