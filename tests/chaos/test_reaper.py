"""Real reapers, a real tester process, real victims: whatever is killed, what was done is undone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from chaos import processes, reaper, undo
from chaos.clock import SystemClock
from chaos.errors import LeaseLostError, LedgerError, ReaperError
from chaos.guard import Guard
from chaos.ledger import NEW_SUFFIX, RESERVE_BYTES, Ledger
from chaos.leftovers import heal_left_overs
from chaos.target import RosterMember
from tests.fakes.chaos_fakes import (
    TAG_VARIABLE,
    entries_of,
    is_alive,
    no_bigger_file_than,
    states_of,
    victim,
    wait_runs,
    wait_stopped,
)
from tests.fakes.waiting import wait_until

CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Started:
    """A tester process that holds its victims stopped."""

    process: subprocess.Popen[str]
    state: str
    work: Path
    run: str

    def ledger(self) -> Ledger:
        return Ledger.open(os.path.join(self.state, f"{self.run}.ledger"), CLOCK)

    def reapers(self) -> dict[int, tuple[int, int]]:
        ledger = self.ledger()
        found = dict(ledger.state.reapers)
        ledger.release()
        return found


@contextmanager
def started_tester(tmp_path: Path, run: str, lease_s: float, *victims: RosterMember) -> Iterator[Started]:
    """Start a tester and wait until its victims are stopped; none of its processes is left after the block."""
    state, work = str(tmp_path / "state"), tmp_path / "work"
    work.mkdir()
    undo.tag_folder(str(work), run)
    (work / "log").write_text("x")
    names = [f"{who.pid}:{who.started_ticks}" for who in victims]
    argv = [sys.executable, "-m", "tests.fakes.chaos_conductor", state, str(work), run, str(lease_s), *names]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root)
    assert process.stdout is not None
    with process, process.stdout:
        try:
            said: list[str] = []
            while sum(line.startswith("Effective") for line in said) < len(victims):
                line = process.stdout.readline()
                assert line, f"the tester ended early, after {said}"
                said.append(line)
            yield Started(process, state, work, run)
        finally:
            process.kill()


def all_ended(reapers: dict[int, tuple[int, int]]) -> bool:
    return not any(processes.alive(*one) for one in reapers.values())


def replaced(run: Started, slot: int, before: dict[int, tuple[int, int]]) -> bool:
    return run.reapers()[slot] != before[slot]


def kill_all(reapers: dict[int, tuple[int, int]]) -> None:
    """Kill both at once: each is stopped first, so that neither sees the other go."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for one in reapers.values():
            assert processes.send(*one, number)
    wait_until(lambda: all_ended(reapers), what="the reapers' death")


def test_a_tester_killed_in_mid_stop_leaves_nothing(tmp_path: Path) -> None:
    """The victim runs again, tagged processes and the folder are gone, and so are ledger and reapers."""
    lease_s = 3.0
    with victim() as held, victim("reap-1") as tagged, started_tester(tmp_path, "reap-1", lease_s, held) as run:
        reapers = run.reapers()
        assert processes.is_stopped(states_of(held))
        killed_s = time.monotonic()
        run.process.kill()
        wait_runs(held)
        assert time.monotonic() - killed_s <= lease_s + 1.0
        wait_until(lambda: all_ended(reapers), what="the reapers' end")
        assert time.monotonic() - killed_s <= lease_s + 1.0
        assert not is_alive(tagged)
        assert is_alive(held)
        assert not run.work.exists()
        assert entries_of(run.state) == []


def test_a_tester_that_hangs_loses_its_lease(tmp_path: Path) -> None:
    """A stopped tester (Ctrl-Z, a debugger, a machine asleep) holds nothing longer than its lease, and is told."""
    lease_s = 1.5
    with victim() as held, started_tester(tmp_path, "reap-2", lease_s, held) as run:
        stopped_s = time.monotonic()
        run.process.send_signal(signal.SIGSTOP)
        wait_runs(held)
        assert time.monotonic() - stopped_s <= lease_s + 1.0
        wait_until(lambda: not run.work.exists(), what="the folder's removal")
        run.process.send_signal(signal.SIGCONT)
        assert run.process.wait(20) != 0
        assert entries_of(run.state) == []


def test_a_reaper_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with victim() as held, started_tester(tmp_path, "reap-3", 30.0, held) as run:
        for slot in (0, 1, 0):
            before = run.reapers()
            assert processes.send(*before[slot], signal.SIGKILL)
            wait_until(partial(replaced, run, slot, before), what="a new reaper")
            after = run.reapers()
            assert after[1 - slot] == before[1 - slot]
            assert processes.alive(*after[slot])
        run.process.kill()
        wait_runs(held)
        wait_until(lambda: all_ended(after), what="the reapers' end")
        assert entries_of(run.state) == []


def test_one_reaper_and_the_tester_killed_at_once(tmp_path: Path) -> None:
    with victim() as held, started_tester(tmp_path, "reap-4", 30.0, held) as run:
        assert processes.send(*run.reapers()[0], signal.SIGKILL)
        run.process.kill()
        wait_runs(held)
        wait_until(lambda: entries_of(run.state) == [], what="the ledger's removal")


def test_all_killed_is_healed_at_the_next_start(tmp_path: Path) -> None:
    with victim() as held, victim("reap-5") as tagged, started_tester(tmp_path, "reap-5", 30.0, held) as run:
        kill_all(run.reapers())
        assert heal_left_overs(run.state, CLOCK) == [], "its tester is alive"
        run.process.kill()
        run.process.wait()
        assert processes.is_stopped(states_of(held))
        (report,) = heal_left_overs(run.state, CLOCK)
        assert (report.run_id, report.clean, report.healed) == ("reap-5", True, ("f0", "run"))
        wait_runs(held, 2.0)
        assert not is_alive(tagged)
        assert not run.work.exists()
        assert entries_of(run.state) == []


def test_another_run_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with (
        victim() as mine,
        victim("reap-7") as other_tagged,
        victim() as others,
        started_tester(tmp_path / "a", "reap-6", 30.0, mine) as run,
        started_tester(tmp_path / "b", "reap-7", 30.0, others) as other,
    ):
        run.process.kill()
        wait_until(lambda: entries_of(run.state) == [], what="the ledger's removal")
        assert processes.is_stopped(states_of(others))
        assert is_alive(other_tagged)
        assert other.work.exists()
        assert not all_ended(other.reapers())
        other.process.kill()
        wait_runs(others)


def test_several_victims_are_all_healed(tmp_path: Path) -> None:
    with victim() as one, victim() as two, started_tester(tmp_path, "reap-8", 30.0, one, two) as run:
        run.process.kill()
        for who in (one, two):
            wait_runs(who)
        wait_until(lambda: entries_of(run.state) == [], what="the ledger's removal")


def test_reapers_ignore_what_a_terminal_or_a_service_sends(tmp_path: Path) -> None:
    with victim() as held, started_tester(tmp_path, "reap-9", 30.0, held) as run:
        reapers = run.reapers()
        for one in reapers.values():
            assert os.getsid(one[0]) == one[0]
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                assert processes.send(*one, number)
        run.process.kill()
        wait_runs(held)
        wait_until(lambda: entries_of(run.state) == [], what="the ledger's removal")


def test_reapers_carry_nothing_of_the_tester(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment (the tag would make them kill each other), no files, no folder that could not be unmounted."""
    monkeypatch.setenv(TAG_VARIABLE, "reap-10")
    with Guard.open(str(tmp_path), "reap-10", undo=(undo.kill_tagged(TAG_VARIABLE, "reap-10"),), clock=CLOCK) as guard:
        for pid, _ in guard.ledger.refresh().reapers.values():
            assert Path(f"/proc/{pid}/environ").read_bytes() == b""
            assert os.readlink(f"/proc/{pid}/cwd") == "/"
            assert [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)] == [os.devnull] * 3
        reapers = dict(guard.ledger.state.reapers)
    assert guard.report is not None
    assert guard.report.clean
    assert all_ended(reapers)
    assert entries_of(str(tmp_path)) == []


def test_a_lease_is_kept_while_the_tester_lives_and_a_shorter_one_is_not(tmp_path: Path) -> None:
    """The reapers heal an entry whose lease is over although the tester lives; the run, renewed, goes on."""
    with victim() as held, Guard.open(str(tmp_path), "reap-11", undo=(), clock=CLOCK, lease_s=2.5) as guard:
        armed_s = time.monotonic()
        guard.ledger.arm("f0", [undo.send_signal(held.pid, held.started_ticks, "CONT")], 0.5)
        os.kill(held.pid, signal.SIGSTOP)
        wait_stopped(held)
        wait_runs(held)
        assert 0.5 <= time.monotonic() - armed_s <= 1.5
        wait_until(lambda: guard.ledger.refresh().entries["f0"].healed_by.startswith("reaper"), what="the record")
        wait_until(lambda: time.monotonic() - armed_s > 3.0, what="more than the run's lease")
        guard.ledger.check_held()


def test_a_guard_reports_what_it_cannot_undo_and_the_host_stays_dirty(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "not ours").mkdir(parents=True)
    state = str(tmp_path / "state")
    steps = (undo.remove_tree(str(work), "reap-12"),)
    with Guard.open(state, "reap-12", undo=steps, clock=CLOCK, lease_s=1.5) as guard:
        reapers = dict(guard.ledger.state.reapers)
    assert guard.report is not None
    assert "not ours" in guard.report.failed[0]
    assert entries_of(state) == ["reap-12.ledger"]
    (work / "not ours").rmdir()
    # Its tester, this process, lives on: a reaper, not the next start, finishes what has become possible.
    ledger = Ledger.open(os.path.join(state, "reap-12.ledger"), CLOCK)
    wait_until(lambda: not ledger.refresh().open_entries(), what="the reapers' undo")
    ledger.remove()
    wait_until(lambda: all_ended(reapers), what="the reapers' end")


def test_a_lost_lease_is_said_when_the_tester_comes_back(tmp_path: Path) -> None:
    with Guard.open(str(tmp_path), "reap-13", undo=(), clock=CLOCK) as guard:
        guard.ledger.record_healed("run", "reaper 1", "lease over")
        with pytest.raises(LeaseLostError, match="was it stopped"):
            guard.ledger.check_held()


def test_reapers_that_cannot_be_armed_stop_the_run_before_it_begins(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "reap-14", CLOCK)
    broken = tmp_path / "broken.ledger"
    broken.write_bytes(b"no ledger\n")
    with pytest.raises(ReaperError, match="could not be started"):
        reaper.wait_armed(reaper.start(str(broken)), ledger, CLOCK)
    ledger.release()


STARTS = (
    "import os, signal, sys\nfrom chaos import reaper\nprint(reaper.start(sys.argv[1]).pid, flush=True)\nsignal.pause()"
)


def test_a_tester_that_dies_before_its_ledger_is_made_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "reap-16.ledger"
    root = Path(__file__).resolve().parents[2]
    argv = [sys.executable, "-c", STARTS, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root) as tester:
        assert tester.stdout is not None
        starter = int(tester.stdout.readline())
        # As far as a tester gets that is killed while it writes its ledger.
        Path(f"{path}{NEW_SUFFIX}").touch()
        ticks = processes.start_ticks(starter)
        assert ticks is not None
        assert processes.alive(starter, ticks)
        tester.kill()
    wait_until(lambda: not processes.alive(starter, ticks))
    assert entries_of(str(tmp_path)) == []


def test_a_tester_that_dies_as_soon_as_its_ledger_is_there_is_undone(tmp_path: Path) -> None:
    run = "reap-17"
    root = Path(__file__).resolve().parents[2]
    code = (
        "import os, sys\nfrom chaos import reaper\nfrom chaos.clock import SystemClock\n"
        "from chaos.ledger import Ledger, path_of\nreaper.start(path_of(sys.argv[1], sys.argv[2]))\n"
        "Ledger.create(sys.argv[1], sys.argv[2], SystemClock())\nos.kill(os.getpid(), 9)"
    )
    tester = subprocess.run([sys.executable, "-c", code, str(tmp_path), run], cwd=root, check=False)
    assert tester.returncode == -signal.SIGKILL
    wait_until(lambda: entries_of(str(tmp_path)) == [])


def test_a_guard_that_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    too_long = {"do": "nothing", "note": "x" * RESERVE_BYTES}
    with no_bigger_file_than(RESERVE_BYTES), pytest.raises(LedgerError, match="cannot write the ledger"):
        Guard.open(str(tmp_path), "reap-15", undo=(too_long,), clock=CLOCK)
    assert entries_of(str(tmp_path)) == []
