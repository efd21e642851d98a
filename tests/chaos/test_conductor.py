"""The conductor on a clock that stands still: what it says, what it does, and what is on disk when it does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.catalog import Catalog, default_catalog
from chaos.conductor import Conductor, ConductorEvent, Effective, Healed, Injected, NoEffect
from chaos.errors import LeaseLostError, LedgerError
from chaos.fault import Fault
from chaos.host import Host
from chaos.injector import Checked, Receipt
from chaos.injectors.noop import Noop
from chaos.ledger import RESERVE_BYTES, Ledger
from chaos.target import Roster, RosterMember
from chaos.trigger import Sighting
from chaos.undo import nothing
from tests.fakes.chaos_fakes import FakeClock, FakeHost, event, fault, no_bigger_file_than, step

Script = list[Sighting | float | Callable[[], object] | None]


def said(happened: ConductorEvent) -> tuple[float, str, str, str]:
    """An event as (time, type, fault, text)."""
    at_s = round(happened.at_s, 3)
    match happened:
        case Injected():
            return at_s, "injected", happened.fault.id, ",".join(str(who.pid) for who in happened.hit)
        case Effective():
            return at_s, "effective", happened.fault.id, happened.proof
        case NoEffect():
            return at_s, "no effect", happened.fault.id, happened.reason
        case Healed():
            return at_s, "healed" if happened.verified else "NOT healed", happened.fault.id, happened.detail


class Stage:
    """A world of ranks 0 to 2 (pids 10 to 12, rank 2 with a child 20) and a spare (13) on one fake host."""

    def __init__(self, tmp_path: Path, *, catalog: Catalog | None = None) -> None:
        self.clock = FakeClock(100.0)
        self.host = FakeHost("n0")
        ranks = [self.host.add(10 + rank, rank=rank) for rank in range(3)]
        self.host.add(20, parent=12)
        self.roster = Roster((*ranks, self.host.add(13)))
        self.ledger = Ledger.create(str(tmp_path / "state"), "r1", self.clock)
        self.events: list[ConductorEvent] = []
        self.catalog: Catalog = catalog or default_catalog()

    def play(self, faults: list[Fault], script: Script) -> list[tuple[float, str, str, str]]:
        """Run a conductor over a script: sightings, seconds to let pass, and things that happen."""
        self.conductor(faults).run(self._sightings(script))
        return self.said

    @property
    def said(self) -> list[tuple[float, str, str, str]]:
        return [said(happened) for happened in self.events]

    def conductor(self, faults: list[Fault]) -> Conductor:
        return Conductor(
            faults=faults,
            ledger=self.ledger,
            catalog=self.catalog,
            host_of=lambda _node: self.host,
            roster=lambda: self.roster,
            clock=self.clock,
            emit=self.events.append,
            choice=lambda count: count - 1,
        )

    def _sightings(self, script: Script) -> Iterator[Sighting | None]:
        for line in script:
            if isinstance(line, float):
                self.clock.now_s += line
                yield None
            elif callable(line):
                line()
            else:
                yield line

    def dies(self, pid: int) -> Callable[[], object]:
        return lambda: self.host.states.update({pid: ""})


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.ledger.release()


def test_a_kill_from_due_to_proof(stage: Stage) -> None:
    assert stage.play([fault(kill={"rank": 2})], [step(2, 19), 1.0, step(2, 20), 1.0]) == [
        (101.0, "injected", "f0", "12"),
        (101.0, "effective", "f0", "process 12 is gone after SIGKILL"),
    ]
    assert stage.host.sent == [(12, "KILL")]
    assert stage.ledger.state.open_entries() == ()


def test_a_stop_for_two_seconds(stage: Stage) -> None:
    assert stage.play([fault(stop={"rank": 2}, duration_s=2)], [step(2, 20), 1.9, 0.1, 5.0]) == [
        (100.0, "injected", "f0", "12"),
        (100.0, "effective", "f0", "thread states 12: TT"),
        (102.0, "healed", "f0", "duration over: thread states 12: SS"),
    ]
    assert stage.host.sent == [(12, "STOP"), (12, "CONT")]


def test_what_is_held_when_the_drill_ends_is_healed_the_last_first(stage: Stage) -> None:
    faults = [fault(0, stop={"rank": 0}, when={"step": 20}), fault(1, noop={"rank": 1}, when={"event": "fault:f0"})]
    assert stage.play(faults, [step(0, 20), 3.0]) == [
        (100.0, "injected", "f0", "10"),
        (100.0, "injected", "f1", "11"),
        (100.0, "effective", "f0", "thread states 10: TT"),
        (100.0, "effective", "f1", "nothing was done; thread states 11: SS"),
        (103.0, "healed", "f1", "drill over: there was nothing to undo"),
        (103.0, "healed", "f0", "drill over: thread states 10: SS"),
    ]


def test_the_undo_is_on_disk_before_anything_is_done(stage: Stage) -> None:
    seen: list[str] = []

    class Watching(FakeHost):
        def send(self, member: RosterMember, signal_name: str) -> bool:
            text = Path(stage.ledger.path).read_bytes().partition(b"\0")[0].splitlines()
            last = json.loads(text[-1])
            seen.append(f"{signal_name} after {last['is']} {last['name']} {last.get('undo')}")
            return stage.host.send(member, signal_name)

        def thread_states(self, member: RosterMember) -> str:
            return stage.host.thread_states(member)

    conductor = Conductor(
        faults=[fault(stop={"rank": 2})],
        ledger=stage.ledger,
        catalog=stage.catalog,
        host_of=Watching,
        roster=lambda: stage.roster,
        clock=stage.clock,
        emit=lambda _: None,
        choice=lambda _: 0,
    )
    conductor.run(iter([step(2, 20)]))
    undo = {"do": "signal", "pid": 12, "started_ticks": 120, "signal": "CONT"}
    assert seen == [f"STOP after arm f0 [{undo}]", "CONT after applied f0 None"]


def test_faults_due_at_once_are_all_armed_before_the_first_is_applied(stage: Stage) -> None:
    faults = [fault(0, kill={"rank": 0}, when={"step": 20}), fault(1, kill={"rank": "any"}, when={"step": 20})]
    stage.play(faults, [step(0, 20)])
    text = Path(stage.ledger.path).read_bytes().partition(b"\0")[0].splitlines()
    order = [f"{record['is']} {record.get('name', '')}" for record in map(json.loads, text)]
    assert order[1:] == ["arm f0", "arm f1", "applied f0", "applied f1", "healed f1", "healed f0"]
    assert stage.host.sent == [(10, "KILL"), (12, "KILL")]


def test_descendants_keep_the_ranks_they_hold(stage: Stage) -> None:
    stage.host.parents[11] = 5
    stage.host.add(5)
    agent = RosterMember("n0", 5, 50, None)
    stage.roster = Roster(stage.roster.members, agents=(agent,))
    stage.play([fault(kill={"agent": "n0", "children": True}, when={"step": 1})], [step(0, 1)])
    happened = stage.events[0]
    assert isinstance(happened, Injected)
    assert happened.targets == (agent,)
    assert happened.hit == (agent, stage.roster.members[1])


def test_a_target_that_is_not_there_when_the_fault_is_due(stage: Stage) -> None:
    ((at_s, what, _, reason),) = stage.play([fault(kill={"rank": 7})], [step(7, 20)])
    assert (at_s, what) == (100.0, "no effect")
    assert "expected rank 7 to be there when the fault is due, got ranks [0, 1, 2], 1 spare(s)" in reason


def test_a_fault_that_is_never_due_and_the_one_that_waits_for_it(stage: Stage) -> None:
    faults = [fault(0, kill={"rank": 2}), fault(1, kill={"rank": 1}, when={"event": "fault:f0", "after_s": 2})]
    assert stage.play(faults, [step(2, 19), 5.0]) == [
        (105.0, "no effect", "f0", "it was never due: the drill ended before step 20"),
        (105.0, "no effect", "f1", "it was never due: the drill ended before 2 s after event fault:f0"),
    ]
    assert stage.host.sent == []


def test_a_target_that_dies_before_the_fault_is_due(stage: Stage) -> None:
    assert stage.play([fault(stop={"rank": 2})], [step(2, 19), stage.dies(12), step(2, 20), 1.0]) == [
        (100.0, "no effect", "f0", "process 12 on n0 had ended before the fault was due")
    ]


def test_a_signal_that_is_not_permitted(stage: Stage) -> None:
    stage.host.forbidden = (12,)
    assert stage.play([fault(kill={"rank": 2})], [step(2, 20), 1.0]) == [(100.0, "no effect", "f0", "not permitted")]


def test_a_target_that_is_killed_while_it_is_stopped_counts_as_healed(stage: Stage) -> None:
    assert stage.play([fault(stop={"rank": 2}, duration_s=2)], [step(2, 20), stage.dies(12), 2.0])[2:] == [
        (102.0, "healed", "f0", "duration over: thread states 12: gone")
    ]


def test_a_fault_that_does_not_bite_is_said_once(stage: Stage) -> None:
    stage.host.immune[12] = ("KILL",)
    assert stage.play([fault(kill={"rank": 2})], [step(2, 20), 4.9, 0.2, 0.2]) == [
        (100.0, "injected", "f0", "12"),
        (105.1, "no effect", "f0", "no effect within 5.10 s: process 12 still lives after SIGKILL"),
    ]


def test_a_stop_that_somebody_else_ends_did_not_hold(stage: Stage) -> None:
    script: Script = [step(2, 20), lambda: stage.host.states.update({12: "SS"}), 2.0]
    assert stage.play([fault(stop={"rank": 2}, duration_s=2)], script)[2:] == [
        (102.0, "no effect", "f0", "it did not hold until it was healed: thread states 12: SS"),
        (102.0, "healed", "f0", "duration over: thread states 12: SS"),
    ]


def test_a_second_stop_of_a_stopped_target_has_no_effect(stage: Stage) -> None:
    faults = [fault(0, stop={"rank": 2}, duration_s=4), fault(1, stop={"rank": 2}, when={"event": "fault:f0"})]
    assert stage.play(faults, [step(2, 20), 4.0])[1:] == [
        (100.0, "no effect", "f1", "process 12 on n0 is stopped already"),
        (100.0, "effective", "f0", "thread states 12: TT"),
        (104.0, "healed", "f0", "duration over: thread states 12: SS"),
    ]


def test_a_stopped_target_may_be_killed_by_the_next_fault(stage: Stage) -> None:
    after = {"event": "fault:f0", "after_s": 1}
    faults = [fault(0, stop={"rank": 2}, duration_s=4), fault(1, kill={"rank": 2}, when=after)]
    assert stage.play(faults, [step(2, 20), 1.0, 3.0])[2:] == [
        (101.0, "injected", "f1", "12"),
        (101.0, "effective", "f1", "process 12 is gone after SIGKILL"),
        (104.0, "healed", "f0", "duration over: thread states 12: gone"),
    ]


def test_a_heal_that_fails_is_tried_again_then_said_and_left_to_the_reapers(stage: Stage) -> None:
    stage.host.immune[12] = ("CONT",)
    assert stage.play([fault(stop={"rank": 2}, duration_s=2)], [step(2, 20), 2.0, 0.5, 0.6])[2:] == [
        (103.1, "NOT healed", "f0", "duration over: thread states 12: TT")
    ]
    assert stage.host.sent.count((12, "CONT")) > 2
    assert [entry.name for entry in stage.ledger.state.open_entries()] == ["f0"]


def test_a_fault_that_a_reaper_has_healed_is_not_healed_again(stage: Stage) -> None:
    def reaper_heals() -> None:
        Ledger.open(stage.ledger.path, stage.clock).record_healed("f0", "reaper 9", "lease over")

    assert stage.play([fault(stop={"rank": 2}, lease_s=2)], [step(2, 20), reaper_heals, 3.0])[2:] == [
        (103.0, "healed", "f0", "lease over: undone by reaper 9 (lease over)")
    ]
    assert stage.host.sent == [(12, "STOP")]


def test_a_crash_of_the_tester_heals_on_its_way_out(stage: Stage) -> None:
    def crash() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.play([fault(stop={"rank": 2})], [step(2, 20), crash])
    assert stage.said[-1] == (100.0, "healed", "f0", "drill over: thread states 12: SS")


def test_a_run_that_was_undone_under_its_feet_ends(stage: Stage) -> None:
    stage.ledger.arm("run", [nothing()], 5.0, renewed=True)

    def reaper_heals() -> None:
        other = Ledger.open(stage.ledger.path, stage.clock)
        other.record_healed("f0", "reaper 9", "lease over")
        other.record_healed("run", "reaper 9", "lease over")

    with pytest.raises(LeaseLostError):
        stage.play([fault(stop={"rank": 2})], [step(2, 20), reaper_heals, 1.0, event("more")])
    assert stage.said[-1] == (101.0, "healed", "f0", "drill over: undone by reaper 9 (lease over)")


class Bulky(Noop):
    """A noop whose undo does not fit into the reserved space of a ledger."""

    def plan(self, fault: Fault, targets: tuple[RosterMember, ...], host: Host) -> Receipt:
        return Receipt(fault, targets, targets, ({"do": "nothing", "note": "x" * RESERVE_BYTES},))

    def inject(self, receipt: Receipt, host: Host) -> None:
        raise AssertionError("nothing may be applied whose undo is not on disk")


def test_a_disk_that_is_full_when_a_fault_is_due(tmp_path: Path) -> None:
    stage = Stage(tmp_path, catalog={"noop": Checked(Bulky())})
    with no_bigger_file_than(RESERVE_BYTES), pytest.raises(LedgerError, match="cannot write the ledger"):
        stage.play([fault(noop={"rank": 2})], [step(2, 20)])
    assert stage.said == []


def test_what_an_earlier_conductor_left_is_undone_first(stage: Stage) -> None:
    stage.ledger.arm("run", [nothing()], 5.0, renewed=True)
    stage.ledger.arm("f0", [nothing()], 60.0)
    stage.play([fault(noop={"rank": 1}, when={"step": 1})], [step(1, 1)])
    entries = stage.ledger.refresh().entries
    assert (entries["run"].healed_by, entries["f0"].healed_by) == ("", "conductor")
