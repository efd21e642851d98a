from __future__ import annotations

import pytest

from chaos.errors import InputError
from chaos.fault import KINDS, Fault, check_chains, parse_fault
from chaos.target import Selector
from chaos.trigger import Trigger
from tests.fakes.chaos_fakes import fault

SIGNALS = "KILL, TERM, INT, HUP, QUIT, ABRT, SEGV"
TARGETS = "rank, spare, node, agent, controller"


def test_a_fault_as_written() -> None:
    written = {
        "stop": {"rank": 2},
        "when": {"step": 20, "after_s": 1},
        "duration_s": 2,
        "lease_s": 10,
        "transient": True,
    }
    assert parse_fault(3, written) == Fault(
        id="f3",
        kind="stop",
        target=Selector("rank", 2),
        trigger=Trigger(step=20, after_s=1.0),
        duration_s=2.0,
        lease_s=10.0,
        params=(("children", False),),
        transient=True,
    )


def test_what_is_not_written_has_defaults() -> None:
    killed = fault(kill={"rank": 2})
    assert killed.params == (("signal", "KILL"), ("children", False))
    assert (killed.duration_s, killed.transient) == (None, False)
    assert killed.param("signal") == "KILL"


@pytest.mark.parametrize(("written", "lease_s"), [({}, 180.0), ({"duration_s": 3}, 8.0), ({"lease_s": 0.5}, 0.5)])
def test_every_fault_has_a_lease(written: dict[str, object], lease_s: float) -> None:
    assert parse_fault(0, {"stop": {"rank": 0}, "when": {"step": 20}, **written}).lease_s == lease_s


def test_a_fault_in_words() -> None:
    said = fault(stop={"node": "n1", "children": True}, when={"event": "restoring", "after_s": 2}, duration_s=3)
    assert said.describe() == "stop node n1 (children=True) for 3 s at 2 s after event restoring"


@pytest.mark.parametrize(
    ("written", "field", "expected", "near"),
    [
        ({"kil": {"rank": 2}}, "kil", "one of kill, stop, noop, when, duration_s, lease_s, transient", "kill"),
        ({}, "", "exactly one kind of fault (kill, stop, noop)", None),
        ({"kill": {"rank": 1}, "stop": {"rank": 1}}, "", "exactly one kind of fault (kill, stop, noop)", None),
        ({"kill": 2}, "kill", "a target, such as {rank: 2}", None),
        ({"kill": {"rank": 2}, "when": None}, "when", "conditions, such as {step: 20}", None),
        ({"kill": {"rank": 2}, "when": {}}, "when", "at least one of step, phase, after_s, event", None),
        ({"kill": {"rank": 2}, "when": {"stp": 2}}, "when.stp", "one of step, phase, after_s, event", "step"),
        ({"kill": {"rank": 2}, "when": {"step": 0}}, "when.step", "the number of a step (1, 2, …)", None),
        ({"kill": {"rank": 2}, "when": {"after_s": -1}}, "when.after_s", "seconds (0 or more)", None),
        ({"kill": {"rank": 2}, "when": {"after_s": float("nan")}}, "when.after_s", "seconds (0 or more)", None),
        ({"kill": {"rank": 2}, "when": {"event": 3}}, "when.event", "the name of an event", None),
        ({"kill": {"rank": 2, "signal": "kil"}}, "kill.signal", f"one of {SIGNALS}", "KILL"),
        ({"kill": {"rank": 2, "children": 1}}, "kill.children", "true or false", None),
        ({"kill": {"rank": 2, "sgnal": "KILL"}}, "kill.sgnal", f"one of {TARGETS}, signal, children", "signal"),
        ({"kill": {"rank": 2}, "duration_s": 1}, "duration_s", "no duration, since kill cannot be undone", None),
        ({"stop": {"rank": 2}, "duration_s": 0}, "duration_s", "seconds, more than 0", None),
        ({"stop": {"rank": 2}, "duration_s": "2 s"}, "duration_s", "seconds, more than 0", None),
        ({"stop": {"rank": 2}, "lease_s": 0.1}, "lease_s", "at least 0.5 s", None),
        ({"stop": {"rank": 2}, "lease_s": 2, "duration_s": 2}, "lease_s", "more than duration_s (2 s)", None),
        ({"stop": {"rank": 2}, "transient": "yes"}, "transient", "true or false", None),
        ({"stop": {"rank": "x"}}, "stop.rank", "a rank (0, 1, …) or any", None),
    ],
)
def test_a_malformed_fault_names_field_expectation_and_nearest_word(
    written: dict[str, object], field: str, expected: str, near: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        parse_fault(0, {"when": {"step": 20}, **written})
    path = f"faults[0].{field}" if field else "faults[0]"
    assert (caught.value.field, caught.value.expected, caught.value.near) == (path, expected, near)


def test_an_error_in_words() -> None:
    with pytest.raises(InputError) as caught:
        fault(kill={"rank": 2, "signal": "kil"})
    assert str(caught.value) == f"faults[0].kill.signal: expected one of {SIGNALS}, got 'kil'; did you mean 'KILL'?"


def chain(*events: str) -> tuple[Fault, ...]:
    return tuple(fault(index, noop={"rank": 0}, when={"event": name}) for index, name in enumerate(events))


def test_a_fault_may_wait_for_another() -> None:
    check_chains(chain("restoring", "fault:f0", "fault:f1"))


@pytest.mark.parametrize(
    ("events", "field", "expected", "near"),
    [
        (("fault:f0",), "faults[0]", "no other fault: there is none", None),
        (("x", "fault:f2"), "faults[1]", "another fault of this scenario (fault:f0)", "fault:f0"),
        (("fault:f1", "fault:f0"), "faults[0]", "faults that do not wait for each other in a circle", None),
    ],
)
def test_a_fault_that_waits_for_nothing_or_itself_is_refused(
    events: tuple[str, ...], field: str, expected: str, near: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        check_chains(chain(*events))
    assert (caught.value.field, caught.value.expected, caught.value.near) == (f"{field}.when.event", expected, near)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_kinds_explains_itself(kind: str) -> None:
    spec = KINDS[kind]
    assert spec.name == kind
    assert spec.doc.endswith(".")
    assert spec.targets
    assert all(param.doc for param in spec.params)
