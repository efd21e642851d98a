from __future__ import annotations

from random import Random

import pytest

from chaos.errors import SelectorError
from chaos.target import Roster, RosterMember, Selector, parse_selector, resolve, static_ranks

ALL = "rank, spare, node, agent, controller"


def member(node: str, pid: int, rank: int | None) -> RosterMember:
    return RosterMember(node, pid, pid * 10, rank)


R0, R1, R2 = member("n0", 10, 0), member("n0", 11, 1), member("n1", 12, 2)
SPARE_A, SPARE_B = member("n1", 13, None), member("n2", 14, None)
AGENT0, AGENT1, CONTROLLER = member("n0", 5, None), member("n1", 6, None), member("n0", 4, None)
ROSTER = Roster(members=(R2, SPARE_B, R0, SPARE_A, R1), controller=CONTROLLER, agents=(AGENT1, AGENT0))


def first(_count: int) -> int:
    return 0


def last(count: int) -> int:
    return count - 1


@pytest.mark.parametrize(
    ("written", "words", "lowest", "highest"),
    [
        ({"rank": 2}, "rank 2", (R2,), (R2,)),
        ({"rank": "any"}, "any rank", (R0,), (R2,)),
        ({"spare": "any"}, "any spare", (SPARE_A,), (SPARE_B,)),
        ({"node": "n0"}, "node n0", (R0, R1), (R0, R1)),
        ({"node": "any"}, "any node", (R0, R1), (SPARE_B,)),
        ({"agent": "n1"}, "agent n1", (AGENT1,), (AGENT1,)),
        ({"agent": "any"}, "any agent", (AGENT0,), (AGENT1,)),
        ({"controller": True}, "the controller", (CONTROLLER,), (CONTROLLER,)),
    ],
)
def test_a_selector_names_live_processes(
    written: dict[str, object], words: str, lowest: tuple[RosterMember, ...], highest: tuple[RosterMember, ...]
) -> None:
    selector = parse_selector(written)
    assert selector.describe() == words
    assert resolve(selector, ROSTER, first) == lowest
    assert resolve(selector, ROSTER, last) == highest


def test_the_seed_decides_not_the_order_of_the_roster() -> None:
    shuffled = Roster(members=tuple(reversed(ROSTER.members)))
    selector = Selector("rank", None)
    for seed in range(8):
        assert resolve(selector, ROSTER, Random(seed).randrange) == resolve(selector, shuffled, Random(seed).randrange)


@pytest.mark.parametrize(
    "selector",
    [
        Selector("rank", 3),
        Selector("spare", None),
        Selector("node", "n9"),
        Selector("agent", None),
        Selector("controller", None),
    ],
)
def test_a_selector_that_matches_nobody_says_who_is_there(selector: Selector) -> None:
    with pytest.raises(SelectorError, match=r"to be there when the fault is due, got ranks \[0\], 0 spare"):
        resolve(selector, Roster(members=(R0,)), first)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, f"faults[0].kill: expected one target ({ALL}), got none"),
        (
            {"rnak": 2},
            f"faults[0].kill: expected one target ({ALL}), got none; did you mean 'rank'?",
        ),
        ({"rank": 2, "node": "n1"}, "faults[0].kill: expected exactly one target, got rank and node"),
        ({"rank": -1}, "faults[0].kill.rank: expected a rank (0, 1, …) or any, got -1"),
        ({"rank": True}, "faults[0].kill.rank: expected a rank (0, 1, …) or any, got True"),
        ({"rank": "anny"}, "faults[0].kill.rank: expected a rank (0, 1, …) or any, got 'anny'; did you mean 'any'?"),
        ({"spare": 1}, "faults[0].kill.spare: expected any (spares are alike), got 1; did you mean 'any'?"),
        ({"node": 1}, "faults[0].kill.node: expected the name of a node (n0, n1, …) or any, got 1"),
        ({"controller": False}, "faults[0].kill.controller: expected true, got False"),
    ],
)
def test_a_malformed_selector_names_field_and_expectation(written: dict[str, object], message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_selector(written, "faults[0].kill")
    assert str(caught.value) == message


def test_a_kind_may_admit_fewer_selectors() -> None:
    with pytest.raises(SelectorError, match=r"x.node: expected a target of this kind of fault \(rank\), got node"):
        parse_selector({"node": "n1"}, "x", ("rank",))


@pytest.mark.parametrize(
    ("selector", "ranks"),
    [
        (Selector("rank", 3), (3,)),
        (Selector("rank", None), (0, 1, 2, 3)),
        (Selector("node", "n2"), ()),
        (Selector("spare", None), ()),
        (Selector("controller", None), ()),
    ],
)
def test_what_a_selector_can_mean_is_known_before_the_run(selector: Selector, ranks: tuple[int, ...]) -> None:
    assert static_ranks(selector, world=4, nodes=3, spares=1) == ranks


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (Selector("rank", 4), "target.rank: expected a rank below 4, the world of this workload, got 4"),
        (Selector("node", "n3"), "target.node: expected a node of this run (n0, n1, n2), got n3; did you mean 'n2'?"),
        (Selector("agent", "m1"), "target.agent: expected a node of this run (n0, n1, n2), got m1; did you mean 'n1'?"),
        (Selector("spare", None), "target.spare: expected a workload with `spares` of at least 1, got spares: 0"),
    ],
)
def test_a_selector_that_can_match_nothing_is_refused(selector: Selector, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        static_ranks(selector, world=4, nodes=3, spares=0)
    assert str(caught.value) == message
