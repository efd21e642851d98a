"""The process around the decisions: sockets in and out, the clock, claims. It decides nothing itself.

    python -m harness.resilience.controller --world 4 --spares 1 --nodes 3 --address-file FILE

Exit code 0: training is complete. 1: stopped, with a reason on standard error and in the probe.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import signal
import socket
import sys
import time
from pathlib import Path

from harness.probe import api as probe
from harness.resilience import wire
from harness.resilience.address import own_host
from harness.resilience.control.commands import Alarm, Command
from harness.resilience.control.events import Event, NodeJoined, NodeLost, Ticked
from harness.resilience.control.machine import Machine, State
from harness.resilience.limits import PRESETS, Limits
from harness.resilience.links import NOBODY, LineLink

PORTS_TRIED = 16


class Controller:
    """Feeds the machine with what agents say and sends out what it decides."""

    def __init__(self, machine: Machine, limits: Limits) -> None:
        self._machine = machine
        self._limits = limits
        self._agents: dict[int, LineLink] = {}
        self._node_numbers: dict[str, int] = {}
        self._heard_s: dict[int, float] = {}
        self._longest_gap_s = 0.0
        self._published: dict[int, str] = {}
        self._published_for = 0
        self._ended = asyncio.Event()
        self._alone = asyncio.Event()

    async def serve(self, listener: socket.socket) -> int:
        """Run until training is complete or given up; return the exit code."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: LineLink(self._on_line, self._on_lost), sock=listener)
        ticker = asyncio.create_task(self._tick())
        await self._ended.wait()
        ticker.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.leave_s):
                await self._alone.wait()
        server.close()
        return 0 if self._machine.state is State.FINISHED else 1

    def _on_line(self, link: LineLink, line: bytes) -> None:
        """Take a line from an agent. Raises ValueError for one that is not of ours."""
        if line:
            message = wire.decode(line)
            if isinstance(message, NodeJoined):
                link.node = self._node_numbers.setdefault(message.name, len(self._node_numbers))
                self._agents[link.node] = link
            if link.node == NOBODY:
                raise ValueError("the first line of a connection must say which node it is")
            self._take(link.node, message)
        if link.node != NOBODY:
            self._hear(link.node)

    def _on_lost(self, link: LineLink, error: Exception | None) -> None:
        # A broken connection is not a death: the agent connects again, or its silence exceeds the limit.
        if error is not None:
            print(f"controller: connection of node {link.node} broke: {error}", file=sys.stderr, flush=True)
        if self._agents.get(link.node) is link:
            del self._agents[link.node]
        if self._ended.is_set() and not self._agents:
            self._alone.set()

    def _take(self, node: int, message: object) -> None:
        if isinstance(message, wire.Digests):
            return
        if isinstance(message, wire.Published):
            self._publish(message)
            return
        # Agents do not know their number; it is this connection's.
        object.__setattr__(message, "node", node)
        # What is neither digest nor address is an event, or decode would have refused it.
        self._handle(message)  # type: ignore[arg-type]

    def _publish(self, message: wire.Published) -> None:
        """Collect the ranks' addresses of the current generation; hand them out once all are there."""
        if message.generation != self._machine.generation:
            return
        if self._published_for != message.generation:
            self._published_for, self._published = message.generation, {}
        self._published[message.rank] = message.value
        if len(self._published) == self._machine.world.size:
            values = {str(rank): value for rank, value in self._published.items()}
            line = wire.encode(wire.Addresses(generation=message.generation, values=values))
            for node in self._machine.world.holder_nodes():
                self._send(node, line)

    def _handle(self, event: Event) -> None:
        for command in self._machine.handle(event, time.monotonic()):
            self._perform(command)
        if self._machine.state in (State.FINISHED, State.STOPPED) and not self._ended.is_set():
            if self._machine.reason is not None:
                probe.stopped(self._machine.reason)
                print(f"controller: stopped: {self._machine.reason}", file=sys.stderr, flush=True)
            self._ended.set()

    def _perform(self, command: Command) -> None:
        if isinstance(command, Alarm):
            probe.claim(
                command.kind,
                rank=command.rank,
                pid=command.pid,
                node=command.node,
                generation=command.generation,
                confirmed=command.confirmed,
                detail=command.detail,
            )
            return
        self._send(command.node, wire.encode(command))

    def _send(self, node: int, line: bytes) -> None:
        link = self._agents.get(node)
        if link is not None:
            link.send(line)

    def _hear(self, node: int) -> None:
        now_s = time.monotonic()
        if node in self._heard_s:
            self._longest_gap_s = max(self._longest_gap_s * 0.999, now_s - self._heard_s[node])
        self._heard_s[node] = now_s

    async def _tick(self) -> None:
        last_s = time.monotonic()
        while True:
            await asyncio.sleep(self._limits.heartbeat_s)
            now_s = time.monotonic()
            # While this process itself did not run it could hear nobody: that is no silence of theirs.
            slept_s = now_s - last_s - self._limits.heartbeat_s
            if slept_s > self._limits.heartbeat_s:
                self._heard_s = {node: heard_s + slept_s for node, heard_s in self._heard_s.items()}
            last_s = now_s
            # On a machine that starves its agents for a while, the limit grows with the gaps that turned out to be
            # harmless.
            silence_s = max(self._limits.node_lost_s, 3 * self._longest_gap_s)
            for node, heard_s in list(self._heard_s.items()):
                if now_s - heard_s > silence_s:
                    del self._heard_s[node]
                    self._handle(NodeLost(node=node, reason=f"its agent was silent for {now_s - heard_s:.2f} s"))
            self._handle(Ticked())


def bind(port: int) -> socket.socket:
    """Listen on `port` (0: any); where it is taken, on the next free one, else on any.

    The other listener is not touched.
    """
    candidates = [*range(port, min(port + PORTS_TRIED, 65536)), 0] if port else [0]
    host = own_host()
    for candidate in candidates:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(1024)
            return listener
        except OSError as error:
            listener.close()
            print(f"controller: port {candidate} is not to be had ({error.strerror}), trying another", file=sys.stderr)
    raise SystemExit(f"controller: no port could be opened on {host}")


def publish_address(path: Path, listener: socket.socket) -> None:
    """Write host:port for the launcher, all at once."""
    host, port = listener.getsockname()[:2]
    temporary = path.with_suffix(".tmp")
    temporary.write_text(f"{host}:{port}\n")
    temporary.rename(path)


def main() -> int:
    """Run one controller."""
    parser = argparse.ArgumentParser(prog="controller")
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--spares", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--limits", choices=sorted(PRESETS), default="production")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--address-file", type=Path, required=True)
    options = parser.parse_args()
    limits = PRESETS[options.limits]
    faulthandler.register(signal.SIGUSR1)
    listener = bind(options.port)
    publish_address(options.address_file, listener)
    machine = Machine(world=options.world, spares=options.spares, limits=limits)
    return asyncio.run(Controller(machine, limits).serve(listener))


if __name__ == "__main__":
    raise SystemExit(main())
