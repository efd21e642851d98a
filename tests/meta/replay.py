"""Drive the controller's decisions through one fixed trace and print every command: `python -m tests.meta.replay`.

Nodes here do at once, and in order, what they are told. Two ranks die, a node without ranks is lost and the program
raises once, so that most of the transition table is passed through.
"""

from __future__ import annotations

import dataclasses
from collections import deque

import numpy as np

from harness.resilience.control import commands as cmd
from harness.resilience.control import events as ev
from harness.resilience.control.machine import Machine
from harness.resilience.limits import PRESETS

# Names whose order is neither that of the numbers nor that of arrival.
NODES = {0: "rack2-b", 1: "rack1-a", 2: "rack1-c", 3: "rack2-d"}
SIGKILL = -9


class Replay:
    """A machine and nodes that obey it; `lines` is what it said."""

    def __init__(self) -> None:
        self.machine = Machine(world=6, spares=2, limits=PRESETS["ci"])
        self.lines: list[str] = []
        self._now_s = 0.0
        self._waiting: deque[ev.Event] = deque()
        self._held: dict[int, dict[int, int]] = {node: {} for node in NODES}
        self._next_serial = dict.fromkeys(NODES, 0)
        self._generation = 0
        self._version = 0

    def say(self, event: ev.Event) -> None:
        """Give the machine one event, then all that follows from its commands."""
        self._waiting.append(event)
        while self._waiting:
            self._now_s += 0.001
            for command in self.machine.handle(self._waiting.popleft(), self._now_s):
                self.lines.append(written(command))
                self._obey(command)

    def start_members(self, node: int, count: int) -> ev.MembersReady:
        first = self._next_serial[node]
        self._next_serial[node] += count
        members = np.arange(first, first + count, dtype=np.int64)
        return ev.MembersReady(node=node, members=members, pids=members + 1000 * (node + 1))

    def step_to(self, version: int) -> None:
        """Every rank completes its steps up to `version`; nobody tells the machine, who need not know."""
        self._version = version

    def kill(self, rank: int) -> None:
        node, serial = next((at, who) for at, held in self._held.items() for who, has in held.items() if has == rank)
        del self._held[node][serial]
        newest, previous = ev.ints(self._version), ev.ints(self._version - 1)
        self.say(ev.MembersExited(node, ev.ints(serial), ev.ints(SIGKILL), newest, previous))

    def finish(self) -> None:
        for node, held in self._held.items():
            if held:
                self.say(ev.MembersFinished(node, self._generation, ev.ints(*held)))

    def _obey(self, command: cmd.Command) -> None:
        match command:
            case cmd.Park(node=node):
                held = self._held[node]
                versions = np.full(len(held), self._version, dtype=np.int64)
                self._waiting.append(ev.MembersParked(node, self._generation, ev.ints(*held), versions, versions - 1))
            case cmd.Form(node=node, generation=generation, members=members, ranks=ranks):
                self._generation = generation
                self._held[node] = dict(zip(members.tolist(), ranks.tolist(), strict=True))
                self._waiting.append(ev.MembersFormed(node, generation, members))
            case cmd.Restock(node=node, count=count):
                self._waiting.append(self.start_members(node, count))


def written(command: cmd.Command) -> str:
    """Return a command as one line, arrays as lists."""
    fields = ((field.name, getattr(command, field.name)) for field in dataclasses.fields(command))
    plain = (f"{name}={value.tolist() if isinstance(value, np.ndarray) else value!r}" for name, value in fields)
    return f"{type(command).__name__}({', '.join(plain)})"


def replay() -> list[str]:
    """Return every command of the trace."""
    run = Replay()
    for node, name in NODES.items():
        run.say(ev.NodeJoined(node, name, f"127.0.0.1:{4000 + node}"))
    for node in NODES:
        run.say(run.start_members(node, 2))
    run.step_to(20)
    run.kill(2)
    run.say(ev.MembersRaised(1, ev.ints(0), ("ValueError at step 21",)))
    run.say(ev.Ticked())
    run.step_to(27)
    run.kill(0)
    run.finish()
    return run.lines


if __name__ == "__main__":
    print("\n".join(replay()))  # noqa: T201 - its output is what the test compares
