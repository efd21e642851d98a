from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos import processes, undo
from chaos.clock import SystemClock
from chaos.ledger import Ledger
from chaos.ledger_state import Undo
from chaos.leftovers import HealReport, heal_left_overs
from tests.fakes.chaos_fakes import entries_of, states_of, victim, wait_stopped

CLOCK = SystemClock()


@contextmanager
def dead_owner() -> Iterator[dict[str, object]]:
    with victim() as gone:
        pass
    yield {"pid": gone.pid, "started_ticks": gone.started_ticks}


def leave(folder: Path, run: str, steps: list[Undo], **owner: object) -> Path:
    """Leave a ledger behind, as if its owner were another."""
    ledger = Ledger.create(str(folder), run, CLOCK)
    ledger.arm("run", steps, 5.0, renewed=True)
    ledger.release()
    path = Path(ledger.path)
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(first), **owner}).encode() + b"\n" + rest)
    return path


def heal(folder: Path) -> list[HealReport]:
    return heal_left_overs(str(folder), CLOCK)


def test_nothing_left(tmp_path: Path) -> None:
    assert heal(tmp_path) == []
    assert heal(tmp_path / "never made") == []


def test_a_dead_testers_run_is_undone_and_forgotten(tmp_path: Path) -> None:
    with victim() as held, dead_owner() as owner:
        os.kill(held.pid, signal.SIGSTOP)
        wait_stopped(held)
        leave(tmp_path, "r1", [undo.send_signal(held.pid, held.started_ticks, "CONT")], **owner)
        (report,) = heal(tmp_path)
        assert str(report) == "run r1: undone: run"
        assert not processes.is_stopped(states_of(held))
    assert entries_of(str(tmp_path)) == []


@pytest.mark.parametrize(
    "owner",
    [
        {},
        {"pid": 1, "started_ticks": 1, "host": "another machine/abc"},
        {"pid": 1, "started_ticks": 1, "host": "another machine/abc", "boot": "another"},
        {"pid": 1, "started_ticks": 1, "pidns": "pid:[1]"},
    ],
    ids=["alive", "another host", "another host with another boot", "another container"],
)
def test_runs_of_living_testers_and_of_other_machines_are_left_alone(tmp_path: Path, owner: dict[str, object]) -> None:
    path = leave(tmp_path, "r1", [undo.remove_tree(str(tmp_path / "work"), "r1")], **owner)
    assert heal(tmp_path) == []
    assert path.exists()


def test_after_a_reboot_folders_are_removed_and_pids_are_left_alone(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    undo.tag_folder(str(work), "r1")
    with victim() as held:
        os.kill(held.pid, signal.SIGSTOP)
        wait_stopped(held)
        steps = [undo.send_signal(held.pid, held.started_ticks, "CONT"), undo.remove_tree(str(work), "r1")]
        # This process' own pid and start time: before the boot they were somebody else's.
        leave(tmp_path / "state", "r1", steps, boot="another")
        (report,) = heal(tmp_path / "state")
        assert report.clean
        assert processes.is_stopped(states_of(held))
    assert not work.exists()


def test_what_cannot_be_undone_stays_and_is_named_each_time(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "precious").mkdir(parents=True)
    with dead_owner() as owner:
        path = leave(tmp_path / "state", "r1", [undo.remove_tree(str(work), "r1")], **owner)
    for _ in range(2):
        (report,) = heal(tmp_path / "state")
        assert not report.clean
        assert "not ours: remove it by hand" in str(report)
        assert path.exists()
    (work / "precious").rmdir()
    (report,) = heal(tmp_path / "state")
    assert report.clean
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"garbage\n", b'{"is":"open"}\n'])
def test_a_file_that_is_no_ledger_makes_the_host_dirty_and_says_which(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r1.ledger").write_bytes(content)
    (report,) = heal(tmp_path)
    assert not report.clean
    assert str(tmp_path / "r1.ledger") in str(report)
    assert "by hand" in str(report)


def test_one_bad_ledger_does_not_keep_the_others_from_being_healed(tmp_path: Path) -> None:
    (tmp_path / "a.ledger").write_bytes(b"garbage\n")
    with dead_owner() as owner:
        leave(tmp_path, "b", [undo.nothing()], **owner)
    assert [report.clean for report in heal(tmp_path)] == [False, True]


def test_a_ledger_that_was_never_finished_is_removed_unless_somebody_is_at_it(tmp_path: Path) -> None:
    (tmp_path / "a.ledger.new").write_bytes(b"")
    (tmp_path / "notes.txt").write_bytes(b"")
    with (tmp_path / "b.ledger.new").open("wb") as made_now:
        fcntl.flock(made_now, fcntl.LOCK_EX)
        assert heal(tmp_path) == []
        assert entries_of(str(tmp_path)) == ["b.ledger.new", "notes.txt"]
