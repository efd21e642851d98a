"""Where a scenario's report and the evidence of failed drills are kept. No folder is made before something is kept."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import os
from collections.abc import Mapping
from pathlib import Path

from harness import store
from harness.errors import StoreError
from harness.report import folder as report_folder
from harness.report.model import Report
from harness.store import RunFolder, safe_name

RUNS = Path("runs")
# What a report with its drawing may need; less room than that at the start means a failure at the end.
WANTED_BYTES = 4 << 20
LOGS_CAP_BYTES = 8 << 20


class Keeper:
    """The folder of one scenario's results: `out` itself, else a new one below runs/."""

    def __init__(self, out: Path | None, scenario: str, at: dt.datetime) -> None:
        self._out = out
        self._scenario = scenario
        self._at = at
        self._folder: RunFolder | None = None
        self._was_there = out is not None and out.exists()
        self._left_bytes = LOGS_CAP_BYTES

    @property
    def path(self) -> Path | None:
        """The folder, or None as long as nothing was kept."""
        return None if self._folder is None else self._folder.path

    def check(self) -> None:
        """Raise StoreError now, rather than after the drill, where results could not be written."""
        wanted = self._out if self._out is not None else RUNS / safe_name(self._scenario)
        there = _existing(wanted)
        try:
            # A nameless file: whatever ends this process, nothing is left of it.
            fd = os.open(there, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                return
            raise StoreError(_refusal(wanted, error)) from error
        try:
            os.posix_fallocate(fd, 0, WANTED_BYTES)
        except OSError as error:
            raise StoreError(_refusal(wanted, error)) from error
        finally:
            os.close(fd)

    def keep_evidence(self, number: int, logs: Mapping[str, bytes], dump: str) -> None:
        """Keep the logs of a drill that did not pass, and what its processes were doing. Raises StoreError."""
        for name, content in (*logs.items(), ("processes", dump.encode())):
            if content and len(content) <= self._left_bytes:
                self._left_bytes -= len(content)
                self._made().write(f"logs/repeat-{number}/{safe_name(name)}.log", content)

    def save(self, report: Report) -> Path:
        """Write the report in every format and return its folder. Raises StoreError."""
        report_folder.save(report, self._made())
        return self._made().path

    def _made(self) -> RunFolder:
        if self._folder is None:
            if self._out is not None:
                self._folder = store.open_folder(self._out)
            else:
                self._folder = store.create(RUNS, self._scenario, self._at)
        return self._folder

    def discard_empty(self) -> None:
        """Remove what was made of the folder if nothing could be written to it."""
        if self._folder is None or self._was_there:
            return
        for folder, _, _ in os.walk(self._folder.path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _refusal(wanted: Path, error: OSError) -> str:
    return (
        f"no report can be written to {wanted}: {error.strerror}; nothing was started; name another folder with --out"
    )
