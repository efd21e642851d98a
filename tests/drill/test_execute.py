from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.drill.interrupt import Interrupt
from harness.errors import LaunchError
from harness.observe.observation import (
    Claim,
    FaultEffective,
    FaultHealed,
    FaultInjected,
    ProcessExited,
    RankHeld,
    RunEnded,
    RunStarted,
    StepDone,
    TrainingFinished,
)
from harness.scenario import Scenario, load
from tests.fakes.drilling import Places, Told, run
from tests.fakes.scenario_fake import KILL, NOOP, write_scenario
from tests.fakes.stack_fake import PROGRAM, FakeStack
from tests.fakes.waiting import wait_until


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    made = Places(tmp_path)
    made.use(monkeypatch)
    yield made
    # Whatever a test does to a run, nothing of it may stay.
    assert made.left() == []


def scenario(tmp_path: Path, **fields: Any) -> Scenario:
    return load(write_scenario(tmp_path, **fields))


def test_a_killed_rank_is_seen_from_injection_to_the_end(tmp_path: Path) -> None:
    told = Told()
    record = run(scenario(tmp_path), FakeStack(), told)
    seen = record.timeline
    assert record.end.reason == "finished"
    assert record.dirty == ()
    (injected,) = seen.of(FaultInjected)
    assert (injected.fault, injected.kind, injected.target, injected.ranks) == ("f0", "kill", "rank 1", (1,))
    (claim,) = seen.of(Claim)
    assert (claim.kind, claim.rank, claim.pid) == ("crash", 1, injected.members[0].pid)
    assert injected.at_s < claim.at_s
    assert len(seen.of(FaultEffective)) == 1
    victim = next(each for each in seen.of(ProcessExited) if each.member == injected.members[0])
    assert (victim.code, victim.signal) == (None, signal.SIGKILL)
    assert {each.rank for each in seen.of(TrainingFinished)} == {0, 1, 2}
    assert {each.step for each in seen.of(StepDone)} == set(range(1, 61))
    replacement = seen.of(RankHeld)[-1]
    assert (replacement.rank, replacement.generation) == (1, 1)
    assert next(iter(seen)) == seen.first(RunStarted)
    ended = seen.first(RunEnded)
    assert ended is not None
    assert ended.reason == "finished"
    assert "kill rank 1: injected" in told.events
    assert told.steps == list(range(1, 61))


def test_a_stopped_rank_is_healed_before_the_stack_is_stopped(tmp_path: Path) -> None:
    stop = {"stop": {"rank": 1}, "when": {"step": 40}, "duration_s": 0.3}
    record = run(scenario(tmp_path, faults=(stop,)), FakeStack())
    (healed,) = record.timeline.of(FaultHealed)
    assert healed.verified
    (injected,) = record.timeline.of(FaultInjected)
    assert healed.at_s - injected.at_s >= 0.3
    assert record.end.reason == "finished"


def test_the_horizon_ends_a_run_and_shows_where_it_hangs(tmp_path: Path) -> None:
    # No claim, no replacement: the fake stack waits for ever for the rank that was killed.
    stack = FakeStack(controller_options=("--pause-forever",), agent_options=())
    record = run(scenario(tmp_path, workload={"spares": 0}, horizon_s=2.5), stack)
    assert record.end.reason == "horizon"
    assert f"{PROGRAM} member" in record.dump
    assert "State:" in record.dump


def test_a_program_that_raises_is_the_workloads_own_fault(tmp_path: Path) -> None:
    began_s = time.monotonic()
    record = run(scenario(tmp_path, workload={"args": {"raise-at-step": 7}}), FakeStack())
    assert record.end.reason == "workload-error"
    assert "ValueError: bad value at step 7" in record.end.detail
    assert "Traceback" in record.end.detail
    assert time.monotonic() - began_s < 30


def test_a_program_that_cannot_be_imported_is_the_workloads_own_fault(tmp_path: Path) -> None:
    record = run(scenario(tmp_path, workload={"args": {"raise-at-import": 1}}), FakeStack())
    assert record.end.reason == "workload-error"
    assert "the training program cannot be imported" in record.end.detail


def test_a_process_that_fails_without_a_word_is_quoted_from_its_log(tmp_path: Path) -> None:
    record = run(scenario(tmp_path, workload={"args": {"exit-at-step": 5}}), FakeStack())
    assert record.end.reason == "stopped"
    assert "ended with code 5" in record.end.detail
    assert "giving up without a word to the tester" in record.end.detail


def test_a_stack_that_raises_at_import_ends_at_once(tmp_path: Path) -> None:
    broken = tmp_path / "controller.py"
    broken.write_text("raise SystemError('this stack is broken')")
    record = run(scenario(tmp_path), FakeStack(controller_program=broken))
    assert record.end.reason == "stopped"
    assert "this stack is broken" in record.end.detail
    assert "controller ended with code 1" in record.end.detail


def test_a_missing_stack_program_ends_at_once(tmp_path: Path) -> None:
    record = run(scenario(tmp_path), FakeStack(controller_program=tmp_path / "nothing.py"))
    assert record.end.reason == "stopped"
    assert "nothing.py" in record.end.detail


def test_a_log_flood_disturbs_nothing(tmp_path: Path) -> None:
    workload = {"args": {"flood-bytes": 1_000_000}, "steps": 45}
    record = run(scenario(tmp_path, faults=(NOOP,), workload=workload), FakeStack())
    assert record.end.reason == "finished"
    assert all(len(log) < 1 << 20 for log in record.logs.values())


def test_members_that_ignore_term_are_killed(tmp_path: Path) -> None:
    interrupt = Interrupt()
    told = _Interrupting(interrupt, at_step=5)
    record = run(scenario(tmp_path, workload={"args": {"ignore-term": 1}}), FakeStack(), told, interrupt)
    assert record.end.reason == "interrupted"
    assert record.interrupted == "SIGTERM"
    assert record.dirty == ()


class _Interrupting(Told):
    """Sends this process a signal when a run is at some step."""

    def __init__(self, interrupt: Interrupt, at_step: int) -> None:
        super().__init__()
        self._interrupt = interrupt
        self._at_step = at_step

    def started(self, what: str, *, steps: int) -> None:
        self._interrupt.__enter__()

    def step(self, number: int) -> None:
        if number >= self._at_step and self._interrupt.name is None:
            os.kill(os.getpid(), signal.SIGTERM)

    def phase(self, text: str) -> None:
        if text == "stopping":
            self._interrupt.__exit__(None, None, None)


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    ends: dict[str, str] = {}

    def one(name: str) -> None:
        ends[name] = run(scenario(tmp_path, name=name), FakeStack()).end.reason

    threads = [threading.Thread(target=one, args=(f"drill-{number}",)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ends == {"drill-0": "finished", "drill-1": "finished"}


def test_a_folder_that_cannot_be_made_is_a_launch_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", "/proc/self")
    with pytest.raises(LaunchError, match="set TMPDIR"):
        run(scenario(tmp_path), FakeStack())


def test_a_state_folder_that_cannot_be_written_is_a_launch_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKDRILL_STATE_DIR", "/proc/self/state")
    with pytest.raises(LaunchError, match="nothing was started"):
        run(scenario(tmp_path), FakeStack())


def test_no_thread_or_descriptor_of_a_run_stays(tmp_path: Path) -> None:
    drill = scenario(tmp_path, faults=(NOOP, KILL))
    run(drill, FakeStack())
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    run(drill, FakeStack())
    wait_until(lambda: threading.active_count() <= threads)
    assert len(os.listdir("/proc/self/fd")) <= descriptors
