"""Who is hit: a selector as written in a scenario, and the live processes that it means. Pure.

| written           | means                                                          |
|-------------------|----------------------------------------------------------------|
| `rank: 2`         | the member that holds rank 2 when the fault is due             |
| `rank: any`       | one member that holds a rank, chosen by the drill's seed       |
| `spare: any`      | one member that holds no rank, chosen by the drill's seed      |
| `node: n1`        | every member on node n1 (`any`: of one node, chosen by seed)   |
| `agent: n1`       | the agent of node n1 (`any`: one agent, chosen by seed)        |
| `controller: true`| the controller                                                 |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaos.errors import SelectorError, nearest

ANY = "any"
SELECTORS = ("rank", "spare", "node", "agent", "controller")

Choice = Callable[[int], int]
"""Given n > 0, returns an index below n; the drill's seeded randomness."""


@dataclass(frozen=True, slots=True)
class RosterMember:
    """One live process: pid and start time in clock ticks since boot name it for good. `rank` is None for a spare."""

    node: str
    pid: int
    started_ticks: int
    rank: int | None


@dataclass(frozen=True, slots=True)
class Roster:
    """Who is there now."""

    members: tuple[RosterMember, ...]
    controller: RosterMember | None = None
    agents: tuple[RosterMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """One of SELECTORS and which of them: a rank, a node's name, or None for "one of them, by seed"."""

    what: str
    which: int | str | None

    def describe(self) -> str:
        """Return it in words: "rank 2", "any spare", "node n1", "the controller"."""
        if self.what == "controller":
            return "the controller"
        return f"any {self.what}" if self.which is None else f"{self.what} {self.which}"


def parse_selector(
    mapping: Mapping[str, object], field: str = "target", admissible: tuple[str, ...] = SELECTORS
) -> Selector:
    """Read one selector. `field` is the path that an error names. Raises SelectorError."""
    given = [key for key in mapping if key in SELECTORS]
    if not given:
        wrong = next((str(key) for key in mapping if nearest(str(key), admissible)), None)
        near = None if wrong is None else nearest(wrong, admissible)
        raise SelectorError(field, f"one target ({_listed(admissible)})", given="none", near=near)
    if len(given) > 1:
        raise SelectorError(field, "exactly one target", given=" and ".join(given))
    what = given[0]
    if what not in admissible:
        raise SelectorError(f"{field}.{what}", f"a target of this kind of fault ({_listed(admissible)})", given=what)
    return Selector(what, _which(what, mapping[what], f"{field}.{what}"))


def _which(what: str, value: object, field: str) -> int | str | None:
    if what == "controller":
        if value is not True:
            raise SelectorError(field, "true", given=repr(value))
        return None
    if value == ANY:
        return None
    if what == "rank":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            near = ANY if isinstance(value, str) and nearest(value, [ANY]) else None
            raise SelectorError(field, "a rank (0, 1, …) or any", given=repr(value), near=near)
        return value
    if what == "spare":
        raise SelectorError(field, "any (spares are alike)", given=repr(value), near=ANY)
    if not isinstance(value, str) or not value:
        raise SelectorError(field, "the name of a node (n0, n1, …) or any", given=repr(value))
    return value


def static_ranks(selector: Selector, world: int, nodes: int, spares: int, field: str = "target") -> tuple[int, ...]:
    """Return the ranks it can mean in a run of this shape. Raises SelectorError if it can match nothing at all.

    Nodes are named n0 … n(`nodes`-1). Which ranks a node holds is the stack's decision, so a node yields none here.
    """
    names = [f"n{index}" for index in range(nodes)]
    which = selector.which
    if selector.what == "rank":
        if isinstance(which, int) and which >= world:
            raise SelectorError(f"{field}.rank", f"a rank below {world}, the world of this workload", given=str(which))
        return tuple(range(world)) if which is None else (int(which),)
    if selector.what == "spare" and spares < 1:
        raise SelectorError(f"{field}.spare", "a workload with `spares` of at least 1", given="spares: 0")
    if selector.what in {"node", "agent"} and isinstance(which, str) and which not in names:
        near = nearest(which, names)
        raise SelectorError(
            f"{field}.{selector.what}", f"a node of this run ({_listed(names)})", given=which, near=near
        )
    return ()


def resolve(selector: Selector, roster: Roster, choice: Choice) -> tuple[RosterMember, ...]:
    """Return the live processes that the selector means now, all on one node. Raises SelectorError if there is none."""
    which = selector.which
    found: tuple[RosterMember, ...]
    if selector.what == "controller":
        found = () if roster.controller is None else (roster.controller,)
    elif selector.what == "rank":
        holders = tuple(member for member in roster.members if member.rank is not None)
        found = _one(holders, choice) if which is None else tuple(held for held in holders if held.rank == which)
    elif selector.what == "spare":
        found = _one(tuple(member for member in roster.members if member.rank is None), choice)
    elif selector.what == "agent":
        found = _one(roster.agents, choice) if which is None else tuple(a for a in roster.agents if a.node == which)
    else:
        found = _of_node(which, roster, choice)
    if not found:
        raise SelectorError("target", f"{selector.describe()} to be there when the fault is due", given=_seen(roster))
    return found


def _of_node(which: int | str | None, roster: Roster, choice: Choice) -> tuple[RosterMember, ...]:
    names = sorted(dict.fromkeys(member.node for member in roster.members))
    if which is None and names:
        which = names[choice(len(names))]
    return tuple(member for member in roster.members if member.node == which)


def _one(candidates: tuple[RosterMember, ...], choice: Choice) -> tuple[RosterMember, ...]:
    # In order of rank, node and pid, so that a seed means the same in every run in which the same processes live.
    ordered = sorted(candidates, key=lambda member: (member.rank or 0, member.node, member.pid))
    return (ordered[choice(len(ordered))],) if ordered else ()


def _seen(roster: Roster) -> str:
    ranks = sorted(member.rank for member in roster.members if member.rank is not None)
    spares = sum(member.rank is None for member in roster.members)
    return f"ranks {ranks}, {spares} spare(s), {len(roster.agents)} agent(s)"


def _listed(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(words)
