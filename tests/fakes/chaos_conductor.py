"""A tester reduced to its chaos: `python -m tests.fakes.chaos_conductor STATE WORK RUN LEASE_S PID:TICKS …`.

Opens a guard whose undo removes WORK and kills what is tagged RUN, stops each process from PID:TICKS at step 20 with
leases of LEASE_S, prints a line an event, and goes on until it is killed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from chaos import undo
from chaos.catalog import default_catalog
from chaos.clock import SystemClock
from chaos.conductor import Conductor, ConductorEvent
from chaos.fault import parse_fault
from chaos.guard import Guard
from chaos.local_host import LocalHost
from chaos.target import Roster, RosterMember
from chaos.trigger import Sighting
from tests.fakes.chaos_fakes import TAG_VARIABLE


def sightings(clock: SystemClock, world: int) -> Iterator[Sighting | None]:
    """Every rank completes step 20; then only time passes."""
    for rank in range(world):
        yield Sighting(rank, 20, None, None, clock.monotonic_s())
    while True:
        clock.sleep_s(0.01)
        yield None


def say(event: ConductorEvent) -> None:
    sys.stdout.write(f"{type(event).__name__} {event.fault.id}\n")
    sys.stdout.flush()


def main(state: str, work: str, run: str, lease_s: float, victims: list[str]) -> None:
    """Stop the victims and wait to be killed."""
    clock = SystemClock()
    pids = [tuple(map(int, who.split(":"))) for who in victims]
    roster = Roster(tuple(RosterMember("n0", pid, ticks, rank) for rank, (pid, ticks) in enumerate(pids)))
    faults = [
        parse_fault(rank, {"stop": {"rank": rank}, "when": {"step": 20}, "lease_s": lease_s})
        for rank in range(len(victims))
    ]
    steps = (undo.kill_tagged(TAG_VARIABLE, run), undo.remove_tree(work, run))
    with Guard.open(state, run, undo=steps, clock=clock, lease_s=lease_s) as guard:
        conductor = Conductor(
            faults=faults,
            ledger=guard.ledger,
            catalog=default_catalog(),
            host_of=LocalHost,
            roster=lambda: roster,
            clock=clock,
            emit=say,
            choice=lambda count: count - 1,
        )
        conductor.run(sightings(clock, len(victims)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5:])
