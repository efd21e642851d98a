"""Performs a schedule: plans, records, applies, verifies and heals faults, and says when each of that happened.

For each fault that is due

    resolve the target ─▶ plan ─▶ ledger: arm (fsync) ─▶ [clock] apply ─▶ verify … ─▶ hold ─▶ heal … ─▶ ledger: healed

Faults due at the same time are all armed before the first is applied. A fault that cannot be applied or proven is a
`NoEffect`, never an exception: the drill then says nothing. Exceptions are faults of ours (the ledger, a broken
injector), and whatever is held is healed before they leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from chaos.catalog import Catalog
from chaos.clock import Clock
from chaos.errors import InjectError, LedgerError, SelectorError
from chaos.fault import KINDS, Fault
from chaos.host import Host
from chaos.injector import Checked, Receipt
from chaos.ledger import RUN_ENTRY, Ledger
from chaos.schedule import Heal, Inject, Schedule
from chaos.target import Choice, Roster, RosterMember, resolve
from chaos.trigger import Sighting
from chaos.undo import undo_entry

HEALED_WITHIN_S = 1.0
PAUSE_S = 0.005


@dataclass(frozen=True, slots=True)
class Injected:
    """`at_s` is just before the applying call. `hit` are all processes touched, descendants included."""

    fault: Fault
    at_s: float
    targets: tuple[RosterMember, ...]
    hit: tuple[RosterMember, ...]


@dataclass(frozen=True, slots=True)
class Effective:
    """A measurement at `at_s` shows that the fault bites."""

    fault: Fault
    at_s: float
    proof: str


@dataclass(frozen=True, slots=True)
class NoEffect:
    """The fault was not applied, did not bite, or did not hold until it was healed."""

    fault: Fault
    at_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Healed:
    """The undo ran. If not `verified`, the host is dirty; the ledger still holds it."""

    fault: Fault
    at_s: float
    verified: bool
    detail: str


ConductorEvent = Injected | Effective | NoEffect | Healed


@dataclass(slots=True, eq=False)
class _Held:
    """A fault that is armed or applied."""

    fault: Fault
    injector: Checked
    host: Host
    receipt: Receipt
    hit: tuple[RosterMember, ...]
    at_s: float = field(default=0.0)
    applied: bool = field(default=False)
    proven: bool = field(default=False)


class Conductor:
    """Performs the faults of one drill against one ledger."""

    def __init__(
        self,
        *,
        faults: Iterable[Fault],
        ledger: Ledger,
        catalog: Catalog,
        host_of: Callable[[str], Host],
        roster: Callable[[], Roster],
        clock: Clock,
        emit: Callable[[ConductorEvent], None],
        choice: Choice,
    ) -> None:
        self._schedule = Schedule(faults)
        self._ledger = ledger
        self._catalog = catalog
        self._host_of = host_of
        self._roster = roster
        self._clock = clock
        self._emit = emit
        self._choice = choice
        self._held: dict[str, _Held] = {}
        self._unproven: list[_Held] = []
        self._healing: list[tuple[_Held, str, float]] = []

    def run(self, sightings: Iterator[Sighting | None]) -> None:
        """Perform the faults as the sightings come in (None: only time passed), until they end; then heal everything.

        Raises LedgerError, LeaseLostError and ReceiptError, after healing.
        """
        self._heal_earlier()
        try:
            for sighting in sightings:
                self._ledger.check_held()
                self._perform(sighting)
                self._measure()
        finally:
            self._finish()

    def _heal_earlier(self) -> None:
        """Undo what an earlier conductor left in this ledger."""
        with self._ledger.locked() as state:
            for entry in state.open_entries():
                if entry.name == RUN_ENTRY:
                    continue
                reason = undo_entry(entry, self._ledger.owner, self._clock)
                if reason:
                    raise LedgerError(f"{entry.name} of an earlier drill could not be undone: {reason}")
                self._ledger.record_healed(entry.name, "conductor", "left over")

    def _perform(self, sighting: Sighting | None) -> None:
        actions = self._schedule.feed(sighting, self._clock.monotonic_s())
        while actions:
            for action in actions:
                if isinstance(action, Heal):
                    self._begin_heal(self._held[action.fault.id], f"{action.why} over")
            armed = [held for action in actions if isinstance(action, Inject) and (held := self._arm(action.fault))]
            for held in armed:
                self._apply(held)
            # An injected fault may be what the next one waits for.
            actions = self._schedule.feed(None, self._clock.monotonic_s())

    def _arm(self, fault: Fault) -> _Held | None:
        """Find the target, plan, and record the undo; None if that is not possible."""
        injector = self._catalog[fault.kind]
        try:
            targets = resolve(fault.target, self._roster(), self._choice)
            host = self._host_of(targets[0].node)
            receipt = injector.plan(fault, targets, host)
        except (SelectorError, InjectError) as error:
            self._no_effect(fault, str(error))
            self._schedule.ended(fault)
            return None
        held = _Held(fault, injector, host, receipt, self._known(receipt.hit))
        self._ledger.arm(fault.id, receipt.undo, fault.lease_s)
        self._held[fault.id] = held
        return held

    def _known(self, hit: tuple[RosterMember, ...]) -> tuple[RosterMember, ...]:
        """Return the processes with the ranks that they hold, which a host does not know of descendants."""
        known = {(member.pid, member.started_ticks): member for member in self._roster().members}
        return tuple(known.get((member.pid, member.started_ticks), member) for member in hit)

    def _apply(self, held: _Held) -> None:
        fault = held.fault
        reason = ""
        # Under the lock, so that no reaper finds the lease over and undoes what is not applied yet.
        with self._ledger.locked() as state:
            held.at_s = self._clock.monotonic_s()
            if state.entry(fault.id).healed_by:
                reason = "its lease was over before it was applied: is the machine overloaded?"
            else:
                try:
                    held.injector.inject(held.receipt, held.host)
                    self._ledger.record_applied(fault.id)
                except InjectError as error:
                    reason = str(error)
        if reason:
            self._no_effect(fault, reason)
            self._begin_heal(held, "could not be applied")
            return
        held.applied = True
        self._emit(Injected(fault, held.at_s, held.receipt.targets, held.hit))
        self._schedule.injected(fault, held.at_s)
        self._unproven.append(held)

    def _measure(self) -> None:
        """Look once at every fault that is not proven yet, and at every heal that is not."""
        for held in tuple(self._unproven):
            self._verify(held, last=False)
        for held, why, until_s in tuple(self._healing):
            self._heal_once(held, why, until_s)

    def _verify(self, held: _Held, *, last: bool) -> None:
        proof = held.injector.verify(held.receipt, held.host)
        now_s = self._clock.monotonic_s()
        if proof.ok:
            held.proven = True
            self._emit(Effective(held.fault, now_s, proof.text))
        elif proof.hopeless or last or now_s > held.at_s + held.injector.verify_within_s(held.fault):
            self._no_effect(held.fault, f"no effect within {now_s - held.at_s:.2f} s: {proof.text}")
        else:
            return
        self._unproven.remove(held)

    def _begin_heal(self, held: _Held, why: str) -> None:
        """Undo a fault. Success is worth an event only if the fault was applied and has an undo."""
        del self._held[held.fault.id]
        self._schedule.ended(held.fault)
        if held in self._unproven:
            self._verify(held, last=True)
        if held.proven:
            self._check_held_on(held)
        quiet = not (held.applied and KINDS[held.fault.kind].has_undo)
        until_s = self._clock.monotonic_s() + HEALED_WITHIN_S
        self._heal_once(held, "" if quiet else why, until_s)

    def _check_held_on(self, held: _Held) -> None:
        if self._ledger.refresh().entry(held.fault.id).healed_by:
            return
        proof = held.injector.holds(held.receipt, held.host)
        if not proof.ok:
            self._no_effect(held.fault, f"it did not hold until it was healed: {proof.text}")

    def _heal_once(self, held: _Held, why: str, until_s: float) -> None:
        """Undo and measure; if it is not undone yet, it is looked at again. An empty `why` keeps success quiet."""
        self._healing = [item for item in self._healing if item[0] is not held]
        verified, detail = self._undo(held)
        now_s = self._clock.monotonic_s()
        if not verified and now_s < until_s:
            self._healing.append((held, why, until_s))
        elif why or not verified:
            self._emit(Healed(held.fault, now_s, verified, f"{why or 'could not be applied'}: {detail}"))

    def _undo(self, held: _Held) -> tuple[bool, str]:
        name = held.fault.id
        with self._ledger.locked() as state:
            entry = state.entry(name)
            if entry.healed_by:
                return True, f"undone by {entry.healed_by} ({entry.detail})"
            detail = "it cannot be undone"
            if KINDS[held.fault.kind].has_undo:
                try:
                    proof = held.injector.heal(held.receipt, held.host)
                except InjectError as error:
                    return False, str(error)
                if not proof.ok:
                    return False, proof.text
                detail = proof.text
            try:
                self._ledger.record_healed(name, "conductor", detail)
            except LedgerError as error:
                # Undone it is; that a reaper undoes it once more is harmless.
                detail = f"{detail} (not recorded: {error})"
            return True, detail

    def _finish(self) -> None:
        """Heal everything, the last applied first, and say what never happened."""
        for held in reversed(tuple(self._held.values())):
            self._begin_heal(held, "drill over")
        while self._healing:
            self._clock.sleep_s(PAUSE_S)
            self._measure()
        for fault in self._schedule.waiting():
            self._no_effect(fault, f"it was never due: the drill ended before {fault.trigger.describe()}")

    def _no_effect(self, fault: Fault, reason: str) -> None:
        self._emit(NoEffect(fault, self._clock.monotonic_s(), reason))
