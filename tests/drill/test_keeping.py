from __future__ import annotations

import datetime as dt
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.drill.keeping import LOGS_CAP_BYTES, Keeper
from harness.errors import StoreError

AT = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A place with too little room: a small file system for root, and for anybody a folder that refuses."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        place.chmod(0o500)
    yield place
    if mounted.returncode == 0:
        subprocess.run(["umount", str(place)], check=True)
    else:
        place.chmod(0o700)


def test_checking_leaves_nothing(here: Path) -> None:
    Keeper(None, "drill", AT).check()
    Keeper(here / "a" / "b", "drill", AT).check()
    assert os.listdir(here) == []


def test_a_full_or_forbidden_place_is_refused_before_the_drill(small_disk: Path) -> None:
    with pytest.raises(StoreError, match="nothing was started; name another folder with --out"):
        Keeper(small_disk / "out", "drill", AT).check()
    assert os.listdir(small_disk) == []


def test_a_disk_that_fills_up_during_the_drill_leaves_nothing_half(small_disk: Path) -> None:
    keeper = Keeper(small_disk / "out", "drill", AT)
    with pytest.raises(StoreError):
        keeper.keep_evidence(1, {"agent": b"x" * (1 << 20)}, "")
    keeper.discard_empty()
    assert os.listdir(small_disk) == []


def test_evidence_lies_beside_the_report_in_a_new_folder(here: Path) -> None:
    assert Keeper(None, "drill", AT).path is None
    keeper = Keeper(None, "drill", AT)
    keeper.keep_evidence(2, {"agent-n0": b"log", "silent": b"", "../x": b"safe"}, "a dump")
    assert keeper.path == Path("runs/drill/20260102T030405Z")
    logs = here / "runs/drill/20260102T030405Z/logs/repeat-2"
    assert {path.name: path.read_text() for path in logs.iterdir()} == {
        "agent-n0.log": "log",
        "x.log": "safe",
        "processes.log": "a dump",
    }


def test_evidence_of_many_repeats_is_capped(here: Path) -> None:
    keeper = Keeper(here / "out", "drill", AT)
    for number in range(1, 6):
        keeper.keep_evidence(number, {"agent": b"x" * (LOGS_CAP_BYTES // 3)}, "")
    assert sorted(os.listdir(here / "out" / "logs")) == ["repeat-1", "repeat-2", "repeat-3"]


def test_a_folder_that_was_there_before_stays(here: Path) -> None:
    (here / "out").mkdir()
    keeper = Keeper(here / "out", "drill", AT)
    keeper.keep_evidence(1, {}, "dump")
    (here / "out" / "logs" / "repeat-1" / "processes.log").unlink()
    keeper.discard_empty()
    assert (here / "out").is_dir()
