"""How a group waits for a work, with a fake process group: what gloo does rarely must be tested every time."""

from __future__ import annotations

import socket
import time
from datetime import timedelta
from typing import Any

import pytest
import torch

from harness.resilience.group import COMPLETION_GRACE_S, Group, Regroup, Rendezvous
from harness.resilience.stethoscope import Stethoscope


class FakeWork:
    """A work that completes after some looks, breaks then, or never does either."""

    def __init__(self, *, looks: int | None, error: str | None = None) -> None:
        self.looks = looks
        self.error = error
        self.waited = 0

    def is_completed(self) -> bool:
        return self.looks is not None and self.waited >= self.looks

    def wait(self, limit: timedelta) -> None:
        assert limit.total_seconds() < 1
        self.waited += 1
        if not self.is_completed():
            raise RuntimeError("Operation timed out!")
        if self.error is not None:
            raise RuntimeError(self.error)


class FakeProcessGroup:
    """Hands out one work; what it writes is written when it completes."""

    def __init__(self, work: FakeWork) -> None:
        self.work = work

    def allreduce(self, tensors: list[torch.Tensor]) -> FakeWork:
        tensors[0].mul_(2)
        return self.work


def group_with(work: FakeWork) -> Group:
    group = Group(rank=0, world=2, generation=1, rendezvous=Rendezvous(0, lambda _: None), stethoscope=Stethoscope())
    group.use(FakeProcessGroup(work))
    return group


def test_a_slow_work_is_waited_for() -> None:
    work = FakeWork(looks=5)
    tensor = torch.ones(2)
    group_with(work).all_reduce(tensor)
    assert (work.waited, tensor.tolist()) == (5, [2.0, 2.0])


def test_a_broken_work_ends_the_generation_and_leaves_the_tensor_alone() -> None:
    tensor = torch.ones(2)
    with pytest.raises(Regroup, match="Connection reset by peer"):
        group_with(FakeWork(looks=1, error="Connection reset by peer")).all_reduce(tensor)
    assert tensor.tolist() == [1.0, 1.0]


def test_a_work_that_never_completes_is_left_behind_once_the_generation_is_given_up() -> None:
    """Gloo may wait for ever on a connection that a peer closed just before: no socket is left to shut down."""
    work = FakeWork(looks=None)
    group = group_with(work)

    class GivesUp(FakeProcessGroup):
        def allreduce(self, tensors: list[torch.Tensor]) -> FakeWork:
            group.abandon()
            return work

    group.use(GivesUp(work))
    tensor: Any = torch.ones(2)
    began_s = time.monotonic()
    with pytest.raises(Regroup, match="left behind"):
        group.all_reduce(tensor)
    assert time.monotonic() - began_s >= COMPLETION_GRACE_S
    assert tensor.tolist() == [1.0, 1.0]


def test_no_collective_starts_in_a_generation_that_was_given_up() -> None:
    work = FakeWork(looks=1)
    group = group_with(work)
    group.abandon()
    with pytest.raises(Regroup, match="given up"):
        group.all_reduce(torch.ones(2))
    assert work.waited == 0


def test_sockets_of_others_are_not_touched() -> None:
    """Only connections whose addresses this generation published are shut down."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        other, _ = server.accept()
        group_with(FakeWork(looks=1)).abandon()
        client.sendall(b"still here")
        assert other.recv(100) == b"still here"
        client.close()
        other.close()
