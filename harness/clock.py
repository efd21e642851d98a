"""The tester's clock at its edge: CLOCK_MONOTONIC in seconds. Everything behind it takes `now_s` as an argument."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the tester needs of time; tests pass one they move by hand."""

    def now_s(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...

    def sleep(self, duration_s: float) -> None:
        """Return `duration_s` later. Only for looking at something again that cannot be waited for."""
        ...


class MonotonicClock:
    """CLOCK_MONOTONIC of this host, the clock that probes use too."""

    def now_s(self) -> float:
        """Return CLOCK_MONOTONIC in seconds."""
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        """Sleep."""
        time.sleep(duration_s)
