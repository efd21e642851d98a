"""Who holds which rank, whose slots hold which state, and who is spare. Plain state; the machine decides."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.resilience.control.events import Ints
from harness.resilience.control.restore import NONE

SERIAL_BITS = 20
VACANT = -1


def member_key(node: int, serial: int) -> int:
    """One number for a member of the whole run."""
    return (node << SERIAL_BITS) | serial


def key_node(key: int) -> int:
    """The node of a member."""
    return key >> SERIAL_BITS


def key_serial(key: int) -> int:
    """The member's serial number on its node."""
    return key & ((1 << SERIAL_BITS) - 1)


class World:
    """Ranks as arrays of shape (world,); members and nodes by number."""

    def __init__(self, world: int) -> None:
        self.size = world
        self.holder: Ints = np.full(world, VACANT, dtype=np.int64)
        self.slots_of: Ints = np.full(world, VACANT, dtype=np.int64)
        self.newest: Ints = np.full(world, NONE, dtype=np.int64)
        self.previous: Ints = np.full(world, NONE, dtype=np.int64)
        self.rank_of: dict[int, int] = {}
        self.pids: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.addresses: dict[int, str] = {}
        self.ready: list[int] = []

    def add_ready(self, node: int, members: Ints, pids: Ints) -> None:
        """Members become spares."""
        for serial, pid in zip(members.tolist(), pids.tolist(), strict=True):
            key = member_key(node, serial)
            self.pids[key] = pid
            self.ready.append(key)

    def drop_ready(self, key: int) -> bool:
        """Forget a spare; False if it was none."""
        if key not in self.ready:
            return False
        self.ready.remove(key)
        return True

    def vacate(self, rank: int) -> None:
        """The holder of a rank is gone; its slots stay where they are."""
        self.rank_of.pop(int(self.holder[rank]), None)
        self.holder[rank] = VACANT

    def vacant_ranks(self) -> list[int]:
        """Ranks that nobody holds, ascending."""
        found: list[int] = np.flatnonzero(self.holder == VACANT).tolist()
        return found

    def seat(self, rank: int, key: int) -> None:
        """A spare takes a rank. Where the rank's state lies does not change yet."""
        self.ready.remove(key)
        self.holder[rank] = key
        self.rank_of[key] = rank

    def holder_nodes(self) -> list[int]:
        """Nodes that hold at least one rank, ascending."""
        held = self.holder[self.holder != VACANT]
        nodes: list[int] = np.unique(held >> SERIAL_BITS).tolist()
        return nodes

    def ranks_on(self, node: int) -> list[int]:
        """Ranks held by members of a node, ascending."""
        ranks: list[int] = np.flatnonzero((self.holder != VACANT) & (self.holder >> SERIAL_BITS == node)).tolist()
        return ranks

    def ranks_with_state_on(self, node: int) -> list[int]:
        """Ranks whose holder or whose only slots are on a node, ascending."""
        slots_there = (self.slots_of != VACANT) & (self.slots_of >> SERIAL_BITS == node)
        held_there = (self.holder != VACANT) & (self.holder >> SERIAL_BITS == node)
        ranks: list[int] = np.flatnonzero(slots_there | held_there).tolist()
        return ranks

    def in_placement_order(self, keys: Iterable[int]) -> list[int]:
        """Spread over nodes: every node's first member, then every node's second; nodes by name.

        The order must not depend on who connected first, or two runs with one seed would place ranks differently.
        """
        ordered = sorted(keys, key=lambda key: (self.names[key_node(key)], key_serial(key)))
        nth: dict[int, int] = {}
        placed: list[tuple[int, str, int]] = []
        for key in ordered:
            node = key_node(key)
            nth[node] = nth.get(node, 0) + 1
            placed.append((nth[node], self.names[node], key))
        return [key for _, _, key in sorted(placed)]

    def choose_spare(self, rank: int) -> int | None:
        """Prefer a spare on the node where the rank's state lies; else the first in placement order."""
        if not self.ready:
            return None
        home = key_node(int(self.slots_of[rank])) if self.slots_of[rank] != VACANT else None
        at_home = [key for key in self.ready if key_node(key) == home]
        return self.in_placement_order(at_home or self.ready)[0]
