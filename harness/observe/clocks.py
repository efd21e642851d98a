"""Clocks of nodes, moved to the tester's clock, with error bars.

Nodes that share the tester's kernel share its CLOCK_MONOTONIC: offset 0, error 0. Any other node needs round trips,
from which the offset is estimated as with NTP: the shortest trip bounds the error best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Offset:
    """Tester's clock minus node's clock, in seconds, right to within ±`error_s`."""

    offset_s: float
    error_s: float


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One question to a node: sent and received on the tester's clock, answered on the node's, all in seconds."""

    sent_s: float
    node_s: float
    received_s: float


SAME_CLOCK = Offset(0.0, 0.0)


def estimate(trips: Sequence[RoundTrip]) -> Offset:
    """Estimate a node's offset from at least one round trip (ValueError for none)."""
    if not trips:
        raise ValueError("an offset needs at least one round trip")
    best = min(trips, key=lambda trip: trip.received_s - trip.sent_s)
    error_s = (best.received_s - best.sent_s) / 2
    return Offset(best.sent_s + error_s - best.node_s, error_s)


class ClockTable:
    """The offset of each node; a node that is not named shares the tester's clock."""

    def __init__(self, offsets: Mapping[str, Offset] = MappingProxyType({})) -> None:
        self._offsets = dict(offsets)

    def to_tester_s(self, node: str, at_ns: int) -> float:
        """Move a node's time (nanoseconds) to the tester's clock (seconds)."""
        return at_ns / 1e9 + self._offsets.get(node, SAME_CLOCK).offset_s

    def error_s(self) -> float:
        """Return the largest error bar of any node, in seconds."""
        return max((offset.error_s for offset in self._offsets.values()), default=0.0)
