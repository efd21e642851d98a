"""Whole timelines as literals: what is sighted when, and what is due then."""

from __future__ import annotations

import pytest

from chaos.fault import Fault
from chaos.schedule import Heal, Schedule
from chaos.trigger import Sighting
from tests.fakes.chaos_fakes import event, fault, phase, step

Seen = tuple[float, Sighting | None]
Done = tuple[float, str, str]


def play(faults: tuple[Fault, ...], seen: list[Seen], broken: tuple[str, ...] = ()) -> list[Done]:
    """Feed what is seen; apply what is due at once, but for `broken` faults; return (when, what, fault)."""
    schedule = Schedule(faults)
    done: list[Done] = []
    for now_s, sighting in seen:
        actions = schedule.feed(sighting, now_s)
        while actions:
            for action in actions:
                if isinstance(action, Heal):
                    done.append((now_s, action.why, action.fault.id))
                elif action.fault.id in broken:
                    schedule.ended(action.fault)
                else:
                    done.append((now_s, "inject", action.fault.id))
                    schedule.injected(action.fault, now_s)
            actions = schedule.feed(None, now_s)
    done.extend((seen[-1][0], "never", waiting.id) for waiting in schedule.waiting())
    return done


def steps(rank: int, *at: tuple[float, int]) -> list[Seen]:
    return [(at_s, step(rank, number, at_s)) for at_s, number in at]


def ticks(*times_s: float) -> list[Seen]:
    return [(at_s, None) for at_s in times_s]


@pytest.mark.parametrize(
    ("when", "seen", "due"),
    [
        # The target's own steps count, and a missed record does not hold the fault up.
        ({"step": 20}, steps(2, (1.0, 19), (1.1, 20), (1.2, 21)), [(1.1, "inject", "f0")]),
        ({"step": 20}, [*steps(0, (1.0, 20)), *steps(2, (1.1, 22))], [(1.1, "inject", "f0")]),
        ({"step": 20}, steps(0, (1.0, 20), (1.1, 21)), [(1.1, "never", "f0")]),
        # A phase of step 20 means that 19 are complete.
        ({"step": 20}, [(1.0, phase(2, "data", 1.0, 20)), (1.1, phase(2, "data", 1.1, 21))], [(1.1, "inject", "f0")]),
        # Alone, after_s counts from the first completed step of anybody.
        ({"after_s": 2}, [*ticks(0.5), *steps(0, (1.0, 1), (2.0, 2)), *ticks(2.9, 3.0, 3.1)], [(3.0, "inject", "f0")]),
        ({"after_s": 0}, [*ticks(0.5), *steps(0, (1.0, 1))], [(1.0, "inject", "f0")]),
        ({"after_s": 2}, ticks(1.0, 9.0), [(9.0, "never", "f0")]),
        # Combined, from when the others came true.
        ({"step": 20, "after_s": 0.5}, [*steps(2, (1.0, 20), (1.4, 21)), *ticks(1.49, 1.5)], [(1.5, "inject", "f0")]),
        # An event, of whomever; only once the step is reached.
        (
            {"event": "restoring"},
            [(1.0, event("joined", 1.0)), (2.0, event("restoring", 2.0))],
            [(2.0, "inject", "f0")],
        ),
        (
            {"event": "restoring", "step": 20},
            [(1.0, event("restoring", 1.0)), *steps(2, (2.0, 20)), *ticks(2.1), (3.0, event("restoring", 3.0))],
            [(3.0, "inject", "f0")],
        ),
        # A phase, of the target, while it lasts.
        ({"phase": "data"}, [(1.0, phase(1, "data", 1.0)), (2.0, phase(2, "data", 2.0))], [(2.0, "inject", "f0")]),
        (
            {"phase": "checkpoint", "step": 20},
            [
                (1.0, phase(2, "checkpoint", 1.0, 19)),
                *steps(2, (1.1, 20)),
                (2.0, phase(2, "data", 2.0, 21)),
                (3.0, phase(2, "checkpoint", 3.0, 21)),
            ],
            [(3.0, "inject", "f0")],
        ),
        (
            {"phase": "data", "event": "e"},
            [(1.0, phase(2, "data", 1.0)), (2.0, event("e", 2.0))],
            [(2.0, "inject", "f0")],
        ),
        (
            {"phase": "data", "event": "e"},
            [(1.0, phase(2, "data", 1.0)), *steps(2, (1.5, 7)), (2.0, event("e", 2.0)), (3.0, phase(2, "data", 3.0))],
            [(3.0, "inject", "f0")],
        ),
    ],
)
def test_when_a_fault_is_due(when: dict[str, object], seen: list[Seen], due: list[Done]) -> None:
    assert play((fault(kill={"rank": 2}, when=when),), seen) == due


def test_any_rank_counts_where_the_target_is_not_one_rank() -> None:
    for target in ({"rank": "any"}, {"node": "n1"}, {"spare": "any"}, {"controller": True}):
        assert play((fault(kill=target),), steps(3, (1.0, 20))) == [(1.0, "inject", "f0")]


def test_a_duration_runs_from_the_injection() -> None:
    faults = (fault(stop={"rank": 2}, duration_s=2, lease_s=9),)
    seen = [*steps(2, (1.0, 20)), *ticks(2.9, 3.0, 3.1, 20.0)]
    assert play(faults, seen) == [(1.0, "inject", "f0"), (3.0, "duration", "f0")]


def test_without_a_duration_the_lease_ends_it() -> None:
    faults = (fault(stop={"rank": 2}, lease_s=4),)
    assert play(faults, [*steps(2, (1.0, 20)), *ticks(4.9, 5.0, 6.0)]) == [(1.0, "inject", "f0"), (5.0, "lease", "f0")]


def test_what_cannot_be_undone_is_held_for_good() -> None:
    assert play((fault(kill={"rank": 2}, lease_s=1),), [*steps(2, (1.0, 20)), *ticks(99.0)]) == [(1.0, "inject", "f0")]


def test_two_at_once_in_file_order() -> None:
    faults = (fault(0, kill={"rank": 1}, when={"step": 20}), fault(1, kill={"rank": "any"}, when={"step": 20}))
    assert play(faults, steps(1, (1.0, 20))) == [(1.0, "inject", "f0"), (1.0, "inject", "f1")]


def test_a_heal_comes_before_an_injection_and_the_last_injected_is_healed_first() -> None:
    faults = (
        fault(0, stop={"rank": 0}, duration_s=2),
        fault(1, stop={"rank": 1}, when={"event": "fault:f0"}, duration_s=2),
        fault(2, stop={"rank": 0}, when={"event": "fault:f0", "after_s": 2}, duration_s=1),
    )
    assert play(faults, [*steps(0, (1.0, 20)), *ticks(2.0, 3.0, 4.0)]) == [
        (1.0, "inject", "f0"),
        (1.0, "inject", "f1"),
        (3.0, "duration", "f1"),
        (3.0, "duration", "f0"),
        (3.0, "inject", "f2"),
        (4.0, "duration", "f2"),
    ]


def test_two_seconds_after_the_first_fault() -> None:
    faults = (fault(0, kill={"rank": 2}), fault(1, kill={"rank": 2}, when={"event": "fault:f0", "after_s": 2}))
    assert play(faults, [*steps(2, (1.0, 20), (2.0, 21)), *ticks(2.9, 3.0)]) == [
        (1.0, "inject", "f0"),
        (3.0, "inject", "f1"),
    ]


def test_that_a_fault_was_injected_is_a_lasting_fact() -> None:
    faults = (fault(0, kill={"rank": 2}), fault(1, kill={"rank": 3}, when={"event": "fault:f0", "step": 30}))
    seen = [*steps(2, (1.0, 20)), *steps(3, (1.1, 20), (2.0, 30))]
    assert play(faults, seen) == [(1.0, "inject", "f0"), (2.0, "inject", "f1")]


def test_what_waits_for_a_fault_that_failed_is_never_due() -> None:
    faults = (fault(0, kill={"rank": 2}), fault(1, kill={"rank": 3}, when={"event": "fault:f0"}))
    assert play(faults, [*steps(2, (1.0, 20)), *ticks(9.0)], broken=("f0",)) == [(9.0, "never", "f1")]


def test_several_faults_on_one_target() -> None:
    faults = (
        fault(0, stop={"rank": 2}, duration_s=5),
        fault(1, kill={"rank": 2}, when={"event": "fault:f0", "after_s": 1}),
    )
    assert play(faults, [*steps(2, (1.0, 20)), *ticks(2.0, 6.0)]) == [
        (1.0, "inject", "f0"),
        (2.0, "inject", "f1"),
        (6.0, "duration", "f0"),
    ]
