from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import MonotonicClock
from harness.errors import LaunchError
from harness.observe.clocks import ClockTable
from harness.observe.collect import Collector
from harness.observe.observation import (
    Claim,
    MemberJoined,
    Observation,
    ObserverLost,
    ProcessExited,
    RunStarted,
    StepDone,
)
from tests.fakes.waiting import wait_until

TALKER = """
import os, sys
from harness.probe import api as probe
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Talker:
    """A process that performs probe calls when it is told to."""

    def __init__(self, work: Path, node: str = "n0", bell: str = "bell") -> None:
        env = {**os.environ, "RANKDRILL_PROBE_DIR": str(work / "probe"), "RANKDRILL_NODE": node}
        env["RANKDRILL_BELL"] = str(work / bell)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-c", TALKER], stdin=pipe, stdout=pipe, env=env, text=True)

    def say(self, code: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def seen() -> list[Observation]:
    return []


@pytest.fixture
def collector(tmp_path: Path, seen: list[Observation]) -> Iterator[Collector]:
    (tmp_path / "probe").mkdir()
    made = Collector(tmp_path / "probe", tmp_path / "bell", MonotonicClock(), ClockTable(), (seen.append,))
    made.start()
    yield made
    made.stop()


def kinds(seen: list[Observation]) -> list[str]:
    return [type(each).__name__ for each in seen]


STEP = "probe.step(1, rank=0, world=1, samples=[5], loss=0.5)"


def test_records_and_the_end_of_a_member(tmp_path: Path, collector: Collector, seen: list[Observation]) -> None:
    talker = Talker(tmp_path, node="n1")
    talker.say("probe.joined('member')")
    talker.say(STEP)
    wait_until(lambda: len(seen) == 2)
    talker.end()
    wait_until(lambda: len(seen) == 3)
    assert kinds(seen) == ["MemberJoined", "StepDone", "ProcessExited"]
    exited = seen[2]
    assert isinstance(exited, ProcessExited)
    assert (exited.member.node, exited.member.pid) == ("n1", talker.process.pid)
    assert (exited.code, exited.signal) == (None, 9)
    step = seen[1]
    assert isinstance(step, StepDone)
    assert step.samples == (5,)


def test_the_exit_code_of_a_member(tmp_path: Path, collector: Collector, seen: list[Observation]) -> None:
    talker = Talker(tmp_path)
    talker.say("probe.joined('member')")
    talker.say("os._exit(3)")
    wait_until(lambda: len(seen) == 2)
    assert isinstance(seen[1], ProcessExited)
    assert (seen[1].code, seen[1].signal) == (3, None)
    talker.end()


def test_last_words_come_before_the_death(tmp_path: Path, collector: Collector, seen: list[Observation]) -> None:
    talker = Talker(tmp_path)
    talker.say(f"probe.joined('member'); {STEP}; os.kill(os.getpid(), 9)")
    wait_until(lambda: len(seen) == 3)
    assert kinds(seen) == ["MemberJoined", "StepDone", "ProcessExited"]
    talker.end()


def test_a_controller_is_no_member(tmp_path: Path, collector: Collector, seen: list[Observation]) -> None:
    talker = Talker(tmp_path)
    talker.say("probe.claim('crash', rank=2, pid=9, node='n0')")
    wait_until(lambda: seen)
    talker.end()
    timeline = collector.stop()
    assert [type(each) for each in timeline] == [Claim]


def test_a_claim_is_received_at_once_through_the_bell(tmp_path: Path) -> None:
    (tmp_path / "probe").mkdir()
    heard = threading.Event()
    collector = Collector(
        tmp_path / "probe", tmp_path / "bell", MonotonicClock(), ClockTable(), (lambda each: heard.set(),)
    )
    collector.start()
    talker = Talker(tmp_path)
    delays = []
    for _ in range(20):
        heard.clear()
        talker.say("probe.claim('crash')")
        assert heard.wait(20)
        last = collector.timeline().of(Claim)[-1]
        delays.append(last.at_s - last.said_s)
    talker.end()
    collector.stop()
    # The best quarter is judged, since this machine may be busy otherwise; a poll would take 10 ms on average.
    assert sorted(delays)[5] < 0.005


def test_without_a_bell_records_come_by_polling(tmp_path: Path, collector: Collector, seen: list[Observation]) -> None:
    talker = Talker(tmp_path, bell="no-such-bell")
    talker.say("probe.joined('member')")
    wait_until(lambda: seen)
    assert isinstance(seen[0], MemberJoined)
    talker.end()


def test_a_path_too_long_for_a_socket_means_polling(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    (deep / "probe").mkdir(parents=True)
    collector = Collector(deep / "probe", deep / "bell", MonotonicClock(), ClockTable())
    assert not collector.has_bell
    collector.stop()


def test_a_folder_that_is_not_there_is_a_launch_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="bell"):
        Collector(tmp_path / "probe", tmp_path / "none" / "bell", MonotonicClock(), ClockTable())


def test_a_broken_file_is_said_not_raised(tmp_path: Path, collector: Collector, seen: list[Observation]) -> None:
    from harness.probe.records import RecordWriter

    (tmp_path / "probe" / "what is this").write_text("?")
    (tmp_path / "probe" / "nonsense.probe").write_text("?")
    writer = RecordWriter(tmp_path / "probe" / "n0.999999999.1.probe")
    writer.append({"is": "unheard-of", "at_ns": 1})
    writer.close()
    talker = Talker(tmp_path)
    talker.say("probe.joined('member')")
    wait_until(lambda: "MemberJoined" in kinds(seen))
    wait_until(lambda: kinds(seen).count("ObserverLost") == 2)
    assert any(isinstance(each, ObserverLost) and "unheard-of" in each.what for each in seen)
    talker.end()


def test_a_member_that_died_unwatched(tmp_path: Path, collector: Collector, seen: list[Observation]) -> None:
    from harness.probe.records import RecordWriter

    writer = RecordWriter(tmp_path / "probe" / "new")
    writer.append({"is": "joined", "at_ns": 1, "role": "member"})
    writer.close()
    (tmp_path / "probe" / "new").rename(tmp_path / "probe" / "n0.999999999.1.probe")
    wait_until(lambda: len(seen) == 2)
    assert isinstance(seen[1], ProcessExited)
    assert (seen[1].code, seen[1].signal) == (None, None)


def test_the_testers_own_observations(collector: Collector, seen: list[Observation]) -> None:
    collector.add(RunStarted(1.0))
    assert seen == [RunStarted(1.0)]
    assert list(collector.stop()) == [RunStarted(1.0)]
    assert list(collector.stop()) == [RunStarted(1.0)]
