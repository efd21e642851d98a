"""The bridge to chaos: a conductor in its own thread, fed with sightings, its events turned into observations."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from chaos.catalog import Catalog
from chaos.clock import Clock
from chaos.conductor import Conductor, ConductorEvent, Effective, Healed, Injected, NoEffect
from chaos.fault import Fault
from chaos.host import Host
from chaos.ledger import Ledger
from chaos.target import Roster
from chaos.trigger import Sighting
from harness.drill.sightings import SightingFilter
from harness.errors import CapabilityError
from harness.observe.observation import (
    FaultEffective,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    MemberId,
    Observation,
    ObserverLost,
)


def check_capable(faults: Sequence[Fault], catalog: Catalog, hosts: Mapping[str, Host]) -> None:
    """Raise CapabilityError, naming the fault and what is missing, if one cannot be applied on some node."""
    for fault in faults:
        for node, host in hosts.items():
            capability = catalog[fault.kind].capable(fault, host)
            if not capability.ok:
                raise CapabilityError(
                    f"fault {fault.id} ({fault.describe()}) is not possible on node {node}: {capability.reason}"
                )


class FaultThread:
    """Performs the faults of one run while it goes on; `stop` heals what is left."""

    def __init__(
        self,
        *,
        faults: Sequence[Fault],
        ledger: Ledger,
        catalog: Catalog,
        hosts: Mapping[str, Host],
        roster: Callable[[], Roster],
        clock: Clock,
        add: Callable[[Observation], None],
        random: Random,
    ) -> None:
        self._clock = clock
        self._add = add
        self._queue: queue.SimpleQueue[Sighting | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._sightings = SightingFilter(faults)
        self.failure: Exception | None = None
        self._conductor = Conductor(
            faults=faults,
            ledger=ledger,
            catalog=catalog,
            host_of=hosts.__getitem__,
            roster=roster,
            clock=clock,
            emit=self._emit,
            choice=random.randrange,
        )
        self._thread = threading.Thread(target=self._run, name="conductor", daemon=True)

    def start(self) -> None:
        """Begin to perform."""
        self._thread.start()

    def see(self, seen: Observation) -> None:
        """Tell the triggers of an observation; from any thread."""
        for sighting in self._sightings.of(seen):
            self._queue.put(sighting)

    def stop(self) -> None:
        """Heal everything and end. Returns when that is done."""
        self._stopping.set()
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._conductor.run(self._incoming())
        except Exception as error:  # noqa: BLE001
            # Whatever ended the conductor, the drill must say ERROR; the ledger and its reapers heal what is left.
            self.failure = error
            self._add(ObserverLost(self._clock.monotonic_s(), f"the conductor stopped: {error!r}"))

    def _incoming(self) -> Iterator[Sighting | None]:
        while not self._stopping.is_set():
            try:
                yield self._queue.get(timeout=self._sightings.pause_s())
            except queue.Empty:
                yield None

    def _emit(self, event: ConductorEvent) -> None:
        self._add(_observed(event))


def _observed(event: ConductorEvent) -> Observation:
    name = event.fault.id
    match event:
        case Injected():
            return FaultInjected(
                at_s=event.at_s,
                fault=name,
                kind=event.fault.kind,
                target=event.fault.target.describe(),
                ranks=tuple(hit.rank for hit in event.hit if hit.rank is not None),
                members=tuple(MemberId(hit.node, hit.pid, hit.started_ticks) for hit in event.hit),
                nodes=tuple(dict.fromkeys(hit.node for hit in event.hit)),
            )
        case Effective():
            return FaultEffective(event.at_s, name, event.proof)
        case NoEffect():
            return FaultFailed(event.at_s, name, event.reason)
        case Healed():
            return FaultHealed(event.at_s, name, event.verified, event.detail)
