"""Faults of processes by signals: `kill` ends them, `stop` freezes them (SIGSTOP) and heals them (SIGCONT)."""

from __future__ import annotations

from chaos import undo
from chaos.errors import InjectError, TargetGoneError
from chaos.fault import Fault
from chaos.host import Host
from chaos.injector import Capability, Proof, Receipt
from chaos.processes import is_stopped
from chaos.target import RosterMember

STOPPED_WITHIN_S = 1.0
KILLED_WITHIN_S = 5.0
"""A process with gigabytes of memory takes seconds to end after SIGKILL."""
ENDED_WITHIN_S = 30.0
"""Other signals may be handled first, by saving a checkpoint, say."""


def _hit(fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> tuple[RosterMember, ...]:
    """Return the targets, with their descendants if asked for, parents first. Raises TargetGoneError."""
    hit: list[RosterMember] = []
    for target in targets:
        if not host.thread_states(target):
            raise TargetGoneError(f"process {target.pid} on {target.node} had ended before the fault was due")
        hit.append(target)
        if fault.param("children"):
            hit.extend(child for child in host.descendants(target) if child not in hit)
    return tuple(hit)


def _named(members: list[RosterMember]) -> str:
    return ", ".join(str(member.pid) for member in members)


def _states(receipt: Receipt, host: Host) -> tuple[list[str], str]:
    states = [host.thread_states(member) for member in receipt.hit]
    seen = ", ".join(f"{member.pid}: {letters or 'gone'}" for member, letters in zip(receipt.hit, states, strict=True))
    return states, f"thread states {seen}"


class Kill:
    """Ends its targets by a signal. The exit is the proof; there is no undo."""

    kind = "kill"

    def capable(self, fault: Fault, host: Host) -> Capability:
        """Signals to processes of one's own are possible everywhere."""
        del fault, host
        return Capability(ok=True)

    def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
        """Plan to signal the targets, and their descendants if `children`. Raises TargetGoneError."""
        return Receipt(fault, targets, hit=_hit(fault, targets, host))

    def inject(self, receipt: Receipt, host: Host) -> None:
        """Send the signal to all of them, parents first. Raises TargetGoneError if a target is gone."""
        name = str(receipt.fault.param("signal"))
        missed = [member for member in receipt.hit if not host.send(member, name) and member in receipt.targets]
        if missed:
            raise TargetGoneError(f"process {_named(missed)} ended by itself just before SIG{name} was sent")

    def verify_within_s(self, fault: Fault) -> float:
        """SIGKILL cannot be handled; other signals can, which takes longer."""
        return KILLED_WITHIN_S if fault.param("signal") == "KILL" else ENDED_WITHIN_S

    def verify(self, receipt: Receipt, host: Host) -> Proof:
        """All of them are gone."""
        left = [member for member in receipt.hit if host.thread_states(member)]
        name = f"SIG{receipt.fault.param('signal')}"
        if left:
            return Proof(ok=False, text=f"process {_named(left)} still lives after {name}")
        return Proof(ok=True, text=f"process {_named(list(receipt.hit))} is gone after {name}")

    def holds(self, receipt: Receipt, host: Host) -> Proof:
        """They are still gone."""
        return self.verify(receipt, host)

    def heal(self, receipt: Receipt, host: Host) -> Proof:
        """A killed process stays dead; nobody calls this."""
        raise InjectError("a kill cannot be undone")


class Stop:
    """Freezes its targets. Proof: every thread is in state T. Healed: none is, or the process is gone."""

    kind = "stop"

    def capable(self, fault: Fault, host: Host) -> Capability:
        """Signals to processes of one's own are possible everywhere."""
        del fault, host
        return Capability(ok=True)

    def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
        """Plan to stop the targets. Raises TargetGoneError, and InjectError if one is stopped already."""
        hit = _hit(fault, targets, host)
        for member in hit:
            if is_stopped(host.thread_states(member)):
                # A second stop would change nothing, and the first one's heal would end it.
                raise InjectError(f"process {member.pid} on {member.node} is stopped already")
        undone = tuple(undo.send_signal(member.pid, member.started_ticks, "CONT") for member in hit)
        return Receipt(fault, targets, hit=hit, undo=undone)

    def inject(self, receipt: Receipt, host: Host) -> None:
        """Send SIGSTOP to all of them. Raises TargetGoneError if a target is gone."""
        missed = [member for member in receipt.hit if not host.send(member, "STOP") and member in receipt.targets]
        if missed:
            raise TargetGoneError(f"process {_named(missed)} ended by itself just before SIGSTOP was sent")

    def verify_within_s(self, fault: Fault) -> float:
        """A busy machine takes a while until every thread has seen the signal."""
        del fault
        return STOPPED_WITHIN_S

    def verify(self, receipt: Receipt, host: Host) -> Proof:
        """Every thread of all of them is in state T."""
        states, text = _states(receipt, host)
        return Proof(ok=all(map(is_stopped, states)), text=text, hopeless=not all(states))

    def holds(self, receipt: Receipt, host: Host) -> Proof:
        """Whoever is not gone is still stopped."""
        states, text = _states(receipt, host)
        return Proof(ok=all(is_stopped(letters) for letters in states if letters), text=text)

    def heal(self, receipt: Receipt, host: Host) -> Proof:
        """Send SIGCONT to all of them; none is stopped any more, or it is gone."""
        for member in receipt.hit:
            host.send(member, "CONT")
        states, text = _states(receipt, host)
        return Proof(ok=not any(map(is_stopped, states)), text=text)
