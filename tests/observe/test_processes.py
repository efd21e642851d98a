from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from harness.observe.processes import ExitStatus, exit_status, open_process, read_stat


def waiting_child(end: str) -> subprocess.Popen[bytes]:
    """Return a child that ends by the Python statement `end` when its input is closed."""
    return subprocess.Popen(
        [sys.executable, "-S", "-c", f"import os,sys; sys.stdin.read(); {end}"], stdin=subprocess.PIPE
    )


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("os._exit(0)", ExitStatus(0, None)),
        ("os._exit(7)", ExitStatus(7, None)),
        ("os.kill(os.getpid(), 9)", ExitStatus(None, signal.SIGKILL)),
    ],
)
def test_how_a_process_ended_is_known_before_and_after_its_parent_waited(end: str, expected: ExitStatus) -> None:
    child = waiting_child(end)
    stat = read_stat(child.pid)
    assert stat is not None
    fd = open_process(child.pid, stat.started_ticks)
    assert fd is not None
    assert child.stdin is not None
    child.stdin.close()
    assert select.select([fd], [], [], 20.0)[0]
    assert exit_status(child.pid, stat.started_ticks, fd) == expected
    child.wait()
    after = exit_status(child.pid, stat.started_ticks, fd)
    # Kernels without exit information in pidfds cannot tell any more, and must say so.
    assert after in (expected, ExitStatus(None, None))
    os.close(fd)


def test_a_pid_with_other_start_ticks_is_another_process() -> None:
    stat = read_stat(os.getpid())
    assert stat is not None
    assert open_process(os.getpid(), stat.started_ticks + 1) is None
    fd = open_process(os.getpid(), stat.started_ticks)
    assert fd is not None
    os.close(fd)


def test_a_process_that_is_gone() -> None:
    child = waiting_child("os._exit(0)")
    stat = read_stat(child.pid)
    assert stat is not None
    child.communicate()
    assert read_stat(child.pid) is None
    assert open_process(child.pid, stat.started_ticks) is None


def test_a_command_name_with_spaces_and_parentheses() -> None:
    code = "open('/proc/self/comm','w').write('a) R (b'); print(flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    stat = read_stat(child.pid)
    assert stat is not None
    assert stat.parent == os.getpid()
    child.communicate(b"\n")
