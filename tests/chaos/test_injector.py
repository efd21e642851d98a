"""`Checked` refuses whatever does not fit the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.errors import ReceiptError
from chaos.fault import Fault
from chaos.host import Host
from chaos.injector import Capability, Checked, Proof, Receipt
from chaos.injectors.noop import Noop
from chaos.injectors.process import Kill, Stop
from chaos.target import RosterMember
from chaos.undo import send_signal
from tests.fakes.chaos_fakes import FakeHost, fault

OTHER = RosterMember("n0", 99, 990, None)


class Bent(Stop):
    """A stop whose receipts are changed on their way."""

    def __init__(self, bend: Callable[[Receipt], Receipt]) -> None:
        self._bend = bend

    def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
        return self._bend(super().plan(fault, targets, host))


@pytest.mark.parametrize(
    ("bend", "complaint"),
    [
        (lambda receipt: replace(receipt, fault=fault(1, stop={"rank": 2})), "a receipt for f1, not for f0"),
        (lambda receipt: replace(receipt, targets=(OTHER,)), "a receipt for other targets"),
        (lambda receipt: replace(receipt, hit=()), "plans to hit nobody"),
        (lambda receipt: replace(receipt, undo=()), "a receipt without an undo"),
        (lambda receipt: replace(receipt, undo=({"pid": 1},)), "an undo that does not say what to do"),
        (lambda receipt: replace(receipt, undo=(send_signal(99, 990, "CONT"),)), "which it does not hit"),
        (lambda receipt: replace(receipt, undo=(send_signal(12, 121, "CONT"),)), "which it does not hit"),
    ],
)
def test_a_receipt_that_does_not_fit_is_refused(bend: Callable[[Receipt], Receipt], complaint: str) -> None:
    host = FakeHost()
    target = host.add(12, rank=2)
    with pytest.raises(ReceiptError, match=f"injector stop: .*{complaint}"):
        Checked(Bent(bend)).plan(fault(stop={"rank": 2}), (target,), host)
    assert host.sent == []


def test_an_undo_for_what_cannot_be_undone_is_refused() -> None:
    class Undoing(Kill):
        def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
            return replace(super().plan(fault, targets, host), undo=(send_signal(12, 120, "CONT"),))

    host = FakeHost()
    target = host.add(12, rank=2)
    with pytest.raises(ReceiptError, match="an undo for a kind without one"):
        Checked(Undoing()).plan(fault(kill={"rank": 2}), (target,), host)
    with pytest.raises(ReceiptError, match="asked to heal a kind without undo"):
        Checked(Kill()).heal(Receipt(fault(kill={"rank": 2}), (target,), (target,)), host)


def test_a_fault_of_another_kind_or_without_target_is_refused() -> None:
    host = FakeHost()
    target = host.add(12, rank=2)
    with pytest.raises(ReceiptError, match="asked to plan a fault of kind 'kill'"):
        Checked(Stop()).plan(fault(kill={"rank": 2}), (target,), host)
    with pytest.raises(ReceiptError, match="asked to plan without a target"):
        Checked(Stop()).plan(fault(stop={"rank": 2}), (), host)


def test_a_refusal_or_a_proof_without_words_is_refused() -> None:
    class Mute(Noop):
        def capable(self, fault: Fault, host: Host) -> Capability:
            return Capability(ok=False)

        def verify(self, receipt: Receipt, host: Host) -> Proof:
            return Proof(ok=True, text="")

    host = FakeHost()
    target = host.add(12, rank=2)
    mute = Checked(Mute())
    with pytest.raises(ReceiptError, match="refuses without a reason"):
        mute.capable(fault(noop={"rank": 2}), host)
    receipt = mute.plan(fault(noop={"rank": 2}), (target,), host)
    with pytest.raises(ReceiptError, match="does not say what was measured"):
        mute.verify(receipt, host)


def test_an_injector_without_a_kind_is_refused() -> None:
    class Unknown(Noop):
        kind = "levitate"

    with pytest.raises(ReceiptError, match="not in the table of kinds"):
        Checked(Unknown())
