"""The file a probe writes and the tester reads: JSON lines in a mapped file that survives SIGKILL.

Layout: 8 bytes magic, 8 bytes native-endian count of committed bytes, 48 bytes reserved, then JSON lines.
The count is stored after the line it covers, so a reader never sees half a line, whenever the writer dies.
Pages of a mapped file belong to the kernel, not to the process: what was stored before a SIGKILL stays.

Space is reserved with posix_fallocate before it is touched, because a store into a page that a full disk
cannot back would kill the training process with SIGBUS.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAGIC = b"RDPROBE1"
HEADER_BYTES = 64
CHUNK_BYTES = 1 << 20
SUFFIX = ".probe"

Record = dict[str, Any]


class RecordWriter:
    """Appends records to one file. One writer a process; not safe across fork (make a new one)."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._size = 0
        self._end = HEADER_BYTES
        self._map = self._reserve(CHUNK_BYTES)
        # One aligned 8-byte store through a typed view: struct.pack_into can show a reader a torn word.
        self._counter = memoryview(self._map)[8:16].cast("q")
        self._map[0:8] = MAGIC
        self._publish()

    def append(self, record: Record) -> None:
        """Append one record. Raises OSError when the file cannot grow (full disk)."""
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        end = self._end + len(line)
        if end > self._size:
            self._grow(max(CHUNK_BYTES, len(line)))
        self._map[self._end : end] = line
        self._end = end
        self._publish()

    def close(self) -> None:
        """Unmap and close. What was appended stays in the file."""
        self._counter.release()
        self._map.close()
        os.close(self._fd)

    def _reserve(self, more_bytes: int) -> mmap.mmap:
        os.posix_fallocate(self._fd, self._size, more_bytes)
        self._size += more_bytes
        return mmap.mmap(self._fd, self._size)

    def _grow(self, more_bytes: int) -> None:
        bigger = self._reserve(more_bytes)
        self._counter.release()
        self._map.close()
        self._map = bigger
        self._counter = memoryview(self._map)[8:16].cast("q")

    def _publish(self) -> None:
        self._counter[0] = self._end - HEADER_BYTES


class RecordReader:
    """Reads what a writer has committed so far; call `poll` again for more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        self._offset = 0
        self._counter: memoryview | None = None

    def poll(self) -> Iterator[Record]:
        """Yield the records committed since the last call. A file that is still being created yields none."""
        # Asked many times a second, nearly always in vain: a look at a mapped word, no system call.
        if self._counter is None and not self._map_counter():
            return
        assert self._counter is not None
        committed = self._counter[0]
        if committed <= self._offset:
            return
        data = os.pread(self._file.fileno(), committed - self._offset, HEADER_BYTES + self._offset)
        self._offset += len(data)
        for line in data.splitlines():
            yield json.loads(line)

    def _map_counter(self) -> bool:
        header = os.pread(self._file.fileno(), HEADER_BYTES, 0)
        if len(header) < HEADER_BYTES or header[:8] != MAGIC:
            return False
        mapped = mmap.mmap(self._file.fileno(), HEADER_BYTES, prot=mmap.PROT_READ)
        self._counter = memoryview(mapped)[8:16].cast("q")
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._counter = None
