"""A stack and its workload without torch: controller, agents, and members that step in lock-step over a socket.

It speaks through harness.probe.api like a real stack, so that the harness can be tested end to end in seconds.
Started as `stack_program.py controller|agent|member …` (see stack_fake.py); the workload's arguments choose how a
member misbehaves.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from harness.probe import api as probe

if "--raise-at-import" in sys.argv and "member" in sys.argv:
    raise RuntimeError("the training program cannot be imported")


@dataclass
class _Link:
    """The controller's end of one member's connection."""

    connection: socket.socket
    node: str = ""
    pid: int = 0
    rank: int | None = None

    def tell(self, *words: object) -> None:
        with contextlib.suppress(OSError):
            self.connection.sendall((" ".join(map(str, words)) + "\n").encode())


class _Controller:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.events: queue.Queue[tuple[_Link, list[str]]] = queue.Queue()
        self.links: list[_Link] = []
        self.generation = 0
        self.step = 0
        self.done: list[int] = []
        self.vacant: list[int] = []

    def run(self) -> int:
        listener = socket.create_server(("127.0.0.1", self.options.port))
        host, port = listener.getsockname()
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        waiting = Path(f"{self.options.address_file}.new")
        waiting.write_text(f"{host}:{port}\n")
        waiting.rename(self.options.address_file)
        while True:
            link, words = self.events.get()
            if (code := self._handle(link, words)) is not None:
                return code

    def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._listen, args=(_Link(connection),), daemon=True).start()

    def _listen(self, link: _Link) -> None:
        with contextlib.suppress(OSError), link.connection.makefile() as lines:
            for line in lines:
                self.events.put((link, line.split()))
        self.events.put((link, ["lost"]))

    def _handle(self, link: _Link, words: list[str]) -> int | None:
        if words[0] == "hello":
            link.node, link.pid = words[1], int(words[2])
            self.links.append(link)
            if self.step == 0 and len(self.links) == self.options.world + self.options.spares:
                self._begin()
            else:
                self._fill()
        elif words[0] == "done" and int(words[1]) == self.step and link.rank is not None:
            self.done.append(link.rank)
        elif words[0] == "raised":
            probe.stopped("the training program raised")
            return self._end(1)
        elif words[0] == "lost":
            self._lost(link)
            if self.vacant and self.options.pause_forever:
                return None
        if len(self.done) == self.options.world:
            return self._next()
        return None

    def _begin(self) -> None:
        for rank, link in enumerate(sorted(self.links, key=lambda each: each.pid)[: self.options.world]):
            self._hold(link, rank)
        self._next()

    def _hold(self, link: _Link, rank: int) -> None:
        link.rank = rank
        link.tell("hold", rank, self.options.world, self.generation, max(0, self.step - 1))

    def _next(self) -> int | None:
        self.step += 1
        self.done = []
        if self.step > self.options.steps:
            return self._end(0)
        for link in self.links:
            if link.rank is not None:
                link.tell("go", self.step, self.generation)
        return None

    def _lost(self, link: _Link) -> None:
        if link not in self.links:
            return
        self.links.remove(link)
        if link.rank is None:
            return
        if not self.options.silent:
            probe.claim("crash", rank=link.rank, pid=link.pid, node=link.node, generation=self.generation)
        self.vacant.append(link.rank)
        self._fill()

    def _fill(self) -> None:
        spares = [link for link in self.links if link.rank is None]
        while self.vacant and spares:
            rank, spare = self.vacant.pop(0), spares.pop(0)
            self.generation += 1
            self._hold(spare, rank)
            if rank not in self.done:
                spare.tell("go", self.step, self.generation)

    def _end(self, code: int) -> int:
        for link in self.links:
            link.tell("finish" if code == 0 and link.rank is not None else "exit", self.options.steps)
        while self.links:
            link, words = self.events.get()
            if words[0] == "lost" and link in self.links:
                self.links.remove(link)
        return code


def _agent(options: argparse.Namespace, command: list[str]) -> int:
    argv = [sys.executable, command[0], "member", "--controller", options.controller, *command[1:]]
    members = [subprocess.Popen(argv) for _ in range(options.members)]
    while members:
        pid, status = os.waitpid(-1, 0)
        member = next(each for each in members if each.pid == pid)
        members.remove(member)
        member.returncode = os.waitstatus_to_exitcode(status)
        if member.returncode > 0:
            for other in members:
                other.kill()
                other.wait()
            return member.returncode
        if member.returncode < 0 and options.restock:
            members.append(subprocess.Popen(argv))
    return 0


class _Array:
    """As much of a tensor as the probe's weights() asks for."""

    dtype = "float32"
    shape = (1,)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def detach(self) -> _Array:
        return self

    cpu = contiguous = numpy = detach

    def tobytes(self) -> bytes:
        return self._data


def _member(options: argparse.Namespace) -> int:
    host, port = options.controller.split(":")
    connection = socket.create_connection((host, int(port)))
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rank = world = generation = -1
    probe.joined("member")
    connection.sendall(f"hello {os.environ.get(probe.NODE_VARIABLE, 'n0')} {os.getpid()}\n".encode())
    for line in connection.makefile():
        order, *words = line.split()
        if order == "hold":
            rank, world, generation, step = map(int, words)
            probe.held(rank, world, generation)
            probe.loaded(step, rank=rank, generation=generation)
        elif order == "go":
            step, generation = map(int, words)
            try:
                _train(options, step, rank, world, generation)
            except ValueError as error:
                probe.raised(error, rank=rank, step=step)
                connection.sendall(b"raised\n")
                continue
            connection.sendall(f"done {step}\n".encode())
        elif order == "finish":
            data = hashlib.sha256(f"{options.seed} {options.steps} {options.salt}".encode()).digest()
            probe.weights({"w": _Array(data)}, step=options.steps, rank=rank)
            probe.finished(options.steps, rank=rank)
            return 0
        elif order == "exit":
            return 0
    return 0


def _train(options: argparse.Namespace, step: int, rank: int, world: int, generation: int) -> None:
    started_ns = time.monotonic_ns()
    if options.flood_bytes:
        sys.stdout.write("x" * (options.flood_bytes - 1) + "\n")
        sys.stdout.flush()
    if step == options.exit_at_step and rank == 0:
        sys.stderr.write("giving up without a word to the tester\n")
        os._exit(5)
    select.select([], [], [], options.step_s)
    if step == options.raise_at_step:
        raise ValueError(f"bad value at step {step}")
    ids = range((step - 1) * world * 2 + rank * 2, (step - 1) * world * 2 + rank * 2 + 2)
    probe.step(
        step,
        rank=rank,
        world=world,
        generation=generation,
        samples=ids,
        loss=1.0 / step,
        started_ns=started_ns,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    roles = parser.add_subparsers(dest="part", required=True)
    controller = roles.add_parser("controller")
    for name in ("--world", "--spares", "--nodes", "--steps"):
        controller.add_argument(name, type=int)
    controller.add_argument("--port", type=int, default=0)
    controller.add_argument("--address-file")
    controller.add_argument("--silent", action="store_true")
    controller.add_argument("--pause-forever", action="store_true")
    agent = roles.add_parser("agent")
    agent.add_argument("--members", type=int)
    agent.add_argument("--controller")
    agent.add_argument("--restock", action="store_true")
    member = roles.add_parser("member")
    member.add_argument("--controller")
    member.add_argument("--seed", type=int, default=0)
    member.add_argument("--steps", type=int, default=0)
    member.add_argument("--step-s", type=float, default=0.02)
    member.add_argument("--raise-at-step", type=int, default=-1)
    member.add_argument("--exit-at-step", type=int, default=-1)
    member.add_argument("--flood-bytes", type=int, default=0)
    member.add_argument("--ignore-term", type=int, default=0)
    member.add_argument("--salt", default="")
    return parser


def main() -> int:
    argv, command = sys.argv[1:], []
    if argv[0] == "agent":
        cut = argv.index("--")
        argv, command = argv[:cut], argv[cut + 1 :]
    options = _parser().parse_args(argv)
    if options.part == "controller":
        return _Controller(options).run()
    return _agent(options, command) if options.part == "agent" else _member(options)


if __name__ == "__main__":
    sys.exit(main())
