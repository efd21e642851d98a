"""A member's link to its agent: orders come in on a control thread, which also frees a stuck training thread."""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
import threading
from dataclasses import dataclass, field

from harness.resilience import messages
from harness.resilience.group import Group, Regroup, Rendezvous
from harness.resilience.memory import SnapshotError

EXIT_AGENT_GONE = 71
EXIT_STOPPED = 75
STUCK_S = 2.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """A rank in a generation, and the snapshot to load; `as_built` when nobody has trained yet."""

    generation: int
    rank: int
    world: int
    version: int
    as_built: bool


@dataclass(slots=True)
class _Orders:
    """What the control thread has received and the training thread has not yet acted on."""

    parked_for: int = 0
    assignment: Assignment | None = None
    state_of: int = 0
    state_error: str | None = None
    finished: bool = False
    group: Group | None = None
    rendezvous: dict[int, Rendezvous] = field(default_factory=dict)


class MemberLink:
    """Connects one member to its agent. Waiting methods raise Regroup when the generation is given up meanwhile."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._orders = _Orders()
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start the control thread (after the fork: a process with two threads must not be forked)."""
        threading.Thread(target=self._listen, name="rankdrill-control", daemon=True).start()

    def send(self, kind: str, **fields: object) -> None:
        """Tell the agent."""
        self._link.send(messages.encode({"is": kind, **fields}))

    # ------------------------------------------------------------------ training thread

    def wait_for_assignment(self) -> Assignment | None:
        """Wait until this member is to hold a rank; None when training is complete."""
        with self._changed:
            while True:
                orders = self._orders
                if orders.assignment is not None:
                    assignment, orders.assignment = orders.assignment, None
                    return assignment
                if orders.finished:
                    return None
                self._changed.wait()

    def open_rendezvous(self, assignment: Assignment) -> Rendezvous:
        """The store of a new generation."""
        rendezvous = Rendezvous(
            assignment.rank,
            lambda value: self.send(
                "publish", generation=assignment.generation, rank=assignment.rank, value=messages.to_text(value)
            ),
        )
        with self._changed:
            self._orders.rendezvous = {assignment.generation: rendezvous}
        return rendezvous

    def use_group(self, group: Group) -> None:
        """From now on an order to park frees this group. Raises Regroup if one is already there."""
        with self._changed:
            self._orders.group = group
            if self._orders.parked_for > group.generation:
                raise Regroup(f"generation {group.generation} was given up before it began")

    def drop_group(self) -> None:
        """No group is in use."""
        with self._changed:
            self._orders.group = None
            self._orders.rendezvous = {}

    def wait_for_state(self, generation: int) -> None:
        """Wait until the agreed snapshot lies in this member's region."""
        with self._changed:
            while self._orders.state_of < generation:
                self._check_generation(generation)
                self._changed.wait()
            if self._orders.state_error is not None:
                raise SnapshotError(self._orders.state_error)

    def wait_for_finish(self, generation: int) -> None:
        """Wait until every rank has completed the last step."""
        with self._changed:
            while not self._orders.finished:
                self._check_generation(generation)
                self._changed.wait()

    def check(self, generation: int) -> None:
        """Raise Regroup if this generation has been given up (a step without collectives would not notice)."""
        if self._orders.parked_for > generation:
            raise Regroup(f"generation {generation} was given up")

    def _check_generation(self, generation: int) -> None:
        if self._orders.parked_for > generation:
            raise Regroup(f"generation {generation} was given up")

    # ------------------------------------------------------------------ control thread

    def _listen(self) -> None:
        while True:
            received = messages.receive(self._link)
            if received is None:
                # The agent is gone, and with it the only one who may say that this member still holds its rank.
                os._exit(EXIT_AGENT_GONE)
            self._take(received[0])

    def _take(self, message: messages.Message) -> None:
        kind = message["is"]
        if kind == "stop":
            os._exit(EXIT_STOPPED)
        with self._changed:
            self._note(kind, message)
            group = self._orders.group
            self._changed.notify_all()
        if kind == "park" and group is not None and group.generation < message["generation"]:
            group.abandon()
            watch = threading.Timer(STUCK_S, self._complain, (group,))
            watch.daemon = True
            watch.start()

    def _complain(self, group: Group) -> None:
        """Say where training hangs that should have left its generation long ago; whoever reads the log needs it."""
        with self._changed:
            stuck = self._orders.group is group
        if stuck:
            sys.stderr.write(f"member {os.getpid()} is still in generation {group.generation}, here:\n")
            sys.stderr.flush()
            faulthandler.dump_traceback(file=sys.stderr, all_threads=True)

    def _note(self, kind: str, message: messages.Message) -> None:
        orders = self._orders
        if kind == "park":
            orders.parked_for = message["generation"]
        elif kind == "form":
            orders.assignment = Assignment(
                message["generation"], message["rank"], message["world"], message["version"], message["as_built"]
            )
        elif kind == "state":
            orders.state_of, orders.state_error = message["generation"], message["error"]
        elif kind == "addresses":
            rendezvous = orders.rendezvous.get(message["generation"])
            if rendezvous is not None:
                rendezvous.fill({int(rank): messages.from_text(value) for rank, value in message["values"].items()})
        elif kind == "finish":
            orders.finished = True
