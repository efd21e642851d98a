from __future__ import annotations

import os
from pathlib import Path

from harness.launch.logs import CappedLog, LogDrain
from tests.fakes.waiting import wait_until


def test_a_short_log_is_kept_whole(tmp_path: Path) -> None:
    log = CappedLog(tmp_path / "log", head_bytes=8, tail_bytes=8)
    log.feed(b"hello ")
    log.feed(b"world\n")
    assert log.content() == b"hello world\n"
    assert (tmp_path / "log").read_bytes() == b"hello wo"
    log.close()


def test_a_flood_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    log = CappedLog(tmp_path / "log", head_bytes=5, tail_bytes=5)
    log.feed(b"first")
    for _ in range(1000):
        log.feed(b"noise")
    log.feed(b"last!")
    assert log.content() == b"first\n[rankdrill: 5000 bytes left out]\nlast!"
    assert (tmp_path / "log").read_bytes() == b"first"
    log.close()


def test_the_tail_is_cut_to_its_size_in_any_portion() -> None:
    log = CappedLog(None, head_bytes=0, tail_bytes=10)
    log.feed(b"0123456789abcde")
    assert log.content() == b"\n[rankdrill: 5 bytes left out]\n56789abcde"
    log.feed(b"XY")
    assert log.content() == b"\n[rankdrill: 7 bytes left out]\n789abcdeXY"


def test_a_full_disk_costs_only_the_copy_on_disk() -> None:
    log = CappedLog(Path("/dev/full"))
    log.feed(b"text")
    log.feed(b" and more")
    assert log.content() == b"text and more"
    log.close()


def test_the_drain_empties_many_pipes_and_ends_with_open_writers() -> None:
    drain = LogDrain()
    logs = [CappedLog(None) for _ in range(5)]
    ends = [drain.pipe(log) for log in logs]
    for number, fd in enumerate(ends):
        os.write(fd, b"%d" % number)
    wait_until(lambda: all(log.content() for log in logs))
    os.close(ends[0])
    os.write(ends[1], b" last words")
    drain.stop()
    drain.stop()
    assert [log.content() for log in logs] == [b"0", b"1 last words", b"2", b"3", b"4"]
    for fd in ends[1:]:
        os.close(fd)
