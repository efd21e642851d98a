"""What training code calls.

    session = Session.join()
    optimizer = session.shard(torch.optim.AdamW, model, lr=3e-4)
    state = State(model=model, optimizer=optimizer, schedule=schedule)
    session.train(step, state, steps=200, after_step=probe.step)

`train` runs `step(n)` for n = 1…steps. When a rank is lost it regroups, loads the newest snapshot that every rank
holds, and goes on; `step` only ever sees that it is called with the next number. Rank and world are known inside a
step, not before: a spare has none.
"""

from __future__ import annotations

import copy
import faulthandler
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.errors import UsageError
from harness.probe import api as probe
from harness.resilience import forkserver, messages
from harness.resilience.group import Collectives, Group, Regroup, Rehearsal
from harness.resilience.member import Assignment, MemberLink
from harness.resilience.memory import Region
from harness.resilience.shard import ShardedOptimizer
from harness.resilience.state import (
    Snapshots,
    State,
    random_streams,
    seed_random_streams,
    set_random_streams,
    state_bytes,
)
from harness.resilience.stethoscope import Stethoscope

__all__ = ["Session", "State", "StepResult"]

SEED_VARIABLE = "RANKDRILL_SEED"
AS_BUILT_VERSION = 0


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step returns: its loss, and the ids of its samples, unique within the whole run."""

    loss: float
    samples: Sequence[int] = ()


Step = Callable[[int], StepResult]


class Session:
    """One member's view of the run."""

    def __init__(self, world: int, seed: int) -> None:
        self.world = world
        self.seed = seed
        self._stethoscope = Stethoscope()
        self._group: Collectives | None = None
        self._rank: int | None = None
        self._generation = 0
        self._shards: list[ShardedOptimizer] = []

    @classmethod
    def join(cls) -> Session:
        """Join the run that this process was started for; one torch thread, so that the process can be forked."""
        if messages.AGENT_VARIABLE not in os.environ:
            raise UsageError(
                "this program was not started by a rankdrill agent: run it through a scenario "
                "(rankdrill run FILE), whose workload.program names it"
            )
        torch.set_num_threads(1)
        # Whoever investigates a run that went wrong may ask every rank for its Python stacks.
        faulthandler.register(signal.SIGUSR1)
        session = cls(int(os.environ[messages.WORLD_VARIABLE]), int(os.environ.get(SEED_VARIABLE, "0")))
        seed_random_streams(session.seed, 0)
        return session

    @property
    def rank(self) -> int:
        """The rank this member holds. Only inside a step: a spare holds none."""
        if self._rank is None:
            raise UsageError(
                "session.rank is known only inside a step: a spare builds everything before it holds a rank"
            )
        return self._rank

    @property
    def generation(self) -> int:
        """The generation this member is in: 1 until the first regroup, 0 before it holds a rank."""
        return self._generation

    @property
    def collectives(self) -> Collectives:
        """The current generation's group, for collectives of one's own inside a step."""
        if self._group is None:
            raise UsageError("session.collectives can be used only inside a step")
        return self._group

    def shard(
        self, make: Callable[..., torch.optim.Optimizer], model: torch.nn.Module, **options: Any
    ) -> ShardedOptimizer:
        """Wrap an optimizer class so that each rank keeps and updates only its own shard."""
        shard = ShardedOptimizer(make, model, world=self.world, **options)
        self._shards.append(shard)
        return shard

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the step ("data", "checkpoint"); detection's limits depend on the phase."""
        with self._stethoscope.phase(name):
            yield

    def train(
        self,
        step: Step,
        state: State,
        *,
        steps: int,
        evaluate: Callable[[int], None] | None = None,
        every: int = 0,
        after_step: Callable[..., None] | None = None,
    ) -> None:
        """Train to the end, through losses of ranks. Returns in members that hold a rank.

        Spares leave the process here.
        """
        if (evaluate is None) != (every == 0):
            raise UsageError("session.train: evaluate=… and every=… belong together")
        run = _Training(
            session=self,
            step=step,
            state=state,
            steps=steps,
            evaluate=evaluate,
            every=every,
            after_step=after_step,
        )
        run.warm_up()
        run.go()


@dataclass(slots=True, kw_only=True)
class _Training:
    """One call of `train`: the member's life from warm-up to the last step."""

    session: Session
    step: Step
    state: State
    steps: int
    evaluate: Callable[[int], None] | None
    every: int
    after_step: Callable[..., None] | None
    _link: MemberLink = field(init=False)
    _snapshots: Snapshots = field(init=False)
    _group: Group | None = None

    # ------------------------------------------------------------------ before there is a rank

    def warm_up(self) -> None:
        """Rehearse one step, then become the node's fork server or a member."""
        capacity = self._rehearse()
        connection = messages.connect()
        unsound = forkserver.unsound_because()
        connection.send(
            messages.encode(
                {"is": "hello", "pid": os.getpid(), "forked": False, "unsound": unsound, "state_bytes": capacity}
            )
        )
        received = messages.receive(connection)
        if received is not None and received[0]["is"] == "serve":
            connection = forkserver.serve(connection)
            received = messages.receive(connection)
        if received is None or received[0]["is"] != "member":
            forkserver.leave()
        region_fd, page_fd = received[1]
        self._snapshots = Snapshots(Region.attach(region_fd))
        self.session._stethoscope = Stethoscope(page_fd)
        self._link = MemberLink(connection)
        self._link.start()
        probe.joined("spare")
        self._link.send("ready")

    def _rehearse(self) -> int:
        """Make one step in a world of one, to warm up; return the bytes a snapshot needs; leave the state as built."""
        session = self.session
        before = self._copy_of_state()
        session._rank, session._group = 0, Rehearsal(session.world)
        for shard in session._shards:
            shard.join(session._group)
        try:
            self.step(1)
        except Exception as error:
            probe.raised(error, rank=None, step=None)
            raise
        capacity = state_bytes(self.state)
        session._rank, session._group = None, None
        self._put_back(before)
        return capacity

    def _copy_of_state(self) -> tuple[dict[str, Any], list[torch.Tensor], dict[str, Any]]:
        flats = [shard.flat_parameters().clone() for shard in self.session._shards]
        return copy.deepcopy(self.state.collect()), flats, random_streams()

    def _put_back(self, before: tuple[dict[str, Any], list[torch.Tensor], dict[str, Any]]) -> None:
        content, flats, streams = before
        self.state.restore(content)
        for shard, flat in zip(self.session._shards, flats, strict=True):
            shard.set_flat_parameters(flat)
        set_random_streams(streams)

    # ------------------------------------------------------------------ with a rank

    def go(self) -> None:
        """Hold ranks until training is complete."""
        while True:
            assignment = self._link.wait_for_assignment()
            if assignment is None:
                forkserver.leave()
            try:
                self._take_rank(assignment)
                self._run_steps(assignment)
                self._link.wait_for_finish(assignment.generation)
                self._leave_group()
                return
            except Regroup:
                self._leave_group()
                self.session._stethoscope.enter("idle")
                self._link.send("parked", left=assignment.generation)

    def _take_rank(self, assignment: Assignment) -> None:
        session = self.session
        session._stethoscope.hold(assignment.rank, assignment.generation)
        session._stethoscope.enter("form")
        session._rank, session.world, session._generation = assignment.rank, assignment.world, assignment.generation
        self._group = Group(
            rank=assignment.rank,
            world=assignment.world,
            generation=assignment.generation,
            rendezvous=self._link.open_rendezvous(assignment),
            stethoscope=session._stethoscope,
        )
        self._link.use_group(self._group)
        probe.held(assignment.rank, assignment.world, assignment.generation)
        self._group.connect(float(os.environ.get(messages.CONNECT_VARIABLE, "30")))
        session._group = self._group
        for shard in session._shards:
            shard.join(self._group)
        session._stethoscope.enter("restore")
        self._load(assignment)
        probe.loaded(assignment.version, rank=assignment.rank, generation=assignment.generation)
        self._link.send("formed", generation=assignment.generation)

    def _load(self, assignment: Assignment) -> None:
        if assignment.as_built:
            seed_random_streams(self.session.seed, assignment.rank)
            for shard in self.session._shards:
                shard.start_shard(assignment.rank)
            self._save(AS_BUILT_VERSION, assignment)
            return
        self._link.wait_for_state(assignment.generation)
        self._snapshots.load(self.state, version=assignment.version, rank=assignment.rank)
        for shard in self.session._shards:
            shard.gather()

    def _run_steps(self, assignment: Assignment) -> None:
        session, group = self.session, self._group
        assert group is not None
        for number in range(assignment.version + 1, self.steps + 1):
            self._link.check(assignment.generation)
            session._stethoscope.begin_step(number)
            started_ns = time.monotonic_ns()
            collectives_before = group.collectives_done
            result = self._call_step(number, assignment)
            if group.collectives_done == collectives_before:
                # Ranks may be at most one step apart, or two snapshots would not suffice.
                group.barrier()
            with session._stethoscope.phase("snapshot"):
                self._save(number, assignment)
            session._stethoscope.end_step(number)
            if self.after_step is not None:
                self.after_step(
                    number,
                    rank=assignment.rank,
                    world=assignment.world,
                    generation=assignment.generation,
                    samples=result.samples,
                    loss=result.loss,
                    started_ns=started_ns,
                )
            if self.evaluate is not None and number % self.every == 0:
                with session._stethoscope.phase("evaluate"):
                    self.evaluate(number)
        session._stethoscope.enter("finished")
        probe.cost(
            rank=assignment.rank,
            steps=session._stethoscope.steps,
            stethoscope_s=session._stethoscope.spent_ns / 1e9,
            training_s=session._stethoscope.stepping_ns / 1e9,
        )
        probe.finished(self.steps, rank=assignment.rank)
        self._link.send("finished", generation=assignment.generation)

    def _call_step(self, number: int, assignment: Assignment) -> StepResult:
        try:
            return self.step(number)
        except Exception as error:
            probe.raised(error, rank=assignment.rank, step=number)
            self._link.send("raised", fingerprint=f"{type(error).__name__} at step {number}: {str(error)[:200]}")
            raise

    def _save(self, version: int, assignment: Assignment) -> None:
        self._snapshots.save(self.state, version=version, generation=assignment.generation, rank=assignment.rank)

    def _leave_group(self) -> None:
        if self._group is not None:
            self._group.close()
        self._link.drop_group()
        self._group = None
        self.session._group = None
