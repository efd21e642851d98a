"""One a node: starts members, waits for their ends on pidfds, holds the node's snapshot memory, relays orders.

    python -m harness.resilience.agent --controller HOST:PORT --node n0 --members 2 --world 4 -- PROGRAM [ARGUMENT …]

It decides nothing: what it sees goes to the controller as events, what the controller decides comes back as commands.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from harness.errors import HarnessError
from harness.resilience import messages, wire
from harness.resilience.control import commands as cmd
from harness.resilience.control import events as ev
from harness.resilience.limits import PRESETS, Limits
from harness.resilience.links import HEARTBEAT, LineLink
from harness.resilience.members import Member, Members
from harness.resilience.transfer import SnapshotServer, fetch

PR_SET_CHILD_SUBREAPER = 36
RECONNECT_S = 0.1
DIGEST_S = 1.0


class Agent:
    """Relays between one controller and this node's members."""

    def __init__(self, *, node: str, controller: str, count: int, limits: Limits, program: list[str]) -> None:
        self._node = node
        self._controller = controller
        self._limits = limits
        self._link: LineLink | None = None
        self._disconnected = asyncio.Event()
        self._unsent: list[bytes] = []
        self._ended = asyncio.Event()
        self._finished = False
        self._left = False
        self._fetches: dict[int, asyncio.Task[None]] = {}
        self.members = Members(
            node, program, count, on_message=self._on_member, on_exit=self._on_exit, on_failure=self._on_failure
        )
        self._snapshots = SnapshotServer(self.members.region_of)
        self._commands: dict[type, Callable[[Any], None]] = {
            cmd.Park: self._park,
            cmd.Form: self._form,
            cmd.Release: lambda command: self.members.release(command.members.tolist()),
            cmd.Restock: self._restock,
            cmd.Finish: self._finish,
            cmd.Stop: self._stop,
            wire.Addresses: self._addresses,
        }

    async def run(self) -> int:
        """Live until the controller ends the run; return the exit code."""
        address = await self._snapshots.start()
        self.members.start(asyncio.get_running_loop())
        link = asyncio.create_task(self._keep_connected(address))
        beat = asyncio.create_task(self._heartbeat())
        await self._ended.wait()
        beat.cancel()
        if self._left:
            link.cancel()
        await self.members.end(leave_s=self._limits.leave_s, gently=self._finished)
        link.cancel()
        return 0 if self._finished else 1

    def leave(self) -> None:
        """End this node's members and leave, as if killed, so that every signal has the same outcome."""
        self._left = True
        if self._link is not None:
            self._link.abort()
            self._link = None
        self._ended.set()

    # ------------------------------------------------------------------ the controller's side

    async def _keep_connected(self, snapshot_address: str) -> None:
        """Connect again whenever the connection breaks: a reset is not a death."""
        loop = asyncio.get_running_loop()
        host, _, port = self._controller.rpartition(":")
        joined = wire.encode(ev.NodeJoined(node=0, name=self._node, address=snapshot_address))
        while True:
            self._disconnected.clear()
            try:
                _, link = await loop.create_connection(lambda: LineLink(self._on_line, self._on_lost), host, int(port))
            except OSError:
                await asyncio.sleep(RECONNECT_S)
                continue
            for line in (joined, *self._unsent):
                link.send(line)
            self._unsent = []
            self._link = link
            await self._disconnected.wait()
            await asyncio.sleep(RECONNECT_S)

    def _on_line(self, link: LineLink, line: bytes) -> None:
        command = wire.decode(line)
        self._commands[type(command)](command)

    def _on_lost(self, link: LineLink, error: Exception | None) -> None:
        if error is not None and not self._ended.is_set():
            print(f"agent {self._node}: connection to the controller broke: {error}", file=sys.stderr, flush=True)
        if self._link in (None, link):
            self._link = None
            self._disconnected.set()

    def _tell(self, message: object) -> None:
        line = wire.encode(message)
        if self._link is None:
            self._unsent.append(line)
        else:
            self._link.send(line)

    async def _heartbeat(self) -> None:
        """Say often that the agent lives, and every second what its members are doing."""
        told_s = 0.0
        while True:
            if self._link is not None:
                now_s = asyncio.get_running_loop().time()
                if now_s - told_s >= DIGEST_S:
                    told_s = now_s
                    self._tell(self._digests())
                else:
                    self._link.send(HEARTBEAT)
            await asyncio.sleep(self._limits.heartbeat_s)

    def _digests(self) -> wire.Digests:
        held = self.members.live()
        return wire.Digests(
            node=0,
            members=[member.serial for member in held],
            phases=[member.status.phase() for member in held],
            digests=[list(member.status.digest()) for member in held],
        )

    # ------------------------------------------------------------------ commands

    def _park(self, command: cmd.Park) -> None:
        for member in self.members.holding():
            member.send("park", generation=command.generation)

    def _form(self, command: cmd.Form) -> None:
        for place, serial in enumerate(command.members.tolist()):
            member = self.members.get(serial)
            if member is None:
                continue
            member.rank = int(command.ranks[place])
            source_node = int(command.source_nodes[place])
            member.send(
                "form",
                generation=command.generation,
                rank=member.rank,
                world=command.world,
                version=command.version,
                as_built=source_node < 0,
            )
            if source_node >= 0:
                source = int(command.source_members[place])
                self._bring_state(member, command, source, command.source_addresses[place])

    def _bring_state(self, member: Member, command: cmd.Form, source: int, address: str) -> None:
        if (address, source) == (self._snapshots.address, member.serial):
            member.send("state", generation=command.generation, error=None)
            return
        former = self._fetches.pop(member.serial, None)
        if former is not None:
            former.cancel()
        self._fetches[member.serial] = asyncio.create_task(
            self._fetch(member, command.generation, command.version, source, address)
        )

    async def _fetch(self, member: Member, generation: int, version: int, source: int, address: str) -> None:
        error: str | None = None
        try:
            header, meta, payload = await fetch(address, member=source, version=version)
            member.region.write(header, meta, payload)
        except (HarnessError, OSError, ValueError, asyncio.IncompleteReadError) as problem:
            error = f"snapshot {version} of member {source} at {address} could not be fetched: {problem}"
        member.send("state", generation=generation, error=error)

    def _addresses(self, command: wire.Addresses) -> None:
        for member in self.members.holding():
            member.send("addresses", generation=command.generation, values=command.values)

    def _restock(self, command: cmd.Restock) -> None:
        for _ in range(command.count):
            problem = self.members.add()
            if problem is not None:
                self._tell(ev.RestockFailed(node=0, reason=problem))

    def _finish(self, command: cmd.Finish) -> None:
        self._finished = True
        for member in self.members.live():
            member.send("finish")
        self._ended.set()

    def _stop(self, command: cmd.Stop) -> None:
        print(f"agent {self._node}: stopped: {command.reason}", file=sys.stderr, flush=True)
        self._ended.set()

    # ------------------------------------------------------------------ the members' side

    def _on_member(self, member: Member, message: messages.Message) -> None:
        kind = message["is"]
        serial = ev.ints(member.serial)
        if kind == "ready":
            self._tell(ev.MembersReady(node=0, members=serial, pids=ev.ints(member.pid)))
        elif kind == "parked":
            newest, previous = member.region.versions()
            self._tell(
                ev.MembersParked(
                    node=0,
                    left_generation=message["left"],
                    members=serial,
                    newest=ev.ints(newest),
                    previous=ev.ints(previous),
                )
            )
        elif kind == "publish":
            self._tell(
                wire.Published(node=0, generation=message["generation"], rank=message["rank"], value=message["value"])
            )
        elif kind == "formed":
            self._tell(ev.MembersFormed(node=0, generation=message["generation"], members=serial))
        elif kind == "finished":
            self._tell(ev.MembersFinished(node=0, generation=message["generation"], members=serial))
        elif kind == "raised":
            self._tell(ev.MembersRaised(node=0, members=serial, fingerprints=(message["fingerprint"],)))

    def _on_failure(self, reason: str) -> None:
        self._tell(ev.RestockFailed(node=0, reason=reason))

    def _on_exit(self, member: Member, code: int) -> None:
        fetching = self._fetches.pop(member.serial, None)
        if fetching is not None:
            fetching.cancel()
        newest, previous = member.region.versions()
        self._tell(
            ev.MembersExited(
                node=0,
                members=ev.ints(member.serial),
                codes=ev.ints(code),
                newest=ev.ints(newest),
                previous=ev.ints(previous),
            )
        )


def become_subreaper() -> None:
    """Members are forked twice; this makes the agent their parent, so that it can wait for them."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


async def _run(options: argparse.Namespace) -> int:
    agent = Agent(
        node=options.node,
        controller=options.controller,
        count=options.members,
        limits=PRESETS[options.limits],
        program=options.program,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.leave)
    return await agent.run()


def main() -> int:
    """Run one agent."""
    parser = argparse.ArgumentParser(prog="agent")
    parser.add_argument("--controller", required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--members", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--limits", choices=sorted(PRESETS), default="production")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    faulthandler.register(signal.SIGUSR1)
    os.environ.setdefault("RANKDRILL_NODE", options.node)
    # Members inherit what they must know before they hold a rank.
    os.environ[messages.WORLD_VARIABLE] = str(options.world)
    os.environ[messages.CONNECT_VARIABLE] = str(PRESETS[options.limits].form_s)
    become_subreaper()
    return asyncio.run(_run(options))


if __name__ == "__main__":
    raise SystemExit(main())
