"""What the controller is told. One event speaks for one node and holds arrays, so that 10,000 ranks stay cheap.

`members` are serial numbers that the node's agent gives its members, never reused. Versions are step numbers of
complete snapshots: S(n) is the state after step n, S(0) the state before the first step, -1 means none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# A connection reset is often seen before the kernel has finished taking a big process down and knows its code.
UNKNOWN_CODE = 256


def ints(*values: int) -> Ints:
    """Return the values as an int64 array."""
    return np.array(values, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class NodeJoined:
    """A node's agent is connected. `address` is where it serves its snapshots ("host:port")."""

    node: int
    name: str
    address: str


@dataclass(frozen=True, slots=True, eq=False)
class NodeLost:
    """A node's agent has not been heard for longer than the limit."""

    node: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class MembersReady:
    """Members are warm and hold no rank: spares from now on."""

    node: int
    members: Ints
    pids: Ints


@dataclass(frozen=True, slots=True, eq=False)
class MembersExited:
    """Members' processes have ended. `codes` are exit codes, negative for signals, or UNKNOWN_CODE.

    Versions are what their slots hold.
    """

    node: int
    members: Ints
    codes: Ints
    newest: Ints
    previous: Ints


@dataclass(frozen=True, slots=True, eq=False)
class MembersParked:
    """Members have left a generation for good, every work of it completed, and wait for a new one."""

    node: int
    left_generation: int
    members: Ints
    newest: Ints
    previous: Ints


@dataclass(frozen=True, slots=True, eq=False)
class MembersFormed:
    """Members are in the group of `generation`, with the agreed state loaded."""

    node: int
    generation: int
    members: Ints


@dataclass(frozen=True, slots=True, eq=False)
class MembersFinished:
    """Members have completed the last step asked for."""

    node: int
    generation: int
    members: Ints


@dataclass(frozen=True, slots=True, eq=False)
class MembersRaised:
    """The training program raised. A fingerprint names the error and the step, not the place in memory."""

    node: int
    members: Ints
    fingerprints: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RestockFailed:
    """An agent could not start a new member."""

    node: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Ticked:
    """Time has passed; limits are checked."""


Event = (
    NodeJoined
    | NodeLost
    | MembersReady
    | MembersExited
    | MembersParked
    | MembersFormed
    | MembersFinished
    | MembersRaised
    | RestockFailed
    | Ticked
)
