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
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.errors import StoreError

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
