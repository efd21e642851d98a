"""What an injector promises, and the wrapper that holds it to it.

An injector knows one kind of fault. The conductor calls it in this order:

    capable(fault, host)         may this fault be applied here? asked before anything is started
    plan(fault, targets, host)   changes nothing; returns the receipt: whom it will hit and how that is undone
                                 (the undo goes to the ledger, on disk, before the next call)
    inject(receipt, host)        applies the fault
    verify(receipt, host)        measures whether it has bitten; called again until it has or it is hopeless
    holds(receipt, host)         measures whether it still bites those victims that are left; called before it is healed
    heal(receipt, host)          undoes it and measures whether that is undone; called again until it is; may be called
                                 when only half of it was applied, or when it is undone already

None of them waits: the conductor has other faults to look after. `docs/writing-an-injector.md` builds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chaos.errors import ReceiptError
from chaos.fault import KINDS, Fault
from chaos.host import Host
from chaos.ledger_state import Undo
from chaos.target import RosterMember


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether a fault can be applied on a host, and if not, what is missing and how to get it."""

    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an injector is about to do: `hit` are all processes it will touch, `undo` takes it back."""

    fault: Fault
    targets: tuple[RosterMember, ...]
    hit: tuple[RosterMember, ...]
    undo: tuple[Undo, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """One measurement. `text` says what was measured; `hopeless` that measuring again will not change it."""

    ok: bool
    text: str
    hopeless: bool = False


class Injector(Protocol):
    """One kind of fault; see the module's docstring for the order of calls."""

    @property
    def kind(self) -> str:
        """Name in the table of kinds."""
        ...

    def capable(self, fault: Fault, host: Host) -> Capability:
        """Say whether this fault can be applied on this host. Changes nothing."""
        ...

    def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
        """Say what will be hit and how it is undone. Changes nothing. Raises TargetGoneError, InjectError."""
        ...

    def inject(self, receipt: Receipt, host: Host) -> None:
        """Apply the fault. Raises InjectError; then whatever was applied is healed."""
        ...

    def verify_within_s(self, fault: Fault) -> float:
        """Return after how many seconds without proof the fault counts as without effect."""
        ...

    def verify(self, receipt: Receipt, host: Host) -> Proof:
        """Measure whether the fault has bitten all that it was to hit."""
        ...

    def holds(self, receipt: Receipt, host: Host) -> Proof:
        """Measure whether the fault still bites. A victim that the stack has replaced is not freed by that."""
        ...

    def heal(self, receipt: Receipt, host: Host) -> Proof:
        """Undo the fault and measure whether it is undone. Harmless when repeated."""
        ...


class Checked:
    """Wraps an injector and refuses whatever does not fit its fault. Raises ReceiptError: a bug in that injector."""

    def __init__(self, injector: Injector) -> None:
        if injector.kind not in KINDS:
            raise ReceiptError(f"injector {injector!r} is for {injector.kind!r}, which is not in the table of kinds")
        self._injector = injector
        self._spec = KINDS[injector.kind]

    @property
    def kind(self) -> str:
        """Name in the table of kinds."""
        return self._spec.name

    def capable(self, fault: Fault, host: Host) -> Capability:
        """Ask the injector; a refusal must say why."""
        self._check(fault.kind == self.kind, f"asked about a fault of kind {fault.kind!r}")
        capability = self._injector.capable(fault, host)
        self._check(capability.ok or bool(capability.reason), "refuses without a reason")
        return capability

    def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
        """Ask the injector; the receipt must be for this fault and these targets, with an undo if the kind has one."""
        self._check(fault.kind == self.kind, f"asked to plan a fault of kind {fault.kind!r}")
        self._check(bool(targets), "asked to plan without a target")
        receipt = self._injector.plan(fault, targets, host)
        self._check(receipt.fault == fault, f"returned a receipt for {receipt.fault.id}, not for {fault.id}")
        self._check(receipt.targets == targets, "returned a receipt for other targets")
        self._check(bool(receipt.hit), "plans to hit nobody")
        self._check(
            bool(receipt.undo) == self._spec.has_undo,
            "returned a receipt without an undo" if self._spec.has_undo else "returned an undo for a kind without one",
        )
        hit = [(member.pid, member.started_ticks) for member in receipt.hit]
        for undo in receipt.undo:
            self._check("do" in undo, f"returned an undo that does not say what to do: {undo!r}")
            touched = (undo.get("pid"), undo.get("started_ticks"))
            self._check("pid" not in undo or touched in hit, f"would undo to process {touched}, which it does not hit")
        return receipt

    def inject(self, receipt: Receipt, host: Host) -> None:
        """Let the injector apply it."""
        self._injector.inject(receipt, host)

    def verify_within_s(self, fault: Fault) -> float:
        """Return after how many seconds without proof the fault counts as without effect."""
        return self._injector.verify_within_s(fault)

    def verify(self, receipt: Receipt, host: Host) -> Proof:
        """Let the injector measure; the proof must say what was measured."""
        return self._proof(self._injector.verify(receipt, host))

    def holds(self, receipt: Receipt, host: Host) -> Proof:
        """Let the injector measure again; the proof must say what was measured."""
        return self._proof(self._injector.holds(receipt, host))

    def heal(self, receipt: Receipt, host: Host) -> Proof:
        """Let the injector undo; the proof must say what was measured."""
        self._check(self._spec.has_undo, "asked to heal a kind without undo")
        return self._proof(self._injector.heal(receipt, host))

    def _proof(self, proof: Proof) -> Proof:
        self._check(bool(proof.text), "returned a proof that does not say what was measured")
        return proof

    def _check(self, holds: bool, complaint: str) -> None:
        if not holds:
            raise ReceiptError(f"injector {self._spec.name}: {complaint}")
