"""Ctrl-C and SIGTERM as a flag that a run looks at, so that it cleans up and reports in its own order."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupt:
    """While it is entered, SIGINT and SIGTERM set the flag. Outside the main thread it only holds the flag."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._woken = threading.Event()
        self._before: dict[int, Any] = {}

    @property
    def name(self) -> str | None:
        """The signal that arrived ("SIGINT"), or None."""
        return self._name

    def wake(self) -> None:
        """End a `wait` early, without an interruption."""
        self._woken.set()

    def wait(self, limit_s: float) -> None:
        """Return after `limit_s`, or earlier when woken or interrupted."""
        if self._woken.wait(limit_s):
            self._woken.clear()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        # The first one counts; a second Ctrl-C cannot make the clean-up any faster, and must not break it.
        self._name = self._name or signal.Signals(number).name
        self._woken.set()
