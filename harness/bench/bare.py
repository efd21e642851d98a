"""The yardstick of the stack's overhead: the same step with the same collectives, with nothing around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.errors import HarnessError

# A world's first steps find cold caches; a drill's are not counted either.
WARM_STEPS = 3


class BareRanks:
    """A warm process of `gpt_bare.py`, idle between blocks of steps."""

    def __init__(self, program: Path, *, world: int, seed: int) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(program), "--world", str(world), "--seed", str(seed)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def durations_s(self, steps: int) -> list[float]:
        """Let a new world make steps; return their durations on rank 0. Raises HarnessError when a rank has died."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        try:
            self._server.stdin.write(f"{steps + WARM_STEPS}\n")
            self._server.stdin.flush()
            durations: list[float] = json.loads(self._server.stdout.readline())
        except (OSError, ValueError) as error:
            raise HarnessError(f"the bare ranks died: {error}; run the program by hand to see why") from error
        return durations[WARM_STEPS:]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.kill()
        self._server.communicate()
