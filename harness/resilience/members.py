"""The members of one node, as their agent sees them: processes, links, slots and status pages."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.resilience import messages
from harness.resilience.control.events import UNKNOWN_CODE
from harness.resilience.memory import Region
from harness.resilience.stethoscope import StatusReader, create_page

STOP_S = 1.0


@dataclass(slots=True)
class Member:
    """One member process. `rank` is None for a spare."""

    serial: int
    pid: int
    pidfd: int
    link: socket.socket
    region: Region
    status: StatusReader
    rank: int | None = None
    gone: bool = False
    leaving: bool = False

    def send(self, kind: str, **fields: object) -> None:
        """Give an order. A member that has just died does not read it; its exit is reported anyway."""
        with contextlib.suppress(OSError):
            self.link.send(messages.encode({"is": kind, **fields}))

    def kill(self) -> None:
        """SIGKILL by pidfd: never another process that got the same pid."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)


@dataclass(slots=True)
class _Prewarmed:
    """A process that has loaded the program: started, then perhaps the node's fork server."""

    process: subprocess.Popen[bytes]
    pidfd: int
    link: socket.socket | None = None
    became_member: bool = False


@dataclass(slots=True)
class Members:
    """All of a node's members. Callbacks come on the event loop's thread."""

    node: str
    program: list[str]
    count: int
    on_message: Callable[[Member, messages.Message], None]
    on_exit: Callable[[Member, int], None]
    on_failure: Callable[[str], None]
    _by_serial: dict[int, Member] = field(default_factory=dict)
    _next_serial: int = 0
    _wanted: int = 0
    _capacity_bytes: int = 0
    _started: dict[int, _Prewarmed] = field(default_factory=dict)
    _server: _Prewarmed | None = None
    _token: str = ""
    _ending: bool = False
    _one_gone: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop = field(init=False)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the first process; the others are forked from it, or started like it."""
        self._loop = loop
        self._token = f"{self.node}-{uuid.uuid4().hex[:12]}"
        listener = messages.listen(self._token)
        loop.add_reader(listener, self._accept, listener)
        self._wanted = self.count
        if self.count:
            self._start_process(may_fork=True)

    # ------------------------------------------------------------------ asked by the agent

    def get(self, serial: int) -> Member | None:
        """A live member."""
        member = self._by_serial.get(serial)
        return member if member is not None and not member.gone else None

    def live(self) -> list[Member]:
        """All live members."""
        return [member for member in self._by_serial.values() if not member.gone]

    def holding(self) -> list[Member]:
        """Live members that hold a rank."""
        return [member for member in self.live() if member.rank is not None]

    def region_of(self, serial: int) -> Region | None:
        """A member's slots, also after its death."""
        member = self._by_serial.get(serial)
        return member.region if member is not None else None

    def release(self, serials: list[int]) -> None:
        """Forget dead members' slots."""
        for serial in serials:
            member = self._by_serial.get(serial)
            if member is not None and member.gone:
                del self._by_serial[serial]
                member.region.close()
                member.status.close()

    def add(self) -> str | None:
        """Make one more member: forked where there is a server, else started afresh.

        Returns what went wrong, or None.
        """
        if self._server is not None and self._server.link is not None:
            try:
                self._server.link.send(messages.encode({"is": "fork"}))
                return None
            except OSError:
                self._server = None
        self._wanted += 1
        if not any(started.link is None for started in self._started.values()):
            try:
                self._start_process(may_fork=True)
            except OSError as error:
                return str(error)
        return None

    async def end(self, *, leave_s: float, gently: bool) -> None:
        """End all. `gently`: ranks may run the end of their program as long as it takes.

        Spares and the server may not.
        """
        self._ending = True
        leaving = self.holding() if gently else []
        for member in self.live():
            if member not in leaving:
                member.send("stop" if member.rank is not None else "finish")
        for started in list(self._started.values()):
            self._dismiss(started)
        await self._all_gone(leaving)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(leave_s if gently else STOP_S):
                await self._all_gone(self.live())
        for member in self.live():
            member.kill()
        for started in self._started.values():
            if not started.became_member:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(started.pidfd, signal.SIGKILL)
                started.process.wait()

    async def _all_gone(self, members: list[Member]) -> None:
        while any(not member.gone for member in members):
            self._one_gone.clear()
            await self._one_gone.wait()

    def _dismiss(self, started: _Prewarmed) -> None:
        if started.link is not None and not started.became_member:
            with contextlib.suppress(OSError):
                started.link.send(messages.encode({"is": "stop"}))

    # ------------------------------------------------------------------ processes

    def _start_process(self, *, may_fork: bool) -> None:
        environment = {**os.environ, messages.AGENT_VARIABLE: self._token}
        if not may_fork:
            environment["RANKDRILL_FORK"] = "never"
        process = subprocess.Popen([sys.executable, *self.program], env=environment, stdin=subprocess.DEVNULL)
        started = _Prewarmed(process, os.pidfd_open(process.pid))
        self._started[process.pid] = started
        self._loop.add_reader(started.pidfd, self._process_ended, started)

    def _process_ended(self, started: _Prewarmed) -> None:
        self._loop.remove_reader(started.pidfd)
        os.close(started.pidfd)
        self._started.pop(started.process.pid, None)
        if started is self._server:
            self._server = None
        if started.became_member:
            return
        code = started.process.wait()
        if started.link is None and not self._ending:
            self.on_failure(f"the program ended with {_ending(code)} before it reached session.train()")

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            link, _ = listener.accept()
            link.setblocking(False)
            self._loop.add_reader(link, self._greet, link)

    def _greet(self, link: socket.socket) -> None:
        received = messages.receive(link)
        self._loop.remove_reader(link)
        pid, uid, _ = struct.unpack("iii", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if received is None or uid != os.getuid() or self._ending:
            link.close()
            return
        hello = received[0]
        if hello["forked"]:
            self._adopt(pid, link)
            return
        started = self._started.get(pid)
        if started is None:
            link.close()
            return
        started.link = link
        self._capacity_bytes = hello["state_bytes"]
        if hello["unsound"] is None:
            self._server = started
            link.send(messages.encode({"is": "serve"}))
            while self._wanted > 0:
                self._wanted -= 1
                link.send(messages.encode({"is": "fork"}))
            return
        started.became_member = True
        self._wanted -= 1
        self._adopt(pid, link)
        while self._wanted > 0:
            self._wanted -= 1
            self._start_process(may_fork=False)

    def _adopt(self, pid: int, link: socket.socket) -> None:
        serial = self._next_serial
        self._next_serial += 1
        name = f"rankdrill-{self.node}-{serial}"
        page = create_page(name)
        member = Member(
            serial, pid, os.pidfd_open(pid), link, Region.create(name, self._capacity_bytes), StatusReader(page)
        )
        self._by_serial[serial] = member
        self._loop.add_reader(link, self._readable, member)
        self._loop.add_reader(member.pidfd, self._died, member)
        socket.send_fds(link, [messages.encode({"is": "member"})], [member.region.fd, page])

    # ------------------------------------------------------------------ what members say and how they end

    def _readable(self, member: Member) -> None:
        try:
            received = messages.receive(member.link)
        except BlockingIOError:
            return
        if received is not None:
            message = received[0]
            member.leaving = member.leaving or message["is"] == "raised"
            self.on_message(member, message)
            return
        self._loop.remove_reader(member.link)
        if member.leaving or self._ending:
            return
        # The socket closes while a big process is still being taken down. It can no longer run, but be sure of it.
        member.kill()
        self._report(member, self._code(member))

    def _died(self, member: Member) -> None:
        self._drain(member)
        code = self._code(member)
        self._loop.remove_reader(member.pidfd)
        os.close(member.pidfd)
        self._report(member, code)

    def _drain(self, member: Member) -> None:
        """Read what a member said before it died."""
        while not member.gone and select.select([member.link], [], [], 0)[0]:
            received = messages.receive(member.link)
            if received is None:
                return
            self.on_message(member, received[0])

    def _code(self, member: Member) -> int:
        with contextlib.suppress(ChildProcessError):
            result = os.waitid(os.P_PIDFD, member.pidfd, os.WEXITED | os.WNOHANG)
            if result is not None:
                return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
        return UNKNOWN_CODE

    def _report(self, member: Member, code: int) -> None:
        if member.gone:
            return
        member.gone = True
        self._one_gone.set()
        self._loop.remove_reader(member.link)
        member.link.close()
        self.on_exit(member, code)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
