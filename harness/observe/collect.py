"""The collector: one thread that reads what probes write and sees processes end, as observations on the tester's clock.

It sleeps in epoll on three things: the bell (a datagram socket that probes ring after each record but a step's), the
pidfds of all processes that have a probe file, and its own wake-up. A missed bell costs one poll interval, no more.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.clock import Clock
from harness.errors import LaunchError
from harness.observe.clocks import ClockTable
from harness.observe.convert import convert, member_of
from harness.observe.observation import (
    MemberId,
    MemberJoined,
    Observation,
    ObserverLost,
    ProcessExited,
    RankHeld,
    StateLoaded,
    StepDone,
)
from harness.observe.processes import exit_status, open_process
from harness.observe.timeline import Timeline
from harness.probe.records import SUFFIX, RecordReader

# How late a step may be seen. Probes do not ring for steps: in lock-step ranks every wake-up of ours delays them all.
POLL_S = 0.04
# The longest path a Unix socket can be bound to, its closing zero byte included, is 108 bytes.
_SOCKET_PATH_BYTES = 107

Listener = Callable[[Observation], None]


@dataclass
class _Source:
    """One probe file, its process, and the pidfd while that process lives."""

    member: MemberId
    reader: RecordReader
    pidfd: int | None
    is_member: bool = False


class Collector:
    """Collects observations from `start` to `stop`; listeners are called in the collecting thread and must be quick."""

    def __init__(
        self, probe_dir: Path, bell_path: Path, clock: Clock, clocks: ClockTable, listeners: tuple[Listener, ...] = ()
    ) -> None:
        self._probe_dir = probe_dir
        self._clock = clock
        self._clocks = clocks
        self._listeners = listeners
        self._lock = threading.Lock()
        self._seen: list[Observation] = []
        self._sources: dict[str, _Source] = {}
        self._strangers: set[str] = set()
        self._by_pidfd: dict[int, _Source] = {}
        self._dead: list[tuple[_Source, float]] = []
        self._stopping = False
        self.failed = False
        self._bell = _bind(bell_path)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._wake, select.EPOLLIN)
        if self._bell is not None:
            self._epoll.register(self._bell.fileno(), select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    @property
    def has_bell(self) -> bool:
        """Whether probes can wake the collector; without it a record is read up to one poll interval late."""
        return self._bell is not None

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def add(self, observation: Observation) -> None:
        """Put in an observation that the tester itself made (a fault, the start, the end); from any thread."""
        with self._lock:
            self._seen.append(observation)
        for listener in self._listeners:
            listener(observation)

    def stop(self) -> Timeline:
        """Read what is left, stop watching, and return everything seen."""
        if not self._stopping:
            self._stopping = True
            os.eventfd_write(self._wake, 1)
            if self._thread.ident is not None:
                self._thread.join()
            else:
                self._close()
        return self.timeline()

    def timeline(self) -> Timeline:
        """Return everything seen so far."""
        with self._lock:
            return Timeline(self._seen)

    def _run(self) -> None:
        try:
            while not self._stopping:
                events = self._epoll.poll(POLL_S)
                now_s = self._clock.now_s()
                self._note_deaths(events, now_s)
                self._read_all()
                self._report_deaths()
            # Twice, since a process may have appeared with its last words between the listing and the reading.
            self._read_all()
            self._read_all()
            self._note_deaths(self._epoll.poll(0), self._clock.now_s())
            self._report_deaths()
        except Exception as error:  # noqa: BLE001
            # Whatever ends this thread, the drill must learn that nobody watches any more, and say so in its verdict.
            with self._lock:
                self._seen.append(ObserverLost(self._clock.now_s(), f"the collector stopped: {error!r}"))
            self.failed = True
        finally:
            self._close()

    def _note_deaths(self, events: list[tuple[int, int]], now_s: float) -> None:
        for fd, _ in events:
            if fd == self._wake:
                continue
            if self._bell is not None and fd == self._bell.fileno():
                self._empty_bell()
                continue
            self._epoll.unregister(fd)
            # Reported after the process' last records are read, so that listeners hear them in their order.
            self._dead.append((self._by_pidfd.pop(fd), now_s))

    def _empty_bell(self) -> None:
        assert self._bell is not None
        with contextlib.suppress(BlockingIOError):
            while True:
                self._bell.recv(16)

    def _report_deaths(self) -> None:
        for source, at_s in self._dead:
            assert source.pidfd is not None
            status = exit_status(source.member.pid, source.member.started_ticks, source.pidfd)
            if source.is_member:
                self.add(ProcessExited(at_s, source.member, status.code, status.signal))
            os.close(source.pidfd)
            source.pidfd = None
        self._dead.clear()

    def _read_all(self) -> None:
        for name in os.listdir(self._probe_dir):
            if name not in self._sources and name not in self._strangers:
                self._open(name)
        for name, source in list(self._sources.items()):
            # Asked before reading: what a dead process wrote is all there, so one more reading is the last.
            gone = source.pidfd is None
            if not self._read(source) or gone:
                source.reader.close()
                del self._sources[name]
                self._strangers.add(name)

    def _open(self, name: str) -> None:
        if not name.endswith(SUFFIX):
            self._strangers.add(name)
            return
        try:
            member = member_of(name)
        except ValueError as error:
            self._strangers.add(name)
            self.add(ObserverLost(self._clock.now_s(), str(error)))
            return
        reader = RecordReader(self._probe_dir / name)
        source = _Source(member, reader, open_process(member.pid, member.started_ticks))
        self._sources[name] = source
        if source.pidfd is not None:
            self._by_pidfd[source.pidfd] = source
            self._epoll.register(source.pidfd, select.EPOLLIN)
            return
        # It died before it could be watched: its end is known, but neither when exactly nor how.
        at_s = self._clock.now_s()
        self._read(source)
        if source.is_member:
            self.add(ProcessExited(at_s, member, None, None))

    def _read(self, source: _Source) -> bool:
        """Read new records; False when the file cannot be read any further."""
        try:
            for record in source.reader.poll():
                received_s = self._clock.now_s()
                seen = convert(
                    record, source.member, lambda ns: self._clocks.to_tester_s(source.member.node, ns), received_s
                )
                if isinstance(seen, MemberJoined | RankHeld | StateLoaded | StepDone):
                    source.is_member = True
                self.add(seen)
        except ValueError as error:
            self.add(ObserverLost(self._clock.now_s(), str(error)))
            return False
        return True

    def _close(self) -> None:
        for source in self._sources.values():
            source.reader.close()
        for fd in self._by_pidfd:
            os.close(fd)
        self._sources.clear()
        self._by_pidfd.clear()
        self._epoll.close()
        os.close(self._wake)
        if self._bell is not None:
            self._bell.close()


def _bind(path: Path) -> socket.socket | None:
    if len(os.fsencode(path)) > _SOCKET_PATH_BYTES:
        return None
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        bell.bind(os.fspath(path))
    except OSError as error:
        bell.close()
        raise LaunchError(f"cannot make the bell socket {path}: {error}") from error
    return bell
