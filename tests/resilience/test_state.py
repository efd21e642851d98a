"""What a snapshot contains, and that putting it back makes training go on as if nothing had happened."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import UsageError
from harness.resilience.group import Rehearsal
from harness.resilience.memory import Region, SnapshotError
from harness.resilience.shard import ShardedOptimizer
from harness.resilience.state import Snapshots, State, seed_random_streams, state_bytes


class Model(torch.nn.Module):
    """Two layers, dropout, and a buffer of its own on each rank."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 1)
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        out: torch.Tensor = self.second(torch.nn.functional.dropout(self.first(x), 0.5))
        return out


class Counter:
    """A part that is no torch object."""

    def __init__(self) -> None:
        self.position = 0

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]


class Training:
    """One rank of one: everything a step touches."""

    def __init__(self) -> None:
        seed_random_streams(3, 0)
        self.model = Model()
        self.optimizer = ShardedOptimizer(torch.optim.AdamW, self.model, world=1, lr=0.1)
        self.optimizer.join(Rehearsal(1))
        self.optimizer.start_shard(0)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer.inner, 2)
        self.counter = Counter()
        self.state = State(model=self.model, optimizer=self.optimizer, schedule=self.schedule, counter=self.counter)

    def step(self) -> list[Any]:
        loss = self.model(torch.randn(2, 4)).sum() * random.random() + float(np.random.rand())
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.counter.position += 1
        return [
            loss.item(),
            *self.optimizer.flat_parameters().tolist(),
            self.schedule.get_last_lr(),
            self.counter.position,
        ]


def test_a_restored_rank_goes_on_bitwise_as_if_nothing_had_happened() -> None:
    training = Training()
    for _ in range(3):
        training.step()
    snapshots = Snapshots(Region.create("test", state_bytes(training.state)))
    snapshots.save(training.state, version=3, generation=1, rank=0)
    expected = [training.step() for _ in range(3)]

    other = Training()
    other.step()
    snapshots.load(other.state, version=3, rank=0)
    other.optimizer.gather()
    assert [other.step() for _ in range(3)] == expected
    assert other.model.seen.item() == training.model.seen.item()


def test_parameters_that_the_shards_hold_are_not_stored_twice() -> None:
    training = Training()
    assert set(training.state.collect()["model"]) == {"seen"}


def test_gradients_of_an_abandoned_step_do_not_leak_into_the_next() -> None:
    training = Training()
    training.step()
    snapshots = Snapshots(Region.create("test", state_bytes(training.state)))
    snapshots.save(training.state, version=1, generation=1, rank=0)
    training.model(torch.randn(2, 4)).sum().backward()
    snapshots.load(training.state, version=1, rank=0)
    assert all(not parameter.grad.any() for parameter in training.optimizer.parameters if parameter.grad is not None)


def test_a_snapshot_of_another_rank_is_refused() -> None:
    training = Training()
    snapshots = Snapshots(Region.create("test", state_bytes(training.state)))
    snapshots.save(training.state, version=0, generation=1, rank=0)
    with pytest.raises(SnapshotError, match="belongs to rank 0, not to rank 1"):
        snapshots.load(training.state, version=0, rank=1)


def test_a_part_without_state_is_refused_with_its_name() -> None:
    with pytest.raises(UsageError, match=r"State\(data=…\) got a list"):
        State(data=[1, 2, 3])


def test_a_state_that_outgrows_its_slot_says_so() -> None:
    training = Training()
    snapshots = Snapshots(Region.create("test", 4096))
    training.state.parts["big"] = torch.nn.Linear(100, 100)
    with pytest.raises(SnapshotError, match="has grown"):
        snapshots.save(training.state, version=0, generation=1, rank=0)


def test_ranks_draw_from_streams_of_their_own() -> None:
    draws = []
    for rank in range(4):
        seed_random_streams(7, rank)
        draws.append((random.random(), float(np.random.rand()), float(torch.rand(()))))
    assert len(set(draws)) == 4
    seed_random_streams(7, 2)
    assert (random.random(), float(np.random.rand()), float(torch.rand(()))) == draws[2]


def test_gradients_that_the_program_moved_elsewhere_still_count() -> None:
    """model.zero_grad() makes backward put its gradients into new tensors, out of the flat buffer's sight."""
    usual, moved = Training(), Training()
    for training in (usual, moved):
        seed_random_streams(3, 0)
        training.step()
        if training is moved:
            training.model.zero_grad(set_to_none=True)
    seed_random_streams(5, 0)
    expected = usual.step()
    seed_random_streams(5, 0)
    assert moved.step() == expected


def test_a_new_generation_moves_parameters_to_buffers_of_its_own() -> None:
    """What an old generation's collective writes late reaches nothing that lives."""
    training = Training()
    training.step()
    old_flat = training.optimizer.flat_parameters()
    before = [parameter.detach().clone() for parameter in training.model.parameters()]
    training.optimizer.join(Rehearsal(1))
    old_flat.fill_(666.0)
    assert all(torch.equal(*pair) for pair in zip(before, training.model.parameters(), strict=True))
