from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from chaos.errors import LeaseLostError, LedgerError
from chaos.ledger import RESERVE_BYTES, Ledger, state_dir
from chaos.ledger_state import LedgerState
from chaos.undo import nothing
from tests.fakes.chaos_fakes import FakeClock, entries_of, no_bigger_file_than


def records(path: str) -> list[dict[str, object]]:
    text = Path(path).read_bytes().partition(b"\0")[0]
    return [json.loads(line) for line in text.splitlines()]


def open_names(ledger: Ledger) -> list[str]:
    return [entry.name for entry in ledger.refresh().open_entries()]


def test_a_run_from_open_to_close(tmp_path: Path) -> None:
    clock = FakeClock()
    ledger = Ledger.create(str(tmp_path), "r1", clock)
    ledger.arm("run", [nothing()], 5.0, renewed=True)
    ledger.arm("f0", [{"do": "signal", "pid": 7, "started_ticks": 8, "signal": "CONT"}], 60.0)
    ledger.record_applied("f0")
    clock.now_s += 3
    ledger.renew(5.0)
    ledger.record_healed("f0", "conductor", "runs again")
    written = records(ledger.path)
    assert written[0]["is"] == "open"
    assert (written[0]["run"], written[0]["pid"]) == ("r1", os.getpid())
    assert written[1:] == [
        {"is": "arm", "name": "run", "undo": [{"do": "nothing"}], "until_s": 1105.0, "renewed": True},
        {
            "is": "arm",
            "name": "f0",
            "undo": [{"do": "signal", "pid": 7, "started_ticks": 8, "signal": "CONT"}],
            "until_s": 1160.0,
            "renewed": False,
        },
        {"is": "applied", "name": "f0"},
        {"is": "renew", "until_s": 1108.0},
        {"is": "healed", "name": "f0", "by": "conductor", "detail": "runs again"},
    ]
    with pytest.raises(LedgerError, match="cannot be closed: run"):
        ledger.remove()
    ledger.record_healed("run", "tester", "undone")
    ledger.remove()
    assert entries_of(str(tmp_path)) == []
    assert ledger.gone()
    ledger.release()


def test_what_one_writes_another_reads_and_the_other_way_round(tmp_path: Path) -> None:
    mine = Ledger.create(str(tmp_path), "r1", FakeClock())
    mine.arm("f0", [nothing()], 5.0)
    other = Ledger.open(mine.path, FakeClock())
    assert open_names(other) == ["f0"]
    other.record_healed("f0", "reaper 1", "lease over")
    mine.arm("f1", [nothing()], 5.0)
    assert (open_names(mine), open_names(other)) == (["f1"], ["f1"])
    assert mine.state.entries["f0"].healed_by == "reaper 1"


def test_only_one_holds_the_lock(tmp_path: Path) -> None:
    mine = Ledger.create(str(tmp_path), "r1", FakeClock())
    other = Ledger.open(mine.path, FakeClock())
    with mine.locked():
        assert not other.try_lock()
    assert other.try_lock()
    other.unlock()


def test_what_a_crash_cut_short_does_not_count_and_is_written_over(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "r1", FakeClock())
    ledger.arm("f0", [nothing()], 5.0)
    end = len(Path(ledger.path).read_bytes().partition(b"\0")[0])
    with Path(ledger.path).open("r+b") as file:
        file.seek(end)
        file.write(b'{"is":"arm","name":"f1","undo":[{"do":"nothing"}],"until_s":' + b"1" * 400)
    other = Ledger.open(ledger.path, FakeClock())
    assert open_names(other) == ["f0"]
    other.record_healed("f0", "heal", "undone")
    assert [record["is"] for record in records(ledger.path)] == ["open", "arm", "healed"]
    assert not Ledger.open(ledger.path, FakeClock()).state.damaged


def test_a_record_that_cannot_be_read_keeps_the_ledger_from_being_closed(tmp_path: Path) -> None:
    state = LedgerState()
    for line in (b'{"is":"arm","name":"f0","undo":[],"until_s":5,"renewed":false}', b"\x00garbage", b'{"is":"x"}'):
        state.feed(line)
    assert [entry.name for entry in state.open_entries()] == ["f0"]
    assert "unknown record 'x'" in state.damaged


def test_records_longer_than_the_reserve(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "r1", FakeClock())
    undo = [{"do": "signal", "pid": pid, "started_ticks": 1, "signal": "CONT"} for pid in range(3000)]
    ledger.arm("f0", undo, 5.0)
    ledger.arm("f1", [nothing()], 5.0)
    other = Ledger.open(ledger.path, FakeClock())
    assert open_names(other) == ["f1", "f0"]
    assert len(other.state.entries["f0"].undo) == 3000


def test_a_full_disk_is_an_error_before_anything_is_started(tmp_path: Path) -> None:
    with no_bigger_file_than(1000), pytest.raises(LedgerError, match="nothing was started"):
        Ledger.create(str(tmp_path), "r1", FakeClock())
    assert entries_of(str(tmp_path)) == []


def test_a_disk_that_fills_up_later_refuses_to_arm_but_not_to_heal(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "r1", FakeClock())
    ledger.arm("f0", [nothing()], 5.0)
    with no_bigger_file_than(RESERVE_BYTES):
        with pytest.raises(LedgerError, match="cannot write the ledger"):
            ledger.arm("f1", [{"do": "nothing", "note": "x" * RESERVE_BYTES}], 5.0)
        ledger.record_healed("f0", "conductor", "undone")
    other = Ledger.open(ledger.path, FakeClock())
    assert (open_names(other), list(other.state.entries)) == ([], ["f0"])


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_state_folder_that_cannot_be_written(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LedgerError, match="cannot write the ledger"):
        Ledger.create(str(tmp_path / folder), "r1", FakeClock())


def test_a_run_is_not_created_twice(tmp_path: Path) -> None:
    Ledger.create(str(tmp_path), "r1", FakeClock())
    with pytest.raises(LedgerError, match="a run of this name"):
        Ledger.create(str(tmp_path), "r1", FakeClock())


def test_wrong_order_of_calls(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "r1", FakeClock())
    with pytest.raises(LedgerError, match="'f0' was never armed"):
        ledger.record_applied("f0")
    ledger.arm("f0", [nothing()], 5.0)
    with pytest.raises(LedgerError, match="'f0' is armed already"):
        ledger.arm("f0", [nothing()], 5.0)
    ledger.record_healed("f0", "conductor", "undone")
    ledger.arm("f0", [nothing()], 5.0)
    assert open_names(ledger) == ["f0"]


def test_a_tester_whose_run_was_undone_is_told(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "r1", FakeClock())
    ledger.arm("run", [nothing()], 5.0, renewed=True)
    Ledger.open(ledger.path, FakeClock()).record_healed("run", "reaper 9", "lease over")
    for use in (ledger.check_held, lambda: ledger.renew(5.0), lambda: ledger.arm("f0", [nothing()], 5.0)):
        with pytest.raises(LeaseLostError, match="run r1 was undone by reaper 9"):
            use()


def test_a_tester_whose_ledger_was_removed_is_told(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "r1", FakeClock())
    Path(ledger.path).unlink()
    with pytest.raises(LeaseLostError, match="run r1 was closed by somebody else"):
        ledger.check_held()


def test_what_is_due(tmp_path: Path) -> None:
    clock = FakeClock(0.0)
    ledger = Ledger.create(str(tmp_path), "r1", clock)
    ledger.arm("run", [], 5.0, renewed=True)
    ledger.arm("f0", [], 3.0)
    ledger.arm("f1", [], 60.0)
    clock.now_s = 2.0
    ledger.renew(5.0)

    def due(now_s: float) -> list[str]:
        return [entry.name for entry in ledger.state.due_entries(1000.0 + now_s)]

    assert (due(2.9), due(3.0), due(6.9)) == ([], ["f0"], ["f0"])
    assert due(7.0) == ["f1", "f0", "run"], "a tester that was not heard of holds nothing any more"
    assert ledger.state.next_lease_s() == 1003.0


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"RANKDRILL_STATE_DIR": "/a/b", "XDG_STATE_HOME": "/x"}, "/a/b"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/rankdrill"),
        ({"HOME": "/h"}, "/h/.local/state/rankdrill"),
        ({"RANKDRILL_STATE_DIR": "", "XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/rankdrill"),
    ],
)
def test_where_ledgers_live(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str) -> None:
    for name in ("RANKDRILL_STATE_DIR", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert state_dir() == folder
