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

import faulthandler
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from harness.errors import UsageError
from harness.resilience import messages
from harness.resilience.group import Collectives
from harness.resilience.shard import ShardedOptimizer
from harness.resilience.state import (
    State,
    seed_random_streams,
)
from harness.resilience.stethoscope import Stethoscope
from harness.resilience.training import Step, StepResult, Training

__all__ = ["Session", "State", "StepResult"]

SEED_VARIABLE = "RANKDRILL_SEED"


class Session:
    """One member's view of the run."""

    def __init__(self, world: int, seed: int) -> None:
        self.world = world
        self.seed = seed
        self.stethoscope = Stethoscope()
        self._group: Collectives | None = None
        self._rank: int | None = None
        self._generation = 0
        self.shards: list[ShardedOptimizer] = []

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

    def all_reduce(self, tensor: torch.Tensor) -> None:
        """Sum a tensor over all ranks, in place; every rank must call it. Only inside a step or an evaluation."""
        if self._group is None:
            raise UsageError("session.all_reduce can be used only inside a step or an evaluation")
        self._group.all_reduce(tensor)

    def enter(self, group: Collectives, *, rank: int, generation: int) -> None:
        """Hold a rank in a generation; sharded optimizers move to its buffers. Called by the training loop."""
        self._rank, self._group, self._generation = rank, group, generation
        for shard in self.shards:
            shard.join(group)

    def leave(self) -> None:
        """Hold no rank."""
        self._rank, self._group = None, None

    def shard(
        self, make: Callable[..., torch.optim.Optimizer], model: torch.nn.Module, **options: Any
    ) -> ShardedOptimizer:
        """Wrap an optimizer class so that each rank keeps and updates only its own shard."""
        shard = ShardedOptimizer(make, model, world=self.world, **options)
        self.shards.append(shard)
        return shard

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the step ("data", "checkpoint"); detection's limits depend on the phase."""
        with self.stethoscope.phase(name):
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
        run = Training(
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
