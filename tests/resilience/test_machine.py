"""The controller's decisions, as plain calls: events and a number for now in, commands out."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pytest

from harness.resilience.control import events as ev
from harness.resilience.control.commands import Alarm, Command, Finish, Form, Park, Release, Restock, Stop
from harness.resilience.control.machine import TRANSITIONS, Machine, State
from harness.resilience.limits import PRESETS

Kind = TypeVar("Kind")
LIMITS = PRESETS["ci"]


def only(commands: list[Command], kind: type[Kind]) -> list[Kind]:
    return [command for command in commands if isinstance(command, kind)]


class Run:
    """A run of 4 ranks and 1 spare on 3 nodes: n0 and n1 with two members each, n2 with one."""

    def __init__(self, world: int = 4, spares: int = 1, counts: tuple[int, ...] = (2, 2, 1)) -> None:
        self.machine = Machine(world=world, spares=spares, limits=LIMITS)
        self.now_s = 0.0
        self.counts = counts

    def tell(self, event: ev.Event, after_s: float = 0.001) -> list[Command]:
        self.now_s += after_s
        return self.machine.handle(event, self.now_s)

    def state(self) -> State:
        return self.machine.state

    def start(self) -> list[Command]:
        out: list[Command] = []
        for node in range(len(self.counts)):
            self.tell(ev.NodeJoined(node=node, name=f"n{node}", address=f"10.0.0.{node}:1"))
        for node, count in enumerate(self.counts):
            for serial in range(count):
                out = self.tell(ev.MembersReady(node=node, members=ev.ints(serial), pids=ev.ints(100 * node + serial)))
        return out

    def train(self) -> list[Command]:
        self.start()
        return self.form_all()

    def form_all(self) -> list[Command]:
        out: list[Command] = []
        for node, serial in self.holders():
            out += self.tell(ev.MembersFormed(node=node, generation=self.machine.generation, members=ev.ints(serial)))
        return out

    def holders(self) -> list[tuple[int, int]]:
        return [(int(key) >> 20, int(key) & 0xFFFFF) for key in self.machine.world.holder if key >= 0]

    def holder(self, rank: int) -> tuple[int, int]:
        key = int(self.machine.world.holder[rank])
        return key >> 20, key & 0xFFFFF

    def die(self, node: int, serial: int, newest: int = 20, previous: int = 19, code: int = -9) -> list[Command]:
        return self.tell(
            ev.MembersExited(
                node=node,
                members=ev.ints(serial),
                codes=ev.ints(code),
                newest=ev.ints(newest),
                previous=ev.ints(previous),
            )
        )

    def park(
        self, node: int, serial: int, newest: int = 20, previous: int = 19, left: int | None = None
    ) -> list[Command]:
        return self.tell(
            ev.MembersParked(
                node=node,
                left_generation=self.machine.generation - 1 if left is None else left,
                members=ev.ints(serial),
                newest=ev.ints(newest),
                previous=ev.ints(previous),
            )
        )

    def park_all(self) -> list[Command]:
        out: list[Command] = []
        for node, serial in self.holders():
            out += self.park(node, serial)
        return out


def test_ranks_are_spread_over_nodes_in_order_of_name_whoever_connects_first() -> None:
    run = Run()
    for node, name in ((0, "n2"), (1, "n0"), (2, "n1")):
        run.tell(ev.NodeJoined(node=node, name=name, address=f"a{node}"))
    for node, count in ((0, 1), (1, 2), (2, 2)):
        for serial in range(count):
            out = run.tell(ev.MembersReady(node=node, members=ev.ints(serial), pids=ev.ints(1)))
    assert [run.holder(rank) for rank in range(4)] == [(1, 0), (2, 0), (0, 0), (1, 1)]
    assert {form.version for form in only(out, Form)} == {0}
    assert all(bool(np.all(form.source_nodes == -1)) for form in only(out, Form))


def test_training_waits_for_all_members_and_spares() -> None:
    run = Run()
    for node in range(3):
        run.tell(ev.NodeJoined(node=node, name=f"n{node}", address=""))
    for node, serial in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert run.tell(ev.MembersReady(node=node, members=ev.ints(serial), pids=ev.ints(1))) == []
    assert run.state() is State.STARTING
    run.tell(ev.MembersReady(node=2, members=ev.ints(0), pids=ev.ints(1)))
    assert run.state() is State.FORMING
    run.form_all()
    assert run.state() is State.TRAINING


def test_a_killed_rank_is_replaced_by_the_spare_and_nobody_else_moves() -> None:
    run = Run()
    run.train()
    before = list(run.machine.world.holder)
    out = run.die(2, 0)
    assert [(alarm.kind, alarm.rank, alarm.node, alarm.confirmed) for alarm in only(out, Alarm)] == [
        ("crash", 2, "n2", True)
    ]
    assert [park.node for park in only(out, Park)] == [0, 1]
    assert run.machine.generation == 2
    out = run.park_all()
    forms = {form.node: form for form in only(out, Form)}
    assert run.state() is State.FORMING
    assert run.holder(2) == (1, 1)
    assert [run.machine.world.holder[rank] for rank in (0, 1, 3)] == [before[rank] for rank in (0, 1, 3)]
    assert {form.version for form in forms.values()} == {20}
    spare_row = forms[1].ranks.tolist().index(2)
    assert forms[1].source_nodes[spare_row] == 2
    assert forms[1].source_addresses[spare_row] == "10.0.0.2:1"
    out = run.form_all()
    assert [(release.node, release.members.tolist()) for release in only(out, Release)] == [(2, [0])]
    assert [(restock.node, restock.count) for restock in only(out, Restock)] == [(2, 1)]


def test_everybody_loads_the_newest_version_that_every_rank_holds() -> None:
    run = Run()
    run.train()
    run.die(2, 0, newest=20, previous=19)
    for node, serial in ((0, 0), (1, 0)):
        run.park(node, serial, newest=21, previous=20)
    out = run.park(0, 1, newest=20, previous=19)
    assert {form.version for form in only(out, Form)} == {20}


def test_no_common_version_stops_instead_of_guessing() -> None:
    run = Run()
    run.train()
    run.die(2, 0, newest=17, previous=16)
    out = run.park_all()
    assert only(out, Form) == []
    assert "no snapshot" in only(out, Stop)[0].reason


def test_death_before_any_snapshot_starts_from_the_state_as_built() -> None:
    run = Run()
    run.start()
    run.die(2, 0, newest=-1, previous=-1)
    for node, serial in run.holders():
        out = run.park(node, serial, newest=0, previous=-1)
    forms = only(out, Form)
    assert {form.version for form in forms} == {0}
    sources = {
        int(rank): int(source) for form in forms for rank, source in zip(form.ranks, form.source_nodes, strict=True)
    }
    assert sources[2] == -1
    assert sources[0] == 0


def test_a_member_that_parks_by_itself_starts_the_regroup_before_the_death_is_known() -> None:
    run = Run()
    run.train()
    out = run.park(0, 0, left=1)
    assert run.state() is State.PARKING
    assert [park.node for park in only(out, Park)] == [0, 1, 2]
    out = run.die(2, 0)
    assert only(out, Park) == []
    run.park(1, 0)
    out = run.park(0, 1)
    assert len(only(out, Form)) == 2


def test_a_broken_connection_without_a_death_regroups_the_same_members() -> None:
    run = Run()
    run.train()
    before = run.machine.world.holder.tolist()
    run.park(0, 0, left=1)
    for node, serial in run.holders()[1:-1]:
        run.park(node, serial)
    assert run.state() is State.PARKING
    out = run.park(*run.holders()[-1])
    assert run.state() is State.FORMING
    assert run.machine.world.holder.tolist() == before
    assert only(out, Alarm) == []


def test_a_late_report_from_an_older_generation_is_ignored() -> None:
    run = Run()
    run.train()
    run.die(2, 0)
    run.park_all()
    run.form_all()
    assert run.park(0, 0, left=1) == []
    assert run.state() is State.TRAINING
    assert run.tell(ev.MembersFormed(node=0, generation=1, members=ev.ints(0))) == []


def test_the_promoted_spare_dies_while_it_is_promoted() -> None:
    run = Run(counts=(2, 2, 2))
    run.machine = Machine(world=4, spares=2, limits=LIMITS)
    run.train()
    run.die(2, 0)
    run.park_all()
    first_spare = run.holder(2)
    run.die(*first_spare, newest=-1, previous=-1)
    assert run.machine.generation == 3
    for node, serial in run.holders():
        run.park(node, serial, left=2)
    assert run.state() is State.FORMING
    assert run.holder(2) not in (first_spare, (2, 0))
    out = run.form_all()
    assert sorted((release.node, release.members.tolist()[0]) for release in only(out, Release)) == sorted(
        [(2, 0), first_spare]
    )


def test_a_second_death_while_parking_is_taken_along() -> None:
    run = Run(counts=(2, 2, 2))
    run.machine = Machine(world=4, spares=2, limits=LIMITS)
    run.train()
    run.die(2, 0)
    run.die(0, 1)
    assert run.machine.generation == 2
    for node, serial in run.holders():
        out = run.park(node, serial)
    assert sorted(rank for form in only(out, Form) for rank in form.ranks.tolist()) == [0, 1, 2, 3]


def test_without_a_spare_it_waits_for_the_restock_and_stops_with_a_reason_when_none_comes() -> None:
    run = Run(spares=0, counts=(2, 1, 1))
    run.train()
    run.die(2, 0)
    out = run.park_all()
    assert [restock.count for restock in only(out, Restock)] == [1]
    assert run.state() is State.PARKING
    waiting = run.tell(ev.Ticked(), after_s=LIMITS.pause_s + 1)
    assert "no spare for ranks [2]" in only(waiting, Stop)[0].reason


def test_the_restocked_member_takes_the_vacant_rank() -> None:
    run = Run(spares=0, counts=(2, 1, 1))
    run.train()
    run.die(2, 0)
    out = run.park_all()
    node = only(out, Restock)[0].node
    out = run.tell(ev.MembersReady(node=node, members=ev.ints(5), pids=ev.ints(9)))
    assert run.holder(2) == (node, 5)
    assert len(only(out, Form)) == 3 - (node != 2)


def test_a_dead_spare_is_reported_and_restocked_without_disturbing_training() -> None:
    run = Run()
    run.train()
    out = run.die(1, 1, newest=-1, previous=-1)
    assert [(alarm.kind, alarm.rank) for alarm in only(out, Alarm)] == [("crash", None)]
    assert only(out, Park) == []
    assert len(only(out, Restock)) == 1
    assert run.state() is State.TRAINING


def test_members_that_never_come_up_stop_the_run_with_a_reason() -> None:
    run = Run()
    run.tell(ev.NodeJoined(node=0, name="n0", address=""))
    out = run.tell(ev.RestockFailed(node=0, reason="the program ended with exit code 1"))
    assert "n0 cannot start a member" in only(out, Stop)[0].reason
    assert run.state() is State.STOPPED


def test_too_few_members_in_time_stop_the_run_with_a_reason() -> None:
    run = Run()
    run.tell(ev.NodeJoined(node=0, name="n0", address=""))
    out = run.tell(ev.Ticked(), after_s=LIMITS.start_s + 1)
    assert "only 0 of 5" in only(out, Stop)[0].reason


def test_the_same_exception_on_a_second_member_is_code_not_hardware() -> None:
    run = Run()
    run.train()
    fingerprint = ("ValueError at step 7: bad",)
    out = run.tell(ev.MembersRaised(node=2, members=ev.ints(0), fingerprints=fingerprint))
    assert [alarm.kind for alarm in only(out, Alarm)] == ["exception"]
    assert run.state() is State.TRAINING
    out = run.tell(ev.MembersRaised(node=0, members=ev.ints(0), fingerprints=fingerprint))
    assert "code, not hardware" in only(out, Stop)[0].reason


def test_a_lost_node_takes_its_ranks_state_along_and_the_run_stops_with_that_reason() -> None:
    run = Run()
    run.train()
    out = run.tell(ev.NodeLost(node=0, reason="silent"))
    assert "ranks [0, 3]" in only(out, Stop)[0].reason


def test_a_survivor_that_cannot_leave_its_generation_stops_the_run_by_name() -> None:
    run = Run()
    run.train()
    run.die(2, 0)
    run.park(0, 0)
    run.park(0, 1)
    out = run.tell(ev.Ticked(), after_s=LIMITS.park_s + 1)
    assert "ranks [1] did not leave" in only(out, Stop)[0].reason


def test_a_generation_that_does_not_form_is_tried_again_and_then_given_up() -> None:
    run = Run()
    run.start()
    for _ in range(2):
        run.tell(ev.Ticked(), after_s=LIMITS.form_s + 1)
        assert run.state() is State.PARKING
        run.park_all()
        assert run.state() is State.FORMING
    out = run.tell(ev.Ticked(), after_s=LIMITS.form_s + 1)
    assert "could not be formed in 3 tries" in only(out, Stop)[0].reason


def test_training_is_finished_when_every_rank_is() -> None:
    run = Run()
    run.train()
    out: list[Command] = []
    for node, serial in run.holders():
        assert only(out, Finish) == []
        out = run.tell(ev.MembersFinished(node=node, generation=1, members=ev.ints(serial)))
    assert [finish.node for finish in only(out, Finish)] == [0, 1, 2]
    assert run.die(0, 0, code=0) == []


@pytest.mark.parametrize("state", list(State))
def test_every_transition_names_a_handler(state: State) -> None:
    for name, targets in TRANSITIONS[state].values():
        assert callable(getattr(Machine, name))
        assert targets
