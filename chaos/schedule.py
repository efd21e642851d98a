"""When each fault of a drill is due, and when it is to be healed. Pure: sightings and times in, actions out.

A fault goes through

    waiting ──due──▶ handed out ──injected()──▶ held ──duration or lease over──▶ handed out again ──ended()──▶ over
                         └──────ended() (it could not be applied)─────────────────────────────────────────▶ over

`feed` hands each action out once. Among actions due at the same time heals come first, then injections in file order.
A fault that cannot be undone is held until somebody calls `ended`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.fault import KINDS, Fault
from chaos.trigger import FAULT_EVENT, Sighting, Watch


@dataclass(frozen=True, slots=True)
class Inject:
    """Apply this fault now."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class Heal:
    """Undo this fault now, because its `why` ("duration" or "lease") is over."""

    fault: Fault
    why: str


Action = Inject | Heal


class Schedule:
    """The state of all faults of one drill."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._watches = {fault.id: (fault, Watch(fault.trigger, _rank_of(fault))) for fault in faults}
        self._held: dict[str, tuple[Fault, float]] = {}

    def feed(self, sighting: Sighting | None, now_s: float) -> tuple[Action, ...]:
        """Take in one sighting (None: only time passed) and return what is to be done at `now_s`, in order."""
        if sighting is not None:
            for _, watch in self._watches.values():
                watch.see(sighting)
        heals = [action for fault, at_s in self._held.values() if (action := _heal_due(fault, at_s, now_s))]
        for action in heals:
            del self._held[action.fault.id]
        due = [fault for fault, watch in self._watches.values() if watch.due(now_s)]
        for fault in due:
            del self._watches[fault.id]
        # The last one injected is healed first, as the ledger does it.
        return (*reversed(heals), *(Inject(fault) for fault in due))

    def injected(self, fault: Fault, at_s: float) -> None:
        """Note that `fault` was applied at `at_s`: its duration and lease run, and faults that wait for it see it."""
        self._held[fault.id] = (fault, at_s)
        event = Sighting(rank=None, step=None, phase=None, event=f"{FAULT_EVENT}{fault.id}", at_s=at_s)
        for _, watch in self._watches.values():
            watch.see(event)

    def ended(self, fault: Fault) -> None:
        """Note that nothing is left to do for `fault`."""
        self._held.pop(fault.id, None)

    def waiting(self) -> tuple[Fault, ...]:
        """Return the faults that were not due so far, in file order."""
        return tuple(fault for fault, _ in self._watches.values())


def _rank_of(fault: Fault) -> int | None:
    which = fault.target.which
    return which if fault.target.what == "rank" and isinstance(which, int) else None


def _heal_due(fault: Fault, at_s: float, now_s: float) -> Heal | None:
    if not KINDS[fault.kind].has_undo:
        return None
    if fault.duration_s is not None and now_s >= at_s + fault.duration_s:
        return Heal(fault, "duration")
    return Heal(fault, "lease") if now_s >= at_s + fault.lease_s else None
