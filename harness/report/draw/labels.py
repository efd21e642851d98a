"""Places the labels of vertical marks so that no label covers another, nor another's line.

Every label starts at its own line and runs to the right. Going from right to left, a label takes the lowest lane that
is free for its whole width. A line descends from its label through lower lanes only, and those hold labels that begin
further right: so no line crosses a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP_PX = 8.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A label in its lane; lane 0 is the one next to the plot."""

    index: int
    x_px: float
    width_px: float
    lane: int


def place(labels: Sequence[tuple[float, float]]) -> list[Placed]:
    """Return a lane for each (x, width), in the order given."""
    order = sorted(range(len(labels)), key=lambda index: (-labels[index][0], -index))
    taken: list[Placed] = []
    for index in order:
        x_px, width_px = labels[index]
        # All that was placed before begins at x or further right; it is in the way if it begins before this one ends.
        lane = max((other.lane + 1 for other in taken if other.x_px < x_px + width_px + GAP_PX), default=0)
        taken.append(Placed(index, x_px, width_px, lane))
    return sorted(taken, key=lambda placed: placed.index)
