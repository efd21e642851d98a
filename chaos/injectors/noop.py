"""Does nothing, by the same path as every other fault: the control experiment, and the model for a new injector."""

from __future__ import annotations

from chaos import undo
from chaos.errors import TargetGoneError
from chaos.fault import Fault
from chaos.host import Host
from chaos.injector import Capability, Proof, Receipt
from chaos.target import RosterMember


class Noop:
    """Applies nothing, proves that its target is untouched, and undoes nothing."""

    kind = "noop"

    def capable(self, fault: Fault, host: Host) -> Capability:
        """Doing nothing is possible everywhere."""
        del fault, host
        return Capability(ok=True)

    def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
        """Plan to hit the targets with nothing. Raises TargetGoneError."""
        for target in targets:
            if not host.thread_states(target):
                raise TargetGoneError(f"process {target.pid} on {target.node} had ended before the fault was due")
        return Receipt(fault, targets, hit=targets, undo=(undo.nothing(),))

    def inject(self, receipt: Receipt, host: Host) -> None:
        """Do nothing."""

    def verify_within_s(self, fault: Fault) -> float:
        """Nothing has its effect at once."""
        del fault
        return 1.0

    def verify(self, receipt: Receipt, host: Host) -> Proof:
        """Look at the targets: untouched."""
        seen = ", ".join(f"{target.pid}: {host.thread_states(target) or 'gone'}" for target in receipt.hit)
        return Proof(ok=True, text=f"nothing was done; thread states {seen}")

    def holds(self, receipt: Receipt, host: Host) -> Proof:
        """Nothing is still nothing."""
        return self.verify(receipt, host)

    def heal(self, receipt: Receipt, host: Host) -> Proof:
        """Nothing is to be undone."""
        del receipt, host
        return Proof(ok=True, text="there was nothing to undo")
