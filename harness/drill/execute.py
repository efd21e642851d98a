"""One run from its first process to its last: start the stack, watch it, let the faults act, stop it, prove it gone.

    guard armed → folder → collector → stages of the stack → [faults] → end → heal → stop → audit → guard closed

Nothing of the run exists before the guard is armed: from then on the death of this process undoes everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from chaos.catalog import Catalog, default_catalog
from chaos.clock import Clock as ChaosClock
from chaos.clock import SystemClock
from chaos.errors import ChaosError
from chaos.fault import Fault
from chaos.guard import Guard
from chaos.host import Host
from chaos.ledger import state_dir
from chaos.local_host import LocalHost
from chaos.target import RosterMember
from harness.clock import Clock, MonotonicClock
from harness.drill import dumps
from harness.drill.ends import End, EndRules
from harness.drill.faults import FaultThread, check_capable
from harness.drill.interrupt import Interrupt
from harness.drill.progress import Progress
from harness.drill.telling import Telling
from harness.drill.view import RunView
from harness.drill.workspace import Workspace, new_run_id
from harness.errors import HarnessError, LaunchError
from harness.launch.local import LocalLauncher
from harness.observe.clocks import ClockTable
from harness.observe.collect import Collector
from harness.observe.observation import (
    Observation,
    RunEnded,
    RunStarted,
    StackStopped,
    TrainingFinished,
    WorkloadRaised,
)
from harness.observe.timeline import Timeline
from harness.probe.api import NODE_VARIABLE
from harness.stacks.base import Stack, StackRequest, Stage, node_names

TICK_S = 0.15
READY_TICK_S = 0.005
# How long a stack whose training is complete may take to end by itself, and how long any may take to obey TERM.
EXIT_GRACE_S = 5.0
STOP_GRACE_S = 3.0
# How long asked processes get to write their Python stacks into their logs.
DUMP_S = 0.3


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run. `random` picks among several possible targets."""

    what: str
    stack: Stack
    request_in: Callable[[Workspace], StackRequest]
    faults: tuple[Fault, ...]
    seed: int
    random: Random
    horizon_s: float
    first_step_within_s: float


@dataclass(frozen=True, slots=True)
class Record:
    """What was seen of a run. `dirty` names what could not be removed; `interrupted` is a signal's name."""

    timeline: Timeline
    end: End
    logs: Mapping[str, bytes]
    dump: str
    dirty: tuple[str, ...]
    interrupted: str | None


@dataclass(frozen=True, slots=True)
class Tools:
    """What a run needs of the outside world."""

    interrupt: Interrupt
    progress: Progress
    clock: Clock = field(default_factory=MonotonicClock)
    chaos_clock: ChaosClock = field(default_factory=SystemClock)
    catalog: Catalog = field(default_factory=default_catalog)


def execute(order: Order, tools: Tools) -> Record:
    """Run it. Raises UsageError before anything is started; LaunchError and HarnessError after cleaning up."""
    workspace = Workspace.name(new_run_id())
    request = order.request_in(workspace)
    hosts: dict[str, Host] = {node: LocalHost(node) for node in node_names(request.nodes)}
    check_capable(order.faults, tools.catalog, hosts)
    stages = order.stack.stages(request)
    first = next(stages)
    tools.progress.started(order.what, steps=request.steps)
    try:
        guard = Guard.open(state_dir(), workspace.run_id, undo=workspace.undo(), clock=tools.chaos_clock)
    except ChaosError as error:
        raise LaunchError(f"nothing was started: {error}") from error
    with guard:
        workspace.make()
        run = _Run(order=order, request=request, workspace=workspace, guard=guard, hosts=hosts, tools=tools)
        record = run.perform(first, stages)
    assert guard.report is not None
    return replace(record, dirty=(*record.dirty, *guard.report.failed))


class _Run:
    """The state of one `execute`."""

    def __init__(
        self,
        *,
        order: Order,
        request: StackRequest,
        workspace: Workspace,
        guard: Guard,
        hosts: Mapping[str, Host],
        tools: Tools,
    ) -> None:
        self._order = order
        self._tools = tools
        self._workspace = workspace
        self._view = RunView(request.world)
        self._telling = Telling(self._view, tools.progress)
        self._rules = EndRules(
            self._view,
            request.program,
            horizon_s=order.horizon_s,
            first_step_within_s=order.first_step_within_s,
        )
        self._faults = FaultThread(
            faults=order.faults,
            ledger=guard.ledger,
            catalog=tools.catalog,
            hosts=hosts,
            roster=self._view.roster,
            clock=tools.chaos_clock,
            add=self._add,
            random=order.random,
        )
        self._collector = Collector(
            workspace.probe_dir,
            workspace.bell,
            tools.clock,
            ClockTable(),
            (self._view.see, self._faults.see, self._telling.see, self._wake),
        )
        self._launcher = LocalLauncher(workspace.run_id, workspace.logs_dir, tools.clock)
        self._environment = workspace.environment(order.seed)
        self._started_s = 0.0

    def perform(self, first: Stage, rest: Iterator[Stage]) -> Record:
        """Start, watch, stop."""
        dump = ""
        try:
            self._collector.start()
            self._faults.start()
            end = self._watch(first, rest)
            self._collector.add(RunEnded(self._tools.clock.now_s(), end.reason, end.detail))
            self._telling.show(self._started_s)
            # Healed before the stack is stopped: a stopped process cannot obey.
            self._faults.stop()
            dump = self._let_end(end)
        finally:
            self._faults.stop()
            self._tools.progress.phase("stopping")
            self._launcher.stop_all(STOP_GRACE_S)
            timeline = self._collector.stop()
            dirty = self._launcher.leftovers()
            self._launcher.close()
        if self._faults.failure is not None:
            raise HarnessError(f"the faults could not be performed: {self._faults.failure}") from self._faults.failure
        if self._collector.failed:
            raise HarnessError(f"the tester lost sight of the run: {timeline.first(RunEnded)}")
        self._telling.show(self._started_s)
        return Record(timeline, end, self._launcher.logs(), dump, dirty, self._tools.interrupt.name)

    def _watch(self, first: Stage, rest: Iterator[Stage]) -> End:
        """Start stage after stage and wait for the end."""
        clock, interrupt = self._tools.clock, self._tools.interrupt
        self._started_s = clock.now_s()
        self._collector.add(RunStarted(self._started_s))
        stage: Stage | None = first
        self._start(first)
        while True:
            if stage is not None and (stage.ready is None or stage.ready.exists()):
                stage = next(rest, None)
                if stage is not None:
                    self._start(stage)
                    continue
            self._telling.show(self._started_s)
            if interrupt.name is not None:
                return End("interrupted", interrupt.name)
            if self._faults.failure is not None or self._collector.failed:
                return End("interrupted", "the tester itself failed")
            end = self._rules.check(clock.now_s(), self._started_s, self._launcher.running(), all_started=stage is None)
            if end is not None:
                return end
            interrupt.wait(TICK_S if stage is None else READY_TICK_S)

    def _start(self, stage: Stage) -> None:
        names = ", ".join(spec.name for spec in stage.specs)
        self._tools.progress.phase(f"starting {names}")
        for spec in stage.specs:
            environment = {**self._environment, NODE_VARIABLE: spec.node, **spec.env}
            process = self._launcher.start(replace(spec, env=environment))
            self._view.place(spec.role, RosterMember(spec.node, process.pid, process.started_ticks, None))

    def _let_end(self, end: End) -> str:
        """Let a finished stack end by itself; of any other return what its processes are doing."""
        clock = self._tools.clock
        if end.reason == "finished":
            until_s = clock.now_s() + EXIT_GRACE_S
            while clock.now_s() < until_s and any(process.status() is None for process in self._launcher.running()):
                clock.sleep(READY_TICK_S)
            return ""
        if end.reason == "interrupted":
            return ""
        pids = self._launcher.tagged()
        text = dumps.dump(pids)
        if dumps.ask_for_stacks(pids):
            clock.sleep(DUMP_S)
        return text

    def _add(self, seen: Observation) -> None:
        self._collector.add(seen)

    def _wake(self, seen: Observation) -> None:
        if isinstance(seen, TrainingFinished | StackStopped | WorkloadRaised):
            self._tools.interrupt.wake()
