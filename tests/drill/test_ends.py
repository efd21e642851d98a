from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.drill.ends import LAST_WORDS_S, End, EndRules
from harness.drill.view import RunView
from harness.launch.base import ProcessSpec
from harness.observe.observation import (
    FaultInjected,
    MemberId,
    Observation,
    StackStopped,
    StepDone,
    TrainingFinished,
    WorkloadRaised,
)
from harness.observe.processes import ExitStatus

MEMBER = MemberId("n0", 7, 70)
PROGRAM = Path("/w/train.py")
STEP = StepDone(5.0, None, MEMBER, 0, 2, 0, 1, (), None)
INJECTED = FaultInjected(6.0, "f0", "kill", "rank 0", (0,), (MEMBER,), ("n0",))
RAISED = WorkloadRaised(5.0, MEMBER, 0, 7, "ValueError: bad", "Traceback\n…")
TRACEBACK = 'Traceback (most recent call last):\n  File "/w/train.py", line 1\nImportError: no'
CRASH = ExitStatus(1, None)
OK = ExitStatus(0, None)


@dataclass
class Process:
    """A `Running` that is what a test says."""

    ended: ExitStatus | None = None
    role: str = "agent"
    log: str = ""
    pid: int = 1
    started_ticks: int = 1
    spec: ProcessSpec = field(init=False)

    def __post_init__(self) -> None:
        self.spec = ProcessSpec(self.role, "n0", ("x",), role=self.role)

    def status(self) -> ExitStatus | None:
        return self.ended

    def log_tail(self, lines: int) -> str:
        return "\n".join(self.log.splitlines()[-lines:])


def end_of(*seen: Observation, processes: tuple[Process, ...] = (Process(),), at_s: float = 5.0) -> End | None:
    """Ask at `at_s` seconds after the start, and again when the last words are over."""
    view = RunView(world=2)
    for each in seen:
        view.see(each)
    rules = EndRules(view, PROGRAM, horizon_s=120.0, first_step_within_s=60.0)
    first = rules.check(100.0 + at_s, 100.0, processes, all_started=True)
    return first or rules.check(100.0 + at_s + LAST_WORDS_S, 100.0, processes, all_started=True)


def reason(end: End | None) -> str | None:
    return None if end is None else end.reason


def finished(rank: int) -> TrainingFinished:
    return TrainingFinished(9.0, MEMBER, rank, 60)


def test_a_run_goes_on_while_nothing_is_wrong() -> None:
    assert end_of() is None
    assert end_of(STEP, at_s=119.0) is None


def test_every_rank_must_finish() -> None:
    assert end_of(finished(0)) is None
    assert end_of(finished(0), finished(1)) == End("finished")
    assert end_of(finished(0), finished(0)) is None


def test_the_horizon() -> None:
    assert reason(end_of(STEP, at_s=120.0)) == "horizon"


def test_a_run_without_a_step_does_not_wait_for_the_horizon() -> None:
    end = end_of(at_s=60.0, processes=(Process(log="waiting for a lock"),))
    assert reason(end) == "horizon"
    assert end is not None
    assert "waiting for a lock" in end.detail
    # A fault may be what keeps it from stepping.
    assert end_of(INJECTED, at_s=61.0) is None


def test_an_exception_before_any_fault_is_the_programs_own() -> None:
    end = end_of(STEP, RAISED, StackStopped(5.0, "it raised"))
    assert reason(end) == "workload-error"
    assert end is not None
    assert "ValueError: bad at step 7 on rank 0" in end.detail
    assert "Traceback" in end.detail


def test_an_exception_after_a_fault_is_left_to_the_stack() -> None:
    assert end_of(STEP, INJECTED, RAISED) is None


def test_the_first_words_may_be_a_consequence_so_the_last_are_waited_for() -> None:
    view = RunView(world=2)
    rules = EndRules(view, PROGRAM, horizon_s=120.0, first_step_within_s=60.0)
    processes = (Process(CRASH),)
    assert rules.check(105.0, 100.0, processes, all_started=True) is None
    view.see(RAISED)
    end = rules.check(105.0 + LAST_WORDS_S, 100.0, processes, all_started=True)
    assert reason(end) == "workload-error"


def test_the_stacks_own_word_ends_a_run_before_and_after_a_fault() -> None:
    assert end_of(STEP, StackStopped(5.0, "no spare")) == End("stopped", "no spare")
    assert end_of(STEP, INJECTED, StackStopped(5.0, "no spare")) == End("stopped", "no spare")


@pytest.mark.parametrize("status", [CRASH, ExitStatus(None, 9)])
def test_a_process_that_fails_before_any_fault_ends_a_run(status: ExitStatus) -> None:
    end = end_of(STEP, processes=(Process(), Process(status, log="line 1\nlast line")))
    assert reason(end) == "stopped"
    assert end is not None
    assert "last line" in end.detail


def test_after_a_fault_a_run_goes_on_without_an_agent_or_with_a_killed_controller() -> None:
    assert end_of(STEP, INJECTED, processes=(Process(), Process(CRASH))) is None
    assert end_of(STEP, INJECTED, processes=(Process(), Process(ExitStatus(None, 9), "controller"))) is None


def test_a_controller_that_gives_up_ends_a_run() -> None:
    assert reason(end_of(STEP, INJECTED, processes=(Process(), Process(CRASH, "controller")))) == "stopped"


def test_no_process_left_ends_a_run() -> None:
    end = end_of(STEP, INJECTED, processes=(Process(OK), Process(CRASH, log="why")))
    assert reason(end) == "stopped"
    end = end_of(STEP, INJECTED, processes=(Process(OK),))
    assert end is not None
    assert "before the training was complete" in end.detail


def test_processes_that_are_still_to_be_started_are_waited_for() -> None:
    rules = EndRules(RunView(world=2), PROGRAM, horizon_s=120.0, first_step_within_s=60.0)
    for now_s in (101.0, 102.0):
        assert rules.check(now_s, 100.0, (Process(OK),), all_started=False) is None


def test_the_programs_traceback_before_the_first_step_is_the_programs_own() -> None:
    assert reason(end_of(processes=(Process(CRASH, log=TRACEBACK),))) == "workload-error"
    # After the first step, or with another file's traceback, it is the stack that ended.
    assert reason(end_of(STEP, processes=(Process(CRASH, log=TRACEBACK),))) == "stopped"
    other = TRACEBACK.replace("train", "stack")
    assert reason(end_of(processes=(Process(CRASH, log=other),))) == "stopped"
