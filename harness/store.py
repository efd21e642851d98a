"""runs/<scenario>/<UTC time>/: where results are kept. A file is either there and whole, or not there.

Every file is written under a temporary name, flushed to the disk and renamed; then the folder is flushed, so that a
crash or a full disk leaves the old file or none, never half of one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.errors import StoreError

LOG_CAP_BYTES = 256 * 1024
LOGS_CAP_BYTES = 8 * 1024 * 1024
_NAME_CAP = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

Writer = Callable[[int, memoryview], int]


class RunFolder:
    """One run's folder. `write_bytes` is os.write; tests pass one that fails."""

    def __init__(self, path: Path, write_bytes: Writer = os.write) -> None:
        self.path = path
        self._write_bytes = write_bytes

    def write(self, name: str, content: str | bytes) -> Path:
        """Write one file whole and return its path. Raises StoreError."""
        data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        target = self.path / name
        with _told(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
            try:
                self._fill(temporary, data)
                temporary.replace(target)
            except BaseException:
                # Also on Ctrl-C: a half-written file must not stay.
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
            _flush_folder(target.parent)
        return target

    def keep_logs(self, logs: Sequence[tuple[str, Path]], folder: str = "logs") -> list[Path]:
        """Keep the ends of log files, given as (name, source): 256 KiB each, 8 MiB in all. Raises StoreError.

        Those that cannot be read are left out.
        """
        kept: list[Path] = []
        left = LOGS_CAP_BYTES
        names: set[str] = set()
        for name, source in logs:
            tail = _tail(source, min(LOG_CAP_BYTES, left))
            if tail is None:
                continue
            left -= len(tail)
            unique = _unique(safe_name(name), names)
            kept.append(self.write(f"{folder}/{unique}", tail))
        return kept

    def _fill(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[self._write_bytes(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def create(root: Path, scenario: str, at: dt.datetime) -> RunFolder:
    """Make a new folder for a run that began `at`; a second one within the same second gets "-2". Raises StoreError."""
    parent = root / safe_name(scenario)
    stamp = at.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    with _told(parent):
        parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            path = parent / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                path.mkdir()
            except FileExistsError:
                continue
            _flush_folder(parent)
            return RunFolder(path)
    raise AssertionError("the numbers never end")


def open_folder(path: Path) -> RunFolder:
    """Return a folder named by the user, made where it is missing. Raises StoreError."""
    with _told(path):
        path.mkdir(parents=True, exist_ok=True)
    return RunFolder(path)


def safe_name(name: str) -> str:
    """Return a name that is one visible path component whatever `name` holds."""
    cleaned = _UNSAFE.sub("-", name).strip(".-")[:_NAME_CAP]
    return cleaned or "unnamed"


def _unique(name: str, taken: set[str]) -> str:
    for number in itertools.count(1):
        candidate = name if number == 1 else f"{number}-{name}"
        if candidate not in taken:
            taken.add(candidate)
            return candidate
    raise AssertionError("the numbers never end")


def _tail(source: Path, cap_bytes: int) -> bytes | None:
    """Return the end of a file, with a line that says what was cut; None when there is no such file or no room."""
    if cap_bytes <= 0:
        return None
    try:
        with source.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - cap_bytes))
            data = file.read(cap_bytes)
    except OSError:
        # A log that cannot be read is no reason to lose the report.
        return None
    if size <= cap_bytes:
        return data
    return f"[the first {size - len(data):,} bytes were cut]\n".encode() + data


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_ELSEWHERE = "name another folder with --out"
_FULL = ("the disk is full", f"free some space, or {_ELSEWHERE}")
_DENIED = ("there is no permission to write there", f"change the folder's permissions, or {_ELSEWHERE}")
_FILE = ("there is a file where a folder should be", f"remove that file, or {_ELSEWHERE}")
_CAUSES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: ("your disk quota is used up", f"free some space, or {_ELSEWHERE}"),
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: ("the file system is mounted read-only", _ELSEWHERE),
    errno.ENOTDIR: _FILE,
    errno.EEXIST: _FILE,
    errno.EISDIR: ("there is a folder where the file should be", f"remove it, or {_ELSEWHERE}"),
    errno.ENAMETOOLONG: ("the path is too long", "name a shorter folder with --out"),
    errno.EFBIG: ("the file is larger than this shell allows (ulimit -f)", "raise the limit and run again"),
}


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn an OSError into a StoreError that names cause and next step."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        cause, step = _CAUSES.get(error.errno or 0, (reason, f"check the folder, or {_ELSEWHERE}"))
        raise StoreError(f"{path} cannot be written: {cause}; {step}") from error
