from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import MonotonicClock
from harness.errors import LaunchError
from harness.launch.base import ProcessSpec
from harness.launch.local import LocalLauncher
from harness.observe.processes import ExitStatus, read_stat
from tests.fakes.waiting import wait_until


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[LocalLauncher]:
    made = LocalLauncher(f"test-{uuid.uuid4().hex}", tmp_path, MonotonicClock())
    yield made
    made.stop_all(grace_s=0.0)
    made.close()


def python(code: str, name: str = "p", **env: str) -> ProcessSpec:
    return ProcessSpec(name, "n0", (sys.executable, "-S", "-c", code), env)


SLEEPER = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
# A parent that starts a child in another session and then only waits.
PARENT = (
    "import subprocess,sys,signal; c=subprocess.Popen([sys.executable,'-S','-c','import signal; signal.pause()'],"
    "start_new_session={own}); print(c.pid, flush=True); signal.pause()"
)


def test_output_exit_code_and_environment(launcher: LocalLauncher) -> None:
    code = "import os,sys; print(os.environ['X']); print('bad', file=sys.stderr); sys.exit(4)"
    running = launcher.start(python(code, X="1"))
    wait_until(running.status)
    assert running.status() == ExitStatus(4, None)
    wait_until(lambda: "bad" in running.log_tail(5))
    assert sorted(running.log_tail(5).splitlines()) == ["1", "bad"]
    assert launcher.logs() == {"p": running.log()}


def test_a_process_has_a_session_of_its_own_and_the_tag(launcher: LocalLauncher) -> None:
    running = launcher.start(python(SLEEPER))
    stat = read_stat(running.pid)
    assert stat is not None
    assert stat.session == running.pid
    assert stat.started_ticks == running.started_ticks
    wait_until(lambda: launcher.tagged() == (running.pid,))
    assert running.status() is None


def test_stopping_asks_first(launcher: LocalLauncher) -> None:
    polite = launcher.start(python(SLEEPER, "polite"))
    wait_until(lambda: "up" in polite.log_tail(1))
    launcher.stop_all(grace_s=20.0)
    assert polite.status() == ExitStatus(None, signal.SIGTERM)
    assert launcher.leftovers() == ()


def test_stopping_kills_who_will_not_listen(launcher: LocalLauncher) -> None:
    stubborn = launcher.start(python(STUBBORN))
    wait_until(lambda: "up" in stubborn.log_tail(1))
    launcher.stop_all(grace_s=0.05)
    assert stubborn.status() == ExitStatus(None, signal.SIGKILL)
    assert launcher.tagged() == ()


@pytest.mark.parametrize("own", [True, False])
def test_children_are_found_by_the_tag_when_their_parent_is_dead(launcher: LocalLauncher, own: bool) -> None:
    parent = launcher.start(python(PARENT.format(own=own)))
    wait_until(lambda: parent.log_tail(1))
    child = int(parent.log_tail(1))
    os.kill(parent.pid, signal.SIGKILL)
    wait_until(parent.status)
    assert any(f"process {child} " in line for line in launcher.leftovers())
    launcher.stop_all(grace_s=0.0)
    assert launcher.leftovers() == ()
    # Adopted by the tester, it must not stay behind as a zombie either.
    wait_until(lambda: read_stat(child) is None)


def test_an_adopted_orphan_that_ended_by_itself_is_no_zombie(launcher: LocalLauncher) -> None:
    code = "import os; pid=os.fork()\nif pid: print(pid, flush=True)"
    parent = launcher.start(python(code))
    wait_until(parent.status)
    wait_until(lambda: parent.log_tail(1))
    child = int(parent.log_tail(1))
    launcher.stop_all(grace_s=1.0)
    wait_until(lambda: read_stat(child) is None)


def test_a_stopped_process_can_be_stopped(launcher: LocalLauncher) -> None:
    running = launcher.start(python(SLEEPER))
    wait_until(lambda: "up" in running.log_tail(1))
    os.kill(running.pid, signal.SIGSTOP)
    launcher.stop_all(grace_s=0.05)
    assert running.status() is not None


def test_another_run_is_left_alone(launcher: LocalLauncher, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = LocalLauncher(f"test-{uuid.uuid4().hex}", tmp_path / "other", MonotonicClock())
    theirs = other.start(python(SLEEPER))
    mine = launcher.start(python(SLEEPER))
    launcher.stop_all(grace_s=0.0)
    assert mine.status() is not None
    assert theirs.status() is None
    other.stop_all(grace_s=0.0)
    other.close()


def test_a_missing_program_is_a_launch_error(launcher: LocalLauncher) -> None:
    with pytest.raises(LaunchError, match="cannot start ghost"):
        launcher.start(ProcessSpec("ghost", "n0", ("/no/such/program",)))


def test_a_log_flood_is_capped_in_memory_and_on_disk(launcher: LocalLauncher, tmp_path: Path) -> None:
    flood = "for _ in range(100): sys.stdout.write('x' * 1048575 + '\\n')"
    code = f"import sys; print('the first error')\n{flood}\nprint('the end')"
    running = launcher.start(python(code))
    wait_until(running.status)
    wait_until(lambda: running.log().endswith(b"the end\n"))
    assert running.log().startswith(b"the first error\n")
    assert b"bytes left out" in running.log()
    assert len(running.log()) < 1 << 20
    assert (tmp_path / "p.log").stat().st_size < 1 << 20
