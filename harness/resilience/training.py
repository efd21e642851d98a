"""A member's life inside `Session.train`: warm-up, waiting as a spare, steps, regroups, the end."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from harness.probe import api as probe
from harness.resilience import forkserver, messages
from harness.resilience.group import Group, Regroup, Rehearsal
from harness.resilience.member import Assignment, MemberLink
from harness.resilience.memory import Region
from harness.resilience.state import (
    Snapshots,
    State,
    random_streams,
    seed_random_streams,
    set_random_streams,
    state_bytes,
)
from harness.resilience.stethoscope import Stethoscope

if TYPE_CHECKING:
    from harness.resilience.session import Session

AS_BUILT_VERSION = 0


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step returns: its loss, and the ids of its samples, unique within the whole run."""

    loss: float
    samples: Sequence[int] = ()


Step = Callable[[int], StepResult]


@dataclass(slots=True, kw_only=True)
class Training:
    """One call of `train`: the member's life from warm-up to the last step."""

    session: Session
    step: Step
    state: State
    steps: int
    evaluate: Callable[[int], None] | None
    every: int
    after_step: Callable[..., None] | None
    link: MemberLink = field(init=False)
    snapshots: Snapshots = field(init=False)
    group: Group | None = None

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
        self.snapshots = Snapshots(Region.attach(region_fd))
        self.session.stethoscope = Stethoscope(page_fd)
        self.link = MemberLink(connection)
        self.link.start()
        probe.joined("spare")
        self.link.send("ready")

    def _rehearse(self) -> int:
        """Make one step in a world of one, to warm up; return the bytes a snapshot needs; leave the state as built."""
        session = self.session
        before = self._copy_of_state()
        rehearsal = Rehearsal(session.world)
        session.enter(rehearsal, rank=0, generation=0)
        try:
            self.step(1)
        except Exception as error:
            probe.raised(error, rank=None, step=None)
            raise
        capacity = state_bytes(self.state)
        session.leave()
        self._put_back(before)
        return capacity

    def _copy_of_state(self) -> tuple[dict[str, Any], list[torch.Tensor], dict[str, Any]]:
        flats = [shard.flat_parameters().clone() for shard in self.session.shards]
        return copy.deepcopy(self.state.collect()), flats, random_streams()

    def _put_back(self, before: tuple[dict[str, Any], list[torch.Tensor], dict[str, Any]]) -> None:
        content, flats, streams = before
        self.state.restore(content)
        for shard, flat in zip(self.session.shards, flats, strict=True):
            shard.set_flat_parameters(flat)
        set_random_streams(streams)

    # ------------------------------------------------------------------ with a rank

    def go(self) -> None:
        """Hold ranks until training is complete."""
        while True:
            assignment = self.link.wait_for_assignment()
            if assignment is None:
                forkserver.leave()
            try:
                self._take_rank(assignment)
                self.run_steps(assignment)
                self.link.wait_for_finish(assignment.generation)
                self._leave_group()
                return
            except Regroup:
                self._leave_group()
                self.session.stethoscope.enter("idle")
                self.link.send("parked", left=assignment.generation)

    def _take_rank(self, assignment: Assignment) -> None:
        session = self.session
        session.stethoscope.hold(assignment.rank, assignment.generation)
        session.stethoscope.enter("form")
        self.group = Group(
            rank=assignment.rank,
            world=assignment.world,
            generation=assignment.generation,
            rendezvous=self.link.open_rendezvous(assignment),
            stethoscope=session.stethoscope,
        )
        self.link.use_group(self.group)
        probe.held(assignment.rank, assignment.world, assignment.generation)
        self.group.connect(float(os.environ.get(messages.CONNECT_VARIABLE, "30")))
        session.enter(self.group, rank=assignment.rank, generation=assignment.generation)
        session.stethoscope.enter("restore")
        self._load(assignment)
        probe.loaded(assignment.version, rank=assignment.rank, generation=assignment.generation)
        self.link.send("formed", generation=assignment.generation)

    def _load(self, assignment: Assignment) -> None:
        if assignment.as_built:
            seed_random_streams(self.session.seed, assignment.rank)
            for shard in self.session.shards:
                shard.start_shard(assignment.rank)
            self._save(AS_BUILT_VERSION, assignment)
            return
        self.link.wait_for_state(assignment.generation)
        self.snapshots.load(self.state, version=assignment.version, rank=assignment.rank)
        for shard in self.session.shards:
            shard.gather()

    def run_steps(self, assignment: Assignment) -> None:
        """Make the steps that are left, in one generation. Raises Regroup when it is given up."""
        session, group = self.session, self.group
        assert group is not None
        if not assignment.as_built:
            # S(n) is taken before the evaluation after step n. It runs again: it may have been cut short, and what it
            # drew from the random streams belongs to the history that goes on from here.
            self._evaluate_if_due(assignment.version)
        for number in range(assignment.version + 1, self.steps + 1):
            self.link.check(assignment.generation)
            session.stethoscope.begin_step(number)
            started_ns = time.monotonic_ns()
            collectives_before = group.collectives_done
            result = self._call_step(number, assignment)
            if group.collectives_done == collectives_before:
                # Ranks may be at most one step apart, or two snapshots would not suffice.
                group.barrier()
            with session.stethoscope.phase("snapshot"):
                self._save(number, assignment)
            session.stethoscope.end_step(number)
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
            self._evaluate_if_due(number)
        session.stethoscope.enter("finished")
        probe.cost(
            rank=assignment.rank,
            steps=session.stethoscope.steps,
            stethoscope_s=session.stethoscope.spent_ns / 1e9,
            training_s=session.stethoscope.stepping_ns / 1e9,
        )
        probe.finished(self.steps, rank=assignment.rank)
        self.link.send("finished", generation=assignment.generation)

    def _evaluate_if_due(self, number: int) -> None:
        if self.evaluate is not None and number > 0 and number % self.every == 0:
            with self.session.stethoscope.phase("evaluate"):
                self.evaluate(number)

    def _call_step(self, number: int, assignment: Assignment) -> StepResult:
        try:
            return self.step(number)
        except Exception as error:
            probe.raised(error, rank=assignment.rank, step=number)
            self.link.send("raised", fingerprint=f"{type(error).__name__} at step {number}: {str(error)[:200]}")
            raise

    def _save(self, version: int, assignment: Assignment) -> None:
        self.snapshots.save(self.state, version=version, generation=assignment.generation, rank=assignment.rank)

    def _leave_group(self) -> None:
        if self.group is not None:
            self.group.close()
        self.link.drop_group()
        self.group = None
