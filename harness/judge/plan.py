"""What a drill was asked to do and to show: all that the judge looks at beside the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault that the scenario asks for. Without an undo it holds to the end of the drill."""

    id: str
    kind: str
    has_undo: bool
    transient: bool
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on one figure. With `unit` "steps" the value counts median steps before the first fault."""

    slo: str
    op: Literal["max", "min", "equal"]
    value: float
    unit: Literal["figure", "steps"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The drill as asked for. `stack_alarms` is False for stacks without alarms (figures on claims are n/a then)."""

    world: int
    steps: int
    faults: tuple[PlannedFault, ...]
    limits: tuple[Limit, ...]
    weights_equal: bool
    steady_within_s: float
    stack_alarms: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """An unfaulted run with the same seed. `samples[n - 1]` are the sorted ids that the whole world took in step n."""

    weights: str
    samples: tuple[tuple[int, ...], ...]
    losses: tuple[float, ...]
