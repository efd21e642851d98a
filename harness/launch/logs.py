"""Output of processes, drained through pipes into capped logs: the first part and the last part are kept.

A training process that floods its log must neither fill the disk nor the tester's memory, and must not block for long.
The first part goes to a file at once, so that somebody can follow it; the last part lives in memory until it is asked
for. What lay between is counted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
from collections import deque
from pathlib import Path

HEAD_BYTES = 256 * 1024
TAIL_BYTES = 256 * 1024
_PIPE_BYTES = 1 << 20


class CappedLog:
    """The first `head_bytes` and the last `tail_bytes` of a stream. Safe to read while it is fed."""

    def __init__(self, path: Path | None, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._left_out = 0
        self._lock = threading.Lock()
        self._fd: int | None = None
        if path is not None:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def feed(self, data: bytes) -> None:
        """Take in the next part of the stream."""
        with self._lock:
            room = self._head_bytes - len(self._head)
            if room > 0:
                first, data = data[:room], data[room:]
                self._head += first
                self._to_file(first)
            if data:
                self._keep_tail(data)

    def content(self) -> bytes:
        """Return what was kept, with a line that says how much is missing, if anything is."""
        with self._lock:
            tail = b"".join(self._tail)
            left_out = self._left_out
            if len(tail) > self._tail_bytes:
                left_out += len(tail) - self._tail_bytes
                tail = tail[-self._tail_bytes :]
            gap = b"\n[rankdrill: %d bytes left out]\n" % left_out if left_out else b""
            return bytes(self._head) + gap + tail

    def close(self) -> None:
        """Close the file; what was kept can still be read."""
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _to_file(self, data: bytes) -> None:
        if self._fd is None:
            return
        try:
            os.write(self._fd, data)
        except OSError:
            # A full disk costs the copy on disk only; memory holds the same bytes.
            os.close(self._fd)
            self._fd = None

    def _keep_tail(self, data: bytes) -> None:
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            dropped = self._tail.popleft()
            self._tail_size -= len(dropped)
            self._left_out += len(dropped)


class LogDrain:
    """One thread that drains all pipes of a drill."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._logs: dict[int, CappedLog] = {}
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="log-drain", daemon=True)
        self._thread.start()

    def pipe(self, log: CappedLog) -> int:
        """Return the writing end of a new pipe into `log`; the caller closes it once a child has it."""
        read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        # A large pipe lets a flooding process run on while the tester does something else. Limits of the system may
        # forbid it, which costs speed only.
        with contextlib.suppress(OSError):
            fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(read_fd, False)
        with self._lock:
            self._logs[read_fd] = log
        self._epoll.register(read_fd, select.EPOLLIN)
        return write_fd

    def stop(self) -> None:
        """Read what is in the pipes and stop, even if some process still holds a writing end."""
        if self._stopping:
            return
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        for fd, log in self._logs.items():
            self._read(fd, log)
            os.close(fd)
            log.close()
        self._logs.clear()
        self._epoll.close()
        os.close(self._wake)

    def _run(self) -> None:
        while not self._stopping:
            for fd, _ in self._epoll.poll():
                if fd == self._wake:
                    continue
                with self._lock:
                    log = self._logs[fd]
                if not self._read(fd, log):
                    self._epoll.unregister(fd)
                    with self._lock:
                        del self._logs[fd]
                    os.close(fd)
                    log.close()

    def _read(self, fd: int, log: CappedLog) -> bool:
        """Read once; False at the end of the stream."""
        try:
            data = os.read(fd, _PIPE_BYTES)
        except BlockingIOError:
            return True
        log.feed(data)
        return bool(data)
