"""Waiting for a condition with a limit, for tests of live processes."""

from __future__ import annotations

import select
import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], limit_s: float = 20.0, what: str = "the condition") -> None:
    """Return as soon as `condition()` is true; AssertionError after `limit_s`."""
    deadline_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"{what} did not come true within {limit_s} s")
        select.select([], [], [], 0.005)
