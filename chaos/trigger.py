"""When a fault is due: conditions over what was sighted of a run. Pure.

All conditions that are given must hold:

- `step: n` holds as soon as the target rank has completed step n, and from then on. Where the target is not one rank,
  any rank counts.
- `phase: p` holds while the target rank (else: any rank) is in phase p, once `step` holds.
- `event: e` holds from the first sighting of e at which `step` holds. An event `fault:f0` ("fault f0 was
  injected") is a lasting fact: it counts whenever it was seen.
- `after_s: s` holds s seconds after all the others became true together; alone, after the first completed step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaos.errors import TriggerError, nearest

CONDITIONS = ("step", "phase", "after_s", "event")
FAULT_EVENT = "fault:"


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something seen of the run at `at_s`.

    With `step` alone: `rank` completed that step. With `phase`: `rank` is in that phase (of `step`, where given, which
    is then not complete yet). With `event`: that event happened.
    """

    rank: int | None
    step: int | None
    phase: str | None
    event: str | None
    at_s: float


@dataclass(frozen=True, slots=True)
class Trigger:
    """The conditions of one fault; None where not given. At least one is given."""

    step: int | None = None
    phase: str | None = None
    after_s: float | None = None
    event: str | None = None

    def describe(self) -> str:
        """Return it in words: "step 20", "2 s after fault:f0"."""
        said = []
        if self.step is not None:
            said.append(f"step {self.step}")
        if self.phase is not None:
            said.append(f"phase {self.phase}")
        if self.event is not None:
            said.append(f"event {self.event}")
        others = " and ".join(said)
        if self.after_s is None:
            return others
        return f"{self.after_s:g} s after {others or 'the first completed step'}"


def parse_trigger(mapping: Mapping[str, object], field: str = "when") -> Trigger:
    """Read the conditions of one fault. `field` is the path that an error names. Raises TriggerError."""
    for key in mapping:
        if key not in CONDITIONS:
            near = nearest(str(key), CONDITIONS)
            raise TriggerError(f"{field}.{key}", f"one of {', '.join(CONDITIONS)}", given=str(key), near=near)
    if not mapping:
        raise TriggerError(field, f"at least one of {', '.join(CONDITIONS)}", given="none")
    step = mapping.get("step")
    if step is not None and (isinstance(step, bool) or not isinstance(step, int) or step < 1):
        raise TriggerError(f"{field}.step", "the number of a step (1, 2, …)", given=repr(step))
    after_s = mapping.get("after_s")
    if after_s is not None and (
        isinstance(after_s, bool) or not isinstance(after_s, int | float) or not 0 <= after_s < 1e9
    ):
        raise TriggerError(f"{field}.after_s", "seconds (0 or more)", given=repr(after_s))
    return Trigger(
        step=step,
        phase=_word(mapping, "phase", field),
        after_s=None if after_s is None else float(after_s),
        event=_word(mapping, "event", field),
    )


def _word(mapping: Mapping[str, object], key: str, field: str) -> str | None:
    value = mapping.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise TriggerError(f"{field}.{key}", f"the name of {'an' if key == 'event' else 'a'} {key}", given=repr(value))
    return value


class Watch:
    """One trigger's progress: feed it sightings, ask it whether the fault is due. `rank` is the target's, or None."""

    def __init__(self, trigger: Trigger, rank: int | None) -> None:
        self._trigger = trigger
        self._rank = rank
        self._step_since_s: float | None = None
        self._event_since_s: float | None = None
        self._phase_since_s: float | None = None
        self._together_since_s: float | None = None

    def see(self, sighting: Sighting) -> None:
        """Take one sighting into account."""
        mine = self._rank is None or sighting.rank == self._rank
        self._see_step(sighting, mine=mine)
        self._see_event(sighting)
        if mine:
            self._see_phase(sighting)
        self._note_together()

    def due(self, now_s: float) -> bool:
        """Say whether all conditions hold at `now_s`."""
        if self._together_since_s is None:
            return False
        return now_s >= self._together_since_s + (self._trigger.after_s or 0.0)

    def _see_step(self, sighting: Sighting, *, mine: bool) -> None:
        if self._step_since_s is not None or sighting.step is None:
            return
        completed = sighting.step if sighting.phase is None else sighting.step - 1
        if self._trigger.step is None:
            # No step is asked for: "the first completed step", of whatever rank, is what a bare after_s counts from.
            if completed >= 1:
                self._step_since_s = sighting.at_s
        elif mine and completed >= self._trigger.step:
            self._step_since_s = sighting.at_s

    def _see_event(self, sighting: Sighting) -> None:
        wanted = self._trigger.event
        if wanted is None or sighting.event != wanted or self._event_since_s is not None:
            return
        if wanted.startswith(FAULT_EVENT) or self._step_holds():
            self._event_since_s = sighting.at_s

    def _see_phase(self, sighting: Sighting) -> None:
        if self._trigger.phase is None:
            return
        if sighting.phase == self._trigger.phase:
            if self._phase_since_s is None and self._step_holds():
                self._phase_since_s = sighting.at_s
        elif sighting.phase is not None or sighting.step is not None:
            self._phase_since_s = None

    def _step_holds(self) -> bool:
        return self._trigger.step is None or self._step_since_s is not None

    def _note_together(self) -> None:
        if self._together_since_s is not None:
            return
        trigger = self._trigger
        needed = []
        if trigger.step is not None or (trigger.phase is None and trigger.event is None):
            needed.append(self._step_since_s)
        if trigger.phase is not None:
            needed.append(self._phase_since_s)
        if trigger.event is not None:
            needed.append(self._event_since_s)
        since = [at_s for at_s in needed if at_s is not None]
        if len(since) == len(needed):
            self._together_since_s = max(since)
