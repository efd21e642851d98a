"""What the controller decides. One command speaks to one node and holds arrays."""

from __future__ import annotations

from dataclasses import dataclass

from harness.resilience.control.events import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Park:
    """All members of the node that hold a rank leave their generation and wait for `generation`."""

    node: int
    generation: int


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Members take ranks in `generation` and load S(version).

    `source_nodes`, `source_members` and `source_addresses` say, per member, whose slots hold the rank's state;
    node -1 means that nobody has any: the state as built is S(0).
    """

    node: int
    generation: int
    world: int
    version: int
    members: Ints
    ranks: Ints
    source_nodes: Ints
    source_members: Ints
    source_addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The slots of these former members are no longer needed."""

    node: int
    members: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Restock:
    """Make `count` new warm members."""

    node: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Alarm:
    """Something is wrong, and with whom; only confirmed alarms are claims. Fields that do not apply are None."""

    kind: str
    rank: int | None
    pid: int | None
    node: str | None
    generation: int
    confirmed: bool
    detail: str


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """Training is complete; the node's ranks return from training and its spares leave."""

    node: int


@dataclass(frozen=True, slots=True, eq=False)
class Stop:
    """Give up, for `reason`; the node ends its members."""

    node: int
    reason: str


Command = Park | Form | Release | Restock | Alarm | Finish | Stop
