"""Observations as what triggers wait for, and only those that some trigger may wait for.

The conductor wakes for every sighting and every tick, on cores that it shares with the ranks: most steps concern
nobody, and most of the time nothing depends on the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.fault import Fault
from chaos.trigger import Sighting
from harness.observe.observation import (
    Claim,
    FaultEffective,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    MemberJoined,
    Observation,
    RankHeld,
    StateLoaded,
    StepDone,
    TrainingFinished,
)

# While an effect is not proven yet; while a delay or a duration runs; while only leases and interruptions count.
PROOF_PAUSE_S = 0.003
TIMED_PAUSE_S = 0.02
IDLE_PAUSE_S = 0.2


class SightingFilter:
    """The sightings in a stream of observations that matter for these faults."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._waiting = {fault.id: fault for fault in faults}
        self._timed = {fault.id: None for fault in faults if fault.duration_s is not None}
        self._unproven: dict[str, None] = {}
        steps = [fault.trigger.step for fault in faults if fault.trigger.step is not None]
        self._from_step = min(steps, default=None)
        self._phases = any(fault.trigger.phase is not None for fault in faults)
        self._stepped = False
        self._first_generation: int | None = None

    def of(self, seen: Observation) -> Iterator[Sighting]:
        """Yield the sightings in one observation."""
        if isinstance(seen, FaultInjected | FaultEffective | FaultFailed | FaultHealed):
            self._note(seen)
        elif isinstance(seen, StepDone):
            if self._waiting and self._matters(seen):
                yield Sighting(rank=seen.rank, step=seen.step, phase=None, event=None, at_s=seen.at_s)
        elif self._waiting and (named := self._event(seen)) is not None:
            event, rank = named
            yield Sighting(rank=rank, step=None, phase=None, event=event, at_s=seen.at_s)

    def pause_s(self) -> float:
        """Return after how long the conductor should look at the time although nothing was sighted."""
        if self._unproven:
            return PROOF_PAUSE_S
        delayed = any(fault.trigger.after_s is not None for fault in self._waiting.values())
        timed = any(fault not in self._waiting for fault in self._timed)
        return TIMED_PAUSE_S if delayed or timed else IDLE_PAUSE_S

    def _note(self, seen: FaultInjected | FaultEffective | FaultFailed | FaultHealed) -> None:
        self._waiting.pop(seen.fault, None)
        if isinstance(seen, FaultInjected):
            self._unproven[seen.fault] = None
            return
        self._unproven.pop(seen.fault, None)
        if isinstance(seen, FaultHealed):
            self._timed.pop(seen.fault, None)

    def _matters(self, seen: StepDone) -> bool:
        if not self._stepped:
            # Times are counted from the first completed step.
            self._stepped = True
            return True
        # A completed step also ends a phase.
        return self._phases or (self._from_step is not None and seen.step >= self._from_step)

    def _event(self, seen: Observation) -> tuple[str, int | None] | None:
        match seen:
            case RankHeld():
                # The rank has a new holder, or a new group, and its state is not loaded yet.
                return ("restoring", seen.rank) if self._is_regroup(seen.generation) else None
            case StateLoaded():
                return ("restored", seen.rank) if self._is_regroup(seen.generation) else None
            case MemberJoined():
                return "joined", None
            case Claim():
                return (f"claim:{seen.kind}", seen.rank) if seen.confirmed else None
            case TrainingFinished():
                return "finished", seen.rank
            case _:
                return None

    def _is_regroup(self, generation: int) -> bool:
        # Stacks number their first generation as they like.
        if self._first_generation is None:
            self._first_generation = generation
        return generation > self._first_generation
