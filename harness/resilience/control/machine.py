"""The controller's decisions: events and `now_s` in, commands out. No clock, no I/O.

Rules
1. A generation is one membership of the group. It only grows; a member of an older one is never listened to again.
2. A rank has at most one live holder. A vacancy is filled only after its holder's exit was reported.
3. Healthy ranks are parked, never restarted: they keep process, model and memory.
4. A new generation forms only when every live holder is parked and every vacancy has a spare.
5. All ranks load the newest snapshot that every rank holds, survivors included.
6. Nothing is retried for ever: a second failure with the same fingerprint is the program's, and stops the run.

States
    STARTING   members are coming up            PARKING   survivors leave the old generation
    FORMING    a generation is being built      TRAINING  steps are made
    FINISHED   training is complete             STOPPED   given up, with a reason
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from harness.resilience.control import events as ev
from harness.resilience.control.commands import Alarm, Command, Finish, Form, Park, Release, Restock, Stop
from harness.resilience.control.restore import AS_BUILT, NONE, agreed_version
from harness.resilience.control.world import VACANT, World, key_node, key_serial, member_key
from harness.resilience.limits import Limits


class State(StrEnum):
    """Where the world stands."""

    STARTING = "starting"
    FORMING = "forming"
    TRAINING = "training"
    PARKING = "parking"
    FINISHED = "finished"
    STOPPED = "stopped"


# state -> event -> (handler, states it may lead to). What is not listed is ignored: it comes from an older time.
TRANSITIONS: dict[State, dict[type, tuple[str, tuple[State, ...]]]] = {
    State.STARTING: {
        ev.NodeJoined: ("_on_node_joined", (State.STARTING,)),
        ev.NodeLost: ("_on_node_lost", (State.STOPPED,)),
        ev.MembersReady: ("_on_ready", (State.STARTING, State.FORMING)),
        ev.MembersExited: ("_on_exited", (State.STARTING, State.STOPPED)),
        ev.MembersRaised: ("_on_raised", (State.STARTING, State.STOPPED)),
        ev.RestockFailed: ("_on_restock_failed", (State.STARTING, State.STOPPED)),
        ev.Ticked: ("_on_ticked", (State.STARTING, State.STOPPED)),
    },
    State.FORMING: {
        ev.NodeJoined: ("_on_node_joined", (State.FORMING,)),
        ev.NodeLost: ("_on_node_lost", (State.FORMING, State.STOPPED)),
        ev.MembersReady: ("_on_ready", (State.FORMING,)),
        ev.MembersExited: ("_on_exited", (State.FORMING, State.PARKING, State.STOPPED)),
        ev.MembersParked: ("_on_parked", (State.FORMING, State.PARKING, State.STOPPED)),
        ev.MembersFormed: ("_on_formed", (State.FORMING, State.TRAINING)),
        ev.MembersRaised: ("_on_raised", (State.FORMING, State.STOPPED)),
        ev.RestockFailed: ("_on_restock_failed", (State.FORMING,)),
        ev.Ticked: ("_on_ticked", (State.FORMING, State.PARKING, State.STOPPED)),
    },
    State.TRAINING: {
        ev.NodeJoined: ("_on_node_joined", (State.TRAINING,)),
        ev.NodeLost: ("_on_node_lost", (State.TRAINING, State.STOPPED)),
        ev.MembersReady: ("_on_ready", (State.TRAINING,)),
        ev.MembersExited: ("_on_exited", (State.TRAINING, State.PARKING, State.FORMING, State.STOPPED)),
        ev.MembersParked: ("_on_parked", (State.TRAINING, State.PARKING, State.FORMING, State.STOPPED)),
        ev.MembersFinished: ("_on_finished", (State.TRAINING, State.FINISHED)),
        ev.MembersRaised: ("_on_raised", (State.TRAINING, State.STOPPED)),
        ev.RestockFailed: ("_on_restock_failed", (State.TRAINING,)),
        ev.Ticked: ("_on_ticked", (State.TRAINING,)),
    },
    State.PARKING: {
        ev.NodeJoined: ("_on_node_joined", (State.PARKING,)),
        ev.NodeLost: ("_on_node_lost", (State.PARKING, State.STOPPED)),
        ev.MembersReady: ("_on_ready", (State.PARKING, State.FORMING, State.STOPPED)),
        ev.MembersExited: ("_on_exited", (State.PARKING, State.FORMING, State.STOPPED)),
        ev.MembersParked: ("_on_parked", (State.PARKING, State.FORMING, State.STOPPED)),
        ev.MembersRaised: ("_on_raised", (State.PARKING, State.STOPPED)),
        ev.RestockFailed: ("_on_restock_failed", (State.PARKING, State.STOPPED)),
        ev.Ticked: ("_on_ticked", (State.PARKING, State.STOPPED)),
    },
    State.FINISHED: {},
    State.STOPPED: {},
}

FORM_TRIES = 3
IDLE_EXITS_ALLOWED = 3


class Machine:
    """One run's decisions. `handle` is the only way in; the attributes are for reading."""

    def __init__(self, *, world: int, spares: int, limits: Limits) -> None:
        self.state = State.STARTING
        self.generation = 0
        self.reason: str | None = None
        self.world = World(world)
        self._spares = spares
        self._limits = limits
        self._parked = np.zeros(world, dtype=bool)
        self._formed = np.zeros(world, dtype=bool)
        self._done = np.zeros(world, dtype=bool)
        self._raised_before: dict[str, str] = {}
        self._to_release: list[int] = []
        self._coming: dict[int, int] = {}
        self._idle_exits = 0
        self._form_tries = 0
        self._version = AS_BUILT
        self._last_formed = 0
        self._since_s: float | None = None
        self._out: list[Command] = []

    def handle(self, event: ev.Event, now_s: float) -> list[Command]:
        """Take one event; return what is to be done, in order."""
        if self._since_s is None:
            self._since_s = now_s
        entry = TRANSITIONS[self.state].get(type(event))
        if entry is None:
            return []
        name, allowed = entry
        self._out = []
        handler: Callable[[ev.Event, float], None] = getattr(self, name)
        handler(event, now_s)
        assert self.state in allowed, f"{name} led to {self.state}, which the table does not list"
        return self._out

    # ------------------------------------------------------------------ who is there

    def _on_node_joined(self, event: ev.NodeJoined, now_s: float) -> None:
        self.world.names[event.node] = event.name
        self.world.addresses[event.node] = event.address

    def _on_ready(self, event: ev.MembersReady, now_s: float) -> None:
        self.world.add_ready(event.node, event.members, event.pids)
        waited_for = self._coming.get(event.node, 0)
        self._coming[event.node] = max(0, waited_for - len(event.members))
        if self.state is State.STARTING:
            if len(self.world.ready) >= self.world.size + self._spares:
                self._seat_first(now_s)
        elif self.state is State.PARKING:
            self._form_if_complete(now_s)

    def _seat_first(self, now_s: float) -> None:
        for rank, key in enumerate(self.world.in_placement_order(self.world.ready)[: self.world.size]):
            self.world.seat(rank, key)
            self.world.slots_of[rank] = key
        self.generation = 1
        self._form(AS_BUILT, now_s)

    def _on_exited(self, event: ev.MembersExited, now_s: float) -> None:
        lost_holder = False
        for place, serial in enumerate(event.members.tolist()):
            key = member_key(event.node, serial)
            code = int(event.codes[place])
            rank = self.world.rank_of.get(key)
            self._alarm("crash", rank, key, f"process ended with {_ending(code)}")
            if rank is None:
                self.world.drop_ready(key)
                self._lost_while_idle(event.node)
                continue
            lost_holder = True
            self._free(rank, key, int(event.newest[place]), int(event.previous[place]))
            if self.state is State.STOPPED:
                return
        if self.state in (State.STARTING, State.STOPPED):
            return
        if lost_holder:
            self._leave_generation(now_s)
        elif self.state is State.TRAINING:
            self._restock()

    def _free(self, rank: int, key: int, newest: int, previous: int) -> None:
        if not self._take_versions(rank, key, newest, previous):
            self._to_release.append(key)
        self.world.vacate(rank)

    def _take_versions(self, rank: int, key: int, newest: int, previous: int) -> bool:
        """Note what the holder's slots contain.

        A promoted spare's count once they are no older than its predecessor's.
        """
        former = int(self.world.slots_of[rank])
        if former != key:
            if newest == NONE or newest < self.world.newest[rank]:
                return False
            self._to_release.append(former)
            self.world.slots_of[rank] = key
        self.world.newest[rank], self.world.previous[rank] = newest, previous
        return True

    def _lost_while_idle(self, node: int) -> None:
        self._idle_exits += 1
        if self._idle_exits > IDLE_EXITS_ALLOWED and self.state in (State.STARTING, State.PARKING):
            self._stop(
                f"{self._idle_exits} members ended before they held a rank, the last on {self.world.names[node]}"
            )
        elif self.state is State.STARTING:
            self._order_restock(node, 1)

    def _on_restock_failed(self, event: ev.RestockFailed, now_s: float) -> None:
        self._coming[event.node] = 0
        if self.state is State.STARTING or (self.state is State.PARKING and not self.world.ready):
            self._stop(f"{self.world.names[event.node]} cannot start a member: {event.reason}")

    def _on_node_lost(self, event: ev.NodeLost, now_s: float) -> None:
        name = self.world.names[event.node]
        self._alarm("node-lost", None, None, event.reason, node=name)
        ranks = self.world.ranks_with_state_on(event.node)
        self.world.ready = [key for key in self.world.ready if key_node(key) != event.node]
        if self.state is State.STARTING:
            self._stop(f"node {name} was lost before training began: {event.reason}")
        elif ranks:
            self._stop(
                f"node {name} was lost ({event.reason}), and with it the only copy of the state of ranks {ranks}"
            )
        elif self.state is State.TRAINING:
            self._restock()

    def _on_raised(self, event: ev.MembersRaised, now_s: float) -> None:
        """The member leaves by itself; its exit vacates the rank. Here only: is it worth another try?"""
        for serial, fingerprint in zip(event.members.tolist(), event.fingerprints, strict=True):
            key = member_key(event.node, serial)
            self._alarm("exception", self.world.rank_of.get(key), key, fingerprint)
            who = f"{self.world.names[event.node]} member {serial}"
            if fingerprint in self._raised_before and self._raised_before[fingerprint] != who:
                self._stop(f"the program raises the same wherever it runs ({fingerprint}): code, not hardware")
                return
            self._raised_before[fingerprint] = who

    # ------------------------------------------------------------------ from one generation to the next

    def _leave_generation(self, now_s: float) -> None:
        """Order a regroup, or carry on with one that is under way."""
        if self.state is not State.PARKING:
            self.state, self._since_s = State.PARKING, now_s
            self.generation += 1
            self._parked[:] = False
            for node in self.world.holder_nodes():
                self._out.append(Park(node=node, generation=self.generation))
        self._form_if_complete(now_s)

    def _on_parked(self, event: ev.MembersParked, now_s: float) -> None:
        # A member parks by itself when a collective breaks, often before anybody has noticed the death behind it.
        # A report about an older generation is a late copy: the member has been given a newer one since.
        if event.left_generation != self._last_formed:
            return
        if self.state is not State.PARKING:
            self._leave_generation(now_s)
        for place, serial in enumerate(event.members.tolist()):
            key = member_key(event.node, serial)
            rank = self.world.rank_of.get(key)
            if rank is not None:
                self._parked[rank] = True
                self._take_versions(rank, key, int(event.newest[place]), int(event.previous[place]))
        self._form_if_complete(now_s)

    def _form_if_complete(self, now_s: float) -> None:
        vacant = self.world.vacant_ranks()
        if not bool(np.all(self._parked | (self.world.holder == VACANT))):
            return
        if len(vacant) > len(self.world.ready):
            self._restock()
            return
        version = agreed_version(self.world.newest, self.world.previous)
        if version is None:
            self._stop("no snapshot is held by every rank: nothing is overwritten")
            return
        for rank in vacant:
            key = self.world.choose_spare(rank)
            assert key is not None
            self.world.seat(rank, key)
        self._form(version, now_s)

    def _form(self, version: int, now_s: float) -> None:
        self.state, self._since_s = State.FORMING, now_s
        self._formed[:] = False
        self._done[:] = False
        self._version = version
        self._last_formed = self.generation
        for node in self.world.holder_nodes():
            ranks = np.array(self.world.ranks_on(node), dtype=np.int64)
            sources = self.world.slots_of[ranks]
            # Nobody needs a copy of the state as built: everybody has built it.
            held = (self.world.newest[ranks] >= version) & (self.world.newest[ranks] != NONE)
            source_nodes = np.where(held, sources >> 20, -1)
            self._out.append(
                Form(
                    node=node,
                    generation=self.generation,
                    world=self.world.size,
                    version=version,
                    members=np.array([key_serial(int(key)) for key in self.world.holder[ranks]], dtype=np.int64),
                    ranks=ranks,
                    source_nodes=source_nodes,
                    source_members=np.array([key_serial(int(key)) for key in sources], dtype=np.int64),
                    source_addresses=tuple(self.world.addresses.get(int(at), "") for at in source_nodes),
                )
            )

    def _on_formed(self, event: ev.MembersFormed, now_s: float) -> None:
        if event.generation != self.generation:
            return
        for serial in event.members.tolist():
            rank = self.world.rank_of.get(member_key(event.node, serial))
            if rank is not None:
                self._formed[rank] = True
        if bool(np.all(self._formed)):
            self._train(now_s)

    def _train(self, now_s: float) -> None:
        self.state, self._since_s = State.TRAINING, now_s
        self._form_tries = 0
        self._idle_exits = 0
        moved = np.flatnonzero(self.world.slots_of != self.world.holder)
        self._to_release.extend(int(key) for key in self.world.slots_of[moved])
        self.world.slots_of[:] = self.world.holder
        self.world.newest[:] = self._version
        self.world.previous[:] = NONE
        for key in self._to_release:
            self._out.append(Release(node=key_node(key), members=ev.ints(key_serial(key))))
        self._to_release = []
        self._restock()

    # ------------------------------------------------------------------ spares, limits, the end

    def _restock(self) -> None:
        """Bring the number of spares back to what was asked for, on the nodes that have lost most members."""
        wanted = self._spares + len(self.world.vacant_ranks())
        missing = wanted - len(self.world.ready) - sum(self._coming.values())
        if missing <= 0 or self._idle_exits > IDLE_EXITS_ALLOWED:
            return
        crowd = {node: self._coming.get(node, 0) for node in self.world.names}
        for key in [*self.world.rank_of, *self.world.ready]:
            crowd[key_node(key)] = crowd.get(key_node(key), 0) + 1
        for _ in range(missing):
            node = min(crowd, key=lambda at: (crowd[at], self.world.names[at]))
            crowd[node] += 1
            self._order_restock(node, 1)

    def _order_restock(self, node: int, count: int) -> None:
        self._coming[node] = self._coming.get(node, 0) + count
        self._out.append(Restock(node=node, count=count))

    def _on_finished(self, event: ev.MembersFinished, now_s: float) -> None:
        if event.generation != self.generation:
            return
        for serial in event.members.tolist():
            rank = self.world.rank_of.get(member_key(event.node, serial))
            if rank is not None:
                self._done[rank] = True
        if bool(np.all(self._done)):
            self.state = State.FINISHED
            self._out.extend(Finish(node=node) for node in sorted(self.world.names))

    def _on_ticked(self, event: ev.Ticked, now_s: float) -> None:
        assert self._since_s is not None
        waited_s = now_s - self._since_s
        if self.state is State.STARTING and waited_s > self._limits.start_s:
            have, want = len(self.world.ready), self.world.size + self._spares
            self._stop(f"only {have} of {want} members were ready after {self._limits.start_s:g} s")
        elif self.state is State.FORMING and waited_s > self._limits.form_s:
            self._form_again(now_s)
        elif self.state is State.PARKING:
            self._check_parking(waited_s)

    def _form_again(self, now_s: float) -> None:
        self._form_tries += 1
        if self._form_tries >= FORM_TRIES:
            late = np.flatnonzero(~self._formed).tolist()
            self._stop(
                f"generation {self.generation} could not be formed in {FORM_TRIES} tries; ranks {late} were missing"
            )
            return
        self._leave_generation(now_s)

    def _check_parking(self, waited_s: float) -> None:
        late = np.flatnonzero(~self._parked & (self.world.holder != VACANT)).tolist()
        if late and waited_s > self._limits.park_s:
            self._stop(f"ranks {late} did not leave their generation within {self._limits.park_s:g} s")
        elif not late and waited_s > self._limits.pause_s:
            self._stop(f"no spare for ranks {self.world.vacant_ranks()} within {self._limits.pause_s:g} s")

    def _alarm(self, kind: str, rank: int | None, key: int | None, detail: str, node: str | None = None) -> None:
        if key is not None:
            node = self.world.names.get(key_node(key))
        pid = self.world.pids.get(key) if key is not None else None
        self._out.append(
            Alarm(kind=kind, rank=rank, pid=pid, node=node, generation=self.generation, confirmed=True, detail=detail)
        )

    def _stop(self, reason: str) -> None:
        self.state = State.STOPPED
        self.reason = reason
        self._out.extend(Stop(node=node, reason=reason) for node in sorted(self.world.names))


def _ending(code: int) -> str:
    if code == ev.UNKNOWN_CODE:
        return "an ending not known yet; its connection is gone"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
