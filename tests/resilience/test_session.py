"""The loop a member runs while it holds a rank, without processes: a fake link, a fake group, real snapshots."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from harness.errors import UsageError
from harness.resilience.group import Group
from harness.resilience.member import Assignment, MemberLink
from harness.resilience.memory import Region
from harness.resilience.session import Session
from harness.resilience.state import Snapshots, State
from harness.resilience.training import StepResult, Training


class FakeLink:
    """Keeps what was said; gives nothing up."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def send(self, kind: str, **_: object) -> None:
        self.said.append(kind)

    def check(self, generation: int) -> None:
        """The generation goes on."""


class FakeGroup:
    """A group in which everybody is always there."""

    def __init__(self) -> None:
        self.collectives_done = 0
        self.barriers = 0

    def barrier(self) -> None:
        self.barriers += 1


class Run:
    """One member with a rank, and a log of what its program was asked to do."""

    def __init__(self, *, steps: int, every: int = 0) -> None:
        self.log: list[str] = []
        self.session = Session(world=1, seed=0)
        self.group = FakeGroup()
        self.link = FakeLink()
        self.training = Training(
            session=self.session,
            step=self.step,
            state=State(model=torch.nn.Linear(1, 1)),
            steps=steps,
            evaluate=self.evaluate if every else None,
            every=every,
            after_step=self.after_step,
        )
        self.training.link = cast(MemberLink, self.link)
        self.training.group = cast(Group, self.group)
        self.training.snapshots = Snapshots(Region.create("test", 1 << 16))

    def step(self, number: int) -> StepResult:
        self.log.append(f"step {number}")
        return StepResult(loss=0.0, samples=[number])

    def evaluate(self, number: int) -> None:
        assert self.training.snapshots.region.versions()[0] in (number, -1)
        self.log.append(f"evaluate {number}")

    def after_step(self, number: int, **_: Any) -> None:
        assert self.training.snapshots.region.versions()[0] == number, "the marker is set before the step is told"
        self.log.append(f"told {number}")

    def go(self, version: int, *, as_built: bool = False) -> list[str]:
        self.training.run_steps(Assignment(2, 0, 1, version, as_built))
        return self.log


def test_a_step_is_told_after_its_snapshot_and_before_its_evaluation() -> None:
    assert Run(steps=2, every=2).go(0, as_built=True) == ["step 1", "told 1", "step 2", "told 2", "evaluate 2"]


def test_a_regroup_onto_an_evaluations_snapshot_runs_that_evaluation_again() -> None:
    assert Run(steps=11, every=5).go(10) == ["evaluate 10", "step 11", "told 11"]


def test_a_regroup_elsewhere_runs_no_evaluation_again() -> None:
    assert Run(steps=12, every=5).go(11) == ["step 12", "told 12"]


def test_a_regroup_after_the_last_step_makes_none() -> None:
    run = Run(steps=3)
    assert run.go(3) == []
    assert run.link.said == ["finished"]


def test_a_step_without_a_collective_gets_a_barrier() -> None:
    """Ranks may be at most one step apart, or two snapshots would not suffice."""
    run = Run(steps=3)
    run.go(0, as_built=True)
    assert run.group.barriers == 3


def test_an_exception_of_the_program_is_told_and_passed_on() -> None:
    run = Run(steps=3)

    def broken(number: int) -> StepResult:
        raise ValueError(f"no batch {number}")

    run.training.step = broken
    with pytest.raises(ValueError, match="no batch 1"):
        run.go(0, as_built=True)
    assert run.link.said == ["raised"]


def test_the_rank_is_not_known_before_a_step() -> None:
    with pytest.raises(UsageError, match="only inside a step"):
        _ = Session(world=4, seed=0).rank


def test_a_program_that_no_agent_started_is_told_how_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANKDRILL_AGENT", raising=False)
    with pytest.raises(UsageError, match="rankdrill run FILE"):
        Session.join()
