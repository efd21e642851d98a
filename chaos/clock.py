"""The clock at this half's edge: everything else takes `now_s` as an argument or a `Clock`.

Events are stamped with CLOCK_MONOTONIC. Leases count CLOCK_BOOTTIME, which goes on while the machine sleeps, so that a
fault does not outlive a suspended laptop.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a part that waits or stamps needs of time."""

    def monotonic_s(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        ...

    def boottime_s(self) -> float:
        """Seconds since boot, time asleep included (CLOCK_BOOTTIME)."""
        ...

    def sleep_s(self, duration_s: float) -> None:
        """Let `duration_s` seconds pass."""
        ...


class SystemClock:
    """The clock of this host."""

    def monotonic_s(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        return time.monotonic()

    def boottime_s(self) -> float:
        """Seconds since boot, time asleep included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep_s(self, duration_s: float) -> None:
        """Sleep for `duration_s` seconds."""
        time.sleep(duration_s)
