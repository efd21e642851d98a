from __future__ import annotations

import datetime as dt
import errno
import os
from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.store import RunFolder, create, open_folder, safe_name

AT = dt.datetime(2025, 6, 1, 14, 0, 0, tzinfo=dt.timezone(dt.timedelta(hours=2)))


class FullDisk:
    """Takes `room` bytes, then has none left."""

    def __init__(self, room: int, code: int = errno.ENOSPC) -> None:
        self.room = room
        self.code = code

    def __call__(self, descriptor: int, data: memoryview) -> int:
        if self.room == 0:
            raise OSError(self.code, os.strerror(self.code))
        taken = os.write(descriptor, data[: self.room])
        self.room -= taken
        return taken


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_run_folder_is_named_by_scenario_and_utc_time(tmp_path: Path) -> None:
    assert create(tmp_path, "kill-one-rank", AT).path == tmp_path / "kill-one-rank" / "20250601T120000Z"


def test_a_second_run_within_the_same_second_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    made = [create(tmp_path, "kill", AT).path.name for _ in range(3)]
    assert made == ["20250601T120000Z", "20250601T120000Z-2", "20250601T120000Z-3"]


def test_a_file_is_written_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    path = RunFolder(tmp_path).write("report.json", "{}\n")
    assert path.read_text() == "{}\n"
    assert names(tmp_path) == ["report.json"]


def test_a_file_is_replaced(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("report.json", "old and long")
    folder.write("report.json", b"new")
    assert (tmp_path / "report.json").read_bytes() == b"new"


def test_folders_within_are_made(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).write("logs/repeat-1/rank.log", "x").read_text() == "x"


def test_short_writes_are_continued(tmp_path: Path) -> None:
    def one_byte(descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, data[:1])

    assert RunFolder(tmp_path, one_byte).write("a", "hello").read_text() == "hello"


def test_a_full_disk_says_so_and_leaves_the_old_file(tmp_path: Path) -> None:
    RunFolder(tmp_path).write("report.json", "old")
    with pytest.raises(StoreError, match=r"report\.json cannot be written: the disk is full; free some space"):
        RunFolder(tmp_path, FullDisk(room=3)).write("report.json", "new and long")
    assert names(tmp_path) == ["report.json"]
    assert (tmp_path / "report.json").read_text() == "old"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.EACCES, "no permission"),
        (errno.EROFS, "read-only"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "ulimit"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_every_cause_comes_with_a_next_step(tmp_path: Path, code: int, words: str) -> None:
    with pytest.raises(StoreError, match=f"{words}.*; .+"):
        RunFolder(tmp_path, FullDisk(0, code)).write("report.json", "x")


def test_the_disk_itself_says_that_it_is_full(tmp_path: Path) -> None:
    """/dev/full refuses every byte, as a full disk does."""
    with Path("/dev/full").open("wb") as full:

        def to_full(descriptor: int, data: memoryview) -> int:
            return os.write(full.fileno(), data)

        with pytest.raises(StoreError, match="the disk is full"):
            RunFolder(tmp_path, to_full).write("report.json", "x")
    assert names(tmp_path) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(descriptor: int, data: memoryview) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RunFolder(tmp_path, interrupted).write("report.json", "x")
    assert names(tmp_path) == []


def test_a_file_in_the_way_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(StoreError, match="a file where a folder should be; remove that file"):
        create(tmp_path / "runs", "kill", AT)
    with pytest.raises(StoreError, match="a file where a folder should be"):
        open_folder(tmp_path / "runs")


def test_a_folder_in_the_way_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(StoreError, match="a folder where the file should be"):
        RunFolder(tmp_path).write("report.json", "x")
    assert names(tmp_path) == ["report.json"]


def test_a_named_folder_is_made_and_used_again(tmp_path: Path) -> None:
    open_folder(tmp_path / "a" / "b").write("x", "1")
    assert open_folder(tmp_path / "a" / "b").path == tmp_path / "a" / "b"


def test_a_symbolic_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".report.json.{os.getpid()}.part").symlink_to(victim)
    with pytest.raises(StoreError):
        RunFolder(tmp_path).write("report.json", "x")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("kill-one-rank", "kill-one-rank"),
        ("../../etc/passwd", "etc-passwd"),
        ("a b\x00c\n", "a-b-c"),
        ("..", "unnamed"),
        ("", "unnamed"),
        (".hidden", "hidden"),
        ("x" * 500, "x" * 100),
    ],
)
def test_names_are_one_visible_path_component(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_text_that_is_no_unicode_is_written_as_an_escape(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).write("a", "x\udc80y").read_text() == "x\\udc80y"
