"""One suite over every injector of the catalogue: with a fake host, and with a real child process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from chaos import undo
from chaos.catalog import default_catalog
from chaos.clock import SystemClock
from chaos.errors import TargetGoneError
from chaos.fault import KINDS, Fault, parse_fault
from chaos.host import Host
from chaos.injector import Checked, Proof, Receipt
from chaos.ledger_state import Owner
from chaos.local_host import LocalHost
from chaos.processes import boot_id, host_name, pid_namespace
from chaos.target import RosterMember
from tests.fakes.chaos_fakes import FakeHost, is_alive, states_of, victim
from tests.fakes.waiting import wait_until

CATALOG = default_catalog()
Scene = tuple[Host, RosterMember, RosterMember]


@pytest.fixture(params=["fake", "real"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A host, the target of the fault, and a bystander."""
    if request.param == "fake":
        host = FakeHost("n0")
        yield host, host.add(10, rank=0), host.add(11, rank=1)
        return
    with victim() as target, victim() as bystander:
        yield LocalHost("n0"), target, bystander


@pytest.fixture(params=KINDS)
def injector(request: pytest.FixtureRequest) -> Checked:
    kind: str = request.param
    return CATALOG[kind]


def fault_of(injector: Checked) -> Fault:
    return parse_fault(0, {injector.kind: {"rank": 0}, "when": {"step": 1}})


def planned(injector: Checked, scene: Scene) -> Receipt:
    host, target, _ = scene
    return injector.plan(fault_of(injector), (target,), host)


def wait_proof(measure: Callable[[], Proof]) -> Proof:
    """Measure until it is proven."""
    proofs: list[Proof] = []

    def look() -> bool:
        proofs.append(measure())
        return proofs[-1].ok

    wait_until(look, what="the proof")
    return proofs[-1]


def test_every_kind_has_an_injector() -> None:
    assert list(CATALOG) == list(KINDS)
    assert all(injector.kind == kind for kind, injector in CATALOG.items())


def test_it_is_capable_here(injector: Checked, scene: Scene) -> None:
    assert injector.capable(fault_of(injector), scene[0]).ok


def test_planning_changes_nothing(injector: Checked, scene: Scene) -> None:
    host, target, bystander = scene
    before = [host.thread_states(target), host.thread_states(bystander)]
    planned(injector, scene)
    assert [host.thread_states(target), host.thread_states(bystander)] == before


def test_its_undo_survives_the_ledger(injector: Checked, scene: Scene) -> None:
    steps = planned(injector, scene).undo
    assert json.loads(json.dumps(steps)) == list(steps)


def test_from_injection_to_heal_with_the_bystander_unharmed(injector: Checked, scene: Scene) -> None:
    host, target, bystander = scene
    receipt = planned(injector, scene)
    injector.inject(receipt, host)
    assert str(target.pid) in wait_proof(lambda: injector.verify(receipt, host)).text
    assert injector.holds(receipt, host).ok
    assert host.thread_states(bystander) not in {"", "T", "TT"}
    if KINDS[injector.kind].has_undo:
        for _ in range(2):
            wait_proof(lambda: injector.heal(receipt, host))
        assert "T" not in host.thread_states(target)
        assert host.thread_states(target)


def test_a_target_that_has_ended_is_refused_when_planned(injector: Checked, scene: Scene) -> None:
    host, target, _ = scene
    assert host.send(target, "KILL")
    wait_until(lambda: not host.thread_states(target), what="the target's end")
    with pytest.raises(TargetGoneError, match=str(target.pid)):
        planned(injector, scene)


def test_a_target_that_ends_after_the_plan_can_be_healed(injector: Checked, scene: Scene) -> None:
    host, target, bystander = scene
    receipt = planned(injector, scene)
    assert host.send(target, "KILL")
    wait_until(lambda: not host.thread_states(target), what="the target's end")
    if injector.kind != "noop":
        with pytest.raises(TargetGoneError):
            injector.inject(receipt, host)
    if KINDS[injector.kind].has_undo:
        assert injector.heal(receipt, host).ok
    assert host.thread_states(bystander)


def test_a_healed_half_is_harmless(injector: Checked, scene: Scene) -> None:
    """Healing what was planned and never applied changes nothing."""
    host, target, _ = scene
    receipt = planned(injector, scene)
    if KINDS[injector.kind].has_undo:
        assert injector.heal(receipt, host).ok
    assert "T" not in host.thread_states(target)
    assert host.thread_states(target)


@pytest.mark.parametrize("kind", [kind for kind, spec in KINDS.items() if spec.has_undo])
def test_a_reaper_undoes_it_from_the_data_alone(kind: str) -> None:
    injector, clock = CATALOG[kind], SystemClock()
    owner = Owner("r1", 1, 1, boot_id(), pid_namespace(), host_name())
    with victim() as target:
        host = LocalHost("n0")
        receipt = injector.plan(fault_of(injector), (target,), host)
        injector.inject(receipt, host)
        wait_proof(lambda: injector.verify(receipt, host))
        for step in json.loads(json.dumps(receipt.undo)):
            assert undo.perform(step, owner, clock) == ""
        assert "T" not in states_of(target)
        assert is_alive(target)


CHILDREN = """
import os, signal
for _ in range(2):
    if os.fork() == 0:
        break
signal.pause()
"""


@pytest.mark.parametrize("kind", ["kill", "stop"])
def test_children_are_hit_too_if_asked_for(kind: str) -> None:
    injector, host = CATALOG[kind], LocalHost("n0")
    fault = parse_fault(0, {kind: {"rank": 0, "children": True}, "when": {"step": 1}})
    with victim(program=CHILDREN) as parent:
        wait_until(lambda: len(host.descendants(parent)) == 2, what="two children")
        children = host.descendants(parent)
        receipt = injector.plan(fault, (parent,), host)
        assert receipt.hit == (parent, *children)
        injector.inject(receipt, host)
        wait_proof(lambda: injector.verify(receipt, host))
        if kind == "stop":
            wait_proof(lambda: injector.heal(receipt, host))
            for child in children:
                assert host.send(child, "KILL")
        wait_until(lambda: not any(map(is_alive, children)), what="the children's end")


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV"])
def test_other_signals_end_a_program_that_does_not_handle_them(name: str) -> None:
    injector, host = CATALOG["kill"], LocalHost("n0")
    fault = parse_fault(0, {"kill": {"rank": 0, "signal": name}, "when": {"step": 1}})
    # Set and not inherited: whoever runs tests in the background has these signals ignored.
    setup = (
        "import signal, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
        f"signal.signal(signal.SIG{name}, signal.SIG_DFL)"
    )
    with victim(program="signal.pause()", setup=setup) as target:
        receipt = injector.plan(fault, (target,), host)
        injector.inject(receipt, host)
        proof = wait_proof(lambda: injector.verify(receipt, host))
        assert proof.text == f"process {target.pid} is gone after SIG{name}"


def test_a_signal_that_is_ignored_is_not_proven() -> None:
    injector, host = CATALOG["kill"], LocalHost("n0")
    fault = parse_fault(0, {"kill": {"rank": 0, "signal": "TERM"}, "when": {"step": 1}})
    program = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
    with victim(program=program) as target:
        wait_until(lambda: _ignores_term(target), what="its setup")
        receipt = injector.plan(fault, (target,), host)
        injector.inject(receipt, host)
        proof = injector.verify(receipt, host)
        assert (proof.ok, proof.hopeless) == (False, False)
        assert proof.text == f"process {target.pid} still lives after SIGTERM"


def _status(member: RosterMember) -> str:
    with open(f"/proc/{member.pid}/status", encoding="ascii") as file:
        return file.read()


def _ignores_term(member: RosterMember) -> bool:
    (line,) = [line for line in _status(member).splitlines() if line.startswith("SigIgn:")]
    return bool(int(line.split()[1], 16) & (1 << 14))
