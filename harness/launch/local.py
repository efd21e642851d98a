"""The launcher for this host: each process in its own session, the run's tag in its environment, output in capped logs.

The tag is how a run's processes are found, whoever started them: /proc/PID/environ shows what a process was started
with, and children inherit it. While a launcher is open the tester adopts orphans of its run, so that none stays a
zombie when the process that should have waited for it is dead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harness.clock import Clock
from harness.errors import LaunchError
from harness.launch.base import TAG_VARIABLE, ProcessSpec
from harness.launch.logs import CappedLog, LogDrain
from harness.observe.processes import ExitStatus, read_stat

_KILL_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


class LocalProcess:
    """A process on this host; a `Running`."""

    def __init__(self, spec: ProcessSpec, process: subprocess.Popen[bytes], log: CappedLog) -> None:
        self.spec = spec
        self.pid = process.pid
        self._process = process
        self._log = log
        stat = read_stat(process.pid)
        # Nobody else waits for our child, so it is there, dead or alive.
        assert stat is not None
        self.started_ticks = stat.started_ticks

    def status(self) -> ExitStatus | None:
        """How it ended, or None while it lives."""
        code = self._process.poll()
        if code is None:
            return None
        return ExitStatus(code, None) if code >= 0 else ExitStatus(None, -code)

    def terminate(self) -> None:
        """Send TERM, unless it has ended."""
        # Safe by pid: nobody but this object reaps the child, so the pid cannot be another's.
        self._process.send_signal(signal.SIGTERM)

    def log_tail(self, lines: int) -> str:
        """The last lines of its output."""
        return "\n".join(self._log.content().decode(errors="replace").splitlines()[-lines:])

    def log(self) -> bytes:
        """Its capped output."""
        return self._log.content()


class LocalLauncher:
    """Starts the processes of one run on this host."""

    def __init__(self, run_id: str, logs_dir: Path, clock: Clock) -> None:
        self._run_id = run_id
        self._logs_dir = logs_dir
        self._clock = clock
        self._started: list[LocalProcess] = []
        self._tag = f"{TAG_VARIABLE}={run_id}".encode()
        self._drain = LogDrain()
        # Pid -> start ticks of everything of this run that was ever found, for what it leaves when it dies.
        self._found: dict[int, int] = {}
        self._was_subreaper = _subreaper()
        _set_subreaper(True)

    def start(self, spec: ProcessSpec) -> LocalProcess:
        """Start one process. Raises LaunchError when it cannot be started."""
        environment = {**os.environ, **spec.env, TAG_VARIABLE: self._run_id}
        try:
            log = CappedLog(self._logs_dir / f"{spec.name}.log")
        except OSError as error:
            raise LaunchError(f"cannot write the log of {spec.name}: {error}") from error
        output = self._drain.pipe(log)
        try:
            process = subprocess.Popen(
                spec.argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Its own session: Ctrl-C in the tester's terminal is for the tester, which then stops its processes.
                start_new_session=True,
            )
        except OSError as error:
            raise LaunchError(f"cannot start {spec.name} ({' '.join(spec.argv)}): {error}") from error
        finally:
            os.close(output)
        started = LocalProcess(spec, process, log)
        self._started.append(started)
        return started

    def running(self) -> tuple[LocalProcess, ...]:
        """All processes that were started, in order of their start."""
        return tuple(self._started)

    def tagged(self) -> tuple[int, ...]:
        """The pids of all living processes of this run."""
        pids = tuple(pid for pid in _pids() if self._is_ours(pid))
        for pid in pids:
            if pid not in self._found and (stat := read_stat(pid)) is not None:
                self._found[pid] = stat.started_ticks
        return pids

    def stop_all(self, grace_s: float) -> None:
        """TERM what was started, and after `grace_s` KILL all that carries the run's tag. Never raises."""
        self.tagged()
        for process in reversed(self._started):
            process.terminate()
        self._wait_until_gone(grace_s)
        deadline_s = self._clock.now_s() + _KILL_WITHIN_S
        # Until none is found: a process may have started another between the listing and its own end.
        while (pids := self.tagged()) and self._clock.now_s() < deadline_s:
            for pid in pids:
                self._kill(pid)
            self._wait_until_gone(_LOOK_EVERY_S * 5)
        while self._reap() and self._clock.now_s() < deadline_s:
            self._clock.sleep(_LOOK_EVERY_S)

    def leftovers(self) -> tuple[str, ...]:
        """Describe every living process that still carries the run's tag."""
        found = []
        for pid in self.tagged():
            stat = read_stat(pid)
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"process {pid} (state {stat.state if stat else '?'}): {command.strip()[:200]}")
        return tuple(found)

    def logs(self) -> Mapping[str, bytes]:
        """The capped output of each process by name."""
        return {process.spec.name: process.log() for process in self._started}

    def close(self) -> None:
        """Stop draining logs and adopting orphans; call after `stop_all`."""
        self._reap()
        self._drain.stop()
        _set_subreaper(self._was_subreaper)

    def _is_ours(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return self._tag in file.read().split(b"\0")
        except OSError:
            # Gone meanwhile, or another user's: a run's processes are always its own user's.
            return False

    def _kill(self, pid: int) -> None:
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return
        try:
            # Looked at again through the descriptor's process, since the pid may be another's by now.
            if self._is_ours(pid):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        except OSError:
            pass
        finally:
            os.close(fd)

    def _wait_until_gone(self, within_s: float) -> None:
        deadline_s = self._clock.now_s() + within_s
        while self._clock.now_s() < deadline_s:
            self._reap()
            if not self.tagged():
                return
            self._clock.sleep(_LOOK_EVERY_S)

    def _reap(self) -> bool:
        """Wait for our dead: those we started, and orphans that became ours. True while one of ours is still dying."""
        for process in self._started:
            process.status()
        me, own = os.getpid(), {process.pid for process in self._started}
        dying = False
        for pid in _pids():
            stat = read_stat(pid)
            if pid in own or stat is None or stat.parent != me:
                continue
            if self._found.get(pid) != stat.started_ticks and stat.session not in own:
                continue
            try:
                dying = os.waitpid(pid, os.WNOHANG) == (0, 0) or dying
            except ChildProcessError:
                continue
        return dying


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


_libc = ctypes.CDLL(None, use_errno=True)


def _subreaper() -> bool:
    answer = ctypes.c_int(0)
    _libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value)


def _set_subreaper(on: bool) -> None:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(int(on)), 0, 0, 0)
