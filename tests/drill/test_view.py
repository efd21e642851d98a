from __future__ import annotations

from chaos.fault import Fault, parse_fault
from chaos.target import RosterMember
from chaos.trigger import Sighting
from harness.drill.sightings import IDLE_PAUSE_S, PROOF_PAUSE_S, TIMED_PAUSE_S, SightingFilter
from harness.drill.view import RunView
from harness.observe.observation import (
    Claim,
    FaultEffective,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    MemberId,
    MemberJoined,
    Observation,
    ProcessExited,
    RankHeld,
    StateLoaded,
    StepDone,
)

ONE, TWO, THREE = (MemberId("n0", pid, pid * 10) for pid in (1, 2, 3))


def view_of(*seen: Observation, world: int = 2) -> RunView:
    view = RunView(world)
    for each in seen:
        view.see(each)
    return view


def joined(member: MemberId) -> MemberJoined:
    return MemberJoined(1.0, member, "spare")


def held(member: MemberId, rank: int, generation: int = 0) -> RankHeld:
    return RankHeld(1.0, member, rank, 2, generation)


def stepped(member: MemberId, rank: int, step: int) -> StepDone:
    return StepDone(float(step), None, member, rank, 2, 0, step, (), None)


def ranks(view: RunView) -> dict[int, int | None]:
    return {member.pid: member.rank for member in view.roster().members}


def test_members_are_spares_until_they_hold_a_rank() -> None:
    assert ranks(view_of(joined(ONE), joined(TWO), held(ONE, 0))) == {1: 0, 2: None}


def test_a_rank_belongs_to_its_newest_holder() -> None:
    # The old holder may still be there, stopped.
    view = view_of(joined(ONE), joined(TWO), held(ONE, 0), held(TWO, 0, generation=1))
    assert ranks(view) == {1: None, 2: 0}


def test_the_dead_are_not_in_the_roster() -> None:
    view = view_of(joined(ONE), held(ONE, 0), joined(TWO), ProcessExited(2.0, ONE, None, 9))
    assert ranks(view) == {2: None}


def test_programs_that_only_record_steps_have_a_roster_too() -> None:
    assert ranks(view_of(stepped(ONE, 1, 1))) == {1: 1}


def test_the_stacks_own_processes_can_be_hit() -> None:
    view = view_of()
    controller, agent = RosterMember("n0", 9, 90, None), RosterMember("n1", 8, 80, None)
    view.place("controller", controller)
    view.place("agent", agent)
    view.place("launcher", RosterMember("n0", 7, 70, None))
    assert (view.roster().controller, view.roster().agents) == (controller, (agent,))


def test_the_worlds_step_is_that_of_its_slowest_rank() -> None:
    assert view_of(stepped(ONE, 0, 3)).world_step() == 0
    assert view_of(stepped(ONE, 0, 3), stepped(TWO, 1, 2)).world_step() == 2
    # A step that is done again does not set the world back.
    assert view_of(stepped(ONE, 0, 3), stepped(TWO, 1, 3), stepped(THREE, 1, 2)).world_step() == 3


def fault(index: int = 0, **when: object) -> Fault:
    return parse_fault(index, {"stop": {"rank": 0}, "when": when, "duration_s": 1.0})


def sighted(faults: tuple[Fault, ...], *seen: Observation) -> list[Sighting]:
    filtered = SightingFilter(faults)
    return [sighting for each in seen for sighting in filtered.of(each)]


INJECTED = FaultInjected(9.0, "f0", "stop", "rank 0", (0,), (ONE,), ("n0",))


def test_steps_count_from_the_first_that_a_trigger_waits_for() -> None:
    steps = [stepped(ONE, 0, step) for step in (1, 2, 19, 20, 21)]
    found = sighted((fault(step=20),), *steps)
    # The very first one too: delays count from it.
    assert [sighting.step for sighting in found] == [1, 20, 21]
    assert sighted((), *steps) == []


def test_nothing_is_sighted_when_no_fault_waits_any_more() -> None:
    assert sighted((fault(step=1),), INJECTED, stepped(ONE, 0, 1)) == []
    assert sighted((fault(step=1),), FaultFailed(1.0, "f0", "gone"), stepped(ONE, 0, 1)) == []
    assert len(sighted((fault(step=1), fault(1, step=1)), INJECTED, stepped(ONE, 0, 1))) == 1


def test_regrouping_is_an_event_whatever_the_first_generation_is() -> None:
    seen = (held(ONE, 0, 1), StateLoaded(1.0, ONE, 0, 1, 0), held(TWO, 0, 2), StateLoaded(1.0, TWO, 0, 2, 5))
    found = sighted((fault(event="restoring"),), *seen)
    assert [(sighting.event, sighting.rank) for sighting in found] == [("restoring", 0), ("restored", 0)]


def test_other_events() -> None:
    claim = Claim(1.0, 1.0, "crash", 2, None, None, 0, True, "")
    suspicion = Claim(1.0, 1.0, "slow", 2, None, None, 0, False, "")
    found = sighted((fault(event="joined"),), joined(ONE), claim, suspicion)
    assert [sighting.event for sighting in found] == ["joined", "claim:crash"]


def test_the_conductor_wakes_as_often_as_something_depends_on_the_time() -> None:
    waiting = SightingFilter((fault(step=20),))
    assert waiting.pause_s() == IDLE_PAUSE_S
    assert SightingFilter((fault(step=20, after_s=1),)).pause_s() == TIMED_PAUSE_S
    assert SightingFilter(()).pause_s() == IDLE_PAUSE_S
    for seen, pause_s in (
        (INJECTED, PROOF_PAUSE_S),
        (FaultEffective(9.1, "f0", "stopped"), TIMED_PAUSE_S),
        (FaultHealed(9.2, "f0", True, "runs"), IDLE_PAUSE_S),
    ):
        assert list(waiting.of(seen)) == []
        assert waiting.pause_s() == pause_s
