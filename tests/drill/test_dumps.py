from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from harness.drill import dumps
from tests.fakes.waiting import wait_until

LISTENING = "import faulthandler,signal\nfaulthandler.register(signal.SIGUSR1)\nprint(flush=True)\nsignal.pause()"
DEAF = "import signal\nprint(flush=True)\nsignal.pause()"


def started(code: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stderr)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_only_a_process_that_expects_the_question_is_asked(tmp_path: Path) -> None:
    listening, deaf = started(LISTENING, tmp_path / "a"), started(DEAF, tmp_path / "b")
    try:
        assert dumps.ask_for_stacks([listening.pid, deaf.pid]) == 1
        wait_until(lambda: "most recent call first" in (tmp_path / "a").read_text())
        assert deaf.poll() is None
    finally:
        for process in (listening, deaf):
            process.kill()
            process.communicate()


def test_a_dump_shows_command_state_and_threads(tmp_path: Path) -> None:
    process = started(DEAF, tmp_path / "log")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: "State: T" in dumps.dump([process.pid]))
    text = dumps.dump([process.pid])
    assert f"== process {process.pid}: {sys.executable}" in text
    assert f"-- thread {process.pid} (" in text
    process.kill()
    process.communicate()


def test_a_process_that_is_gone_is_no_error(tmp_path: Path) -> None:
    process = started(DEAF, tmp_path / "log")
    process.kill()
    process.communicate()
    assert dumps.ask_for_stacks([process.pid]) == 0
    assert str(process.pid) in dumps.dump([process.pid])
