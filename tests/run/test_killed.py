"""rankdrill itself is interrupted, terminated and killed, as a process of its own, over the fake stack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from chaos.guard import LEASE_S
from tests.fakes.drilling import Places
from tests.fakes.scenario_fake import write_scenario
from tests.fakes.waiting import wait_until

PROGRAM = Path(__file__).resolve().parents[1] / "fakes" / "rankdrill_fake.py"
MOMENTS = 20
SIDE_BY_SIDE = 4
# A verdict was reached. Which one is not at stake here, and a busy machine may make steps too uneven to judge.
JUDGED = (0, 2)


class Rankdrill:
    """One `rankdrill run` with folders of its own."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.places = Places(root)
        kill = {"kill": {"rank": 1}, "when": {"step": 10}}
        self.scenario = write_scenario(root, faults=(kill,), workload={"steps": 20})
        self.stderr = root / "stderr"
        self.process: subprocess.Popen[bytes]

    def start(self) -> Rankdrill:
        with self.stderr.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM), str(self.scenario), "--out", str(self.root / "out")],
                env={**os.environ, **self.places.environment()},
                cwd=self.root,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        return self

    def said(self) -> str:
        return self.stderr.read_text()

    def traces(self) -> list[str]:
        """What is left: files, and processes that carry this tester's state folder in environment or arguments."""
        return [*self.places.left(), *_processes_with(str(self.places.state).encode(), but=self.process.pid)]

    def report(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.root / "out" / "report.json").read_text())
        return found


def _processes_with(text: bytes, but: int) -> Iterator[str]:
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) in (but, os.getpid()):
            continue
        for file in ("environ", "cmdline"):
            try:
                content = Path(f"/proc/{name}/{file}").read_bytes()
            except OSError:
                continue
            if text in content:
                yield f"process {name}: {content[:80]!r}"
                break


@pytest.fixture
def tester(tmp_path: Path) -> Iterator[Rankdrill]:
    made = Rankdrill(tmp_path / "tester")
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["starting agent", "step 12 of 20", "stopping"])
def test_an_interrupted_run_cleans_up_reports_and_returns_3(
    tester: Rankdrill, number: signal.Signals, moment: str
) -> None:
    tester.start()
    wait_until(lambda: moment in tester.said(), what=f"{moment!r} in what rankdrill says")
    # As a terminal does it: to the whole group. A second one must not disturb the clean-up.
    os.killpg(tester.process.pid, number)
    os.killpg(tester.process.pid, number)
    assert tester.process.wait(30) == 3
    report = tester.report()
    assert report["verdict"] == "ERROR"
    assert number.name in json.dumps(report["reasons"])
    assert tester.traces() == []


def test_killed_at_any_moment_nothing_is_left_and_the_next_run_works(tmp_path: Path) -> None:
    whole = Rankdrill(tmp_path / "whole").start()
    began_s = time.monotonic()
    assert whole.process.wait(60) in JUDGED, whole.said()
    whole_s = time.monotonic() - began_s
    random = Random(20)
    # One moment in each twentieth of a run, so that no part of it is left out.
    moments_s = [whole_s * (number + random.random()) / MOMENTS for number in range(MOMENTS)]

    def kill_at(number: int) -> None:
        tester = Rankdrill(tmp_path / f"killed-{number}").start()
        try:
            tester.process.wait(moments_s[number])
        except subprocess.TimeoutExpired:
            tester.process.kill()
            tester.process.wait()
        wait_until(lambda: not tester.traces(), LEASE_S + 1.0, f"the clean-up after {moments_s[number]:.3f} s")
        if number % 10 == 0:
            assert tester.start().process.wait(60) in JUDGED, tester.said()
            assert tester.traces() == []

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        assert len(list(pool.map(kill_at, range(MOMENTS)))) == MOMENTS
