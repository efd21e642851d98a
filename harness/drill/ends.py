"""When a run is over, and why.

1. every rank said that it is finished: "finished";
2. the training program raised before any fault: "workload-error", after a moment for the stack's own last words;
3. the stack said that it gives up: "stopped";
4. a process of the stack failed before any fault, or its controller gave up, or all of them ended: "stopped"
   ("workload-error" where its output shows the training program's own traceback before the first step);
5. the horizon, or no step at all for as long as steady state may take: "horizon".

After a fault the training program may raise as a consequence, so then the stack decides (rules 3 to 5).
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.drill.view import RunView
from harness.launch.base import Running
from harness.observe.processes import ExitStatus

LAST_WORDS_S = 0.5
LOG_LINES = 12
QUOTED = 3
_LOG_LINES_SEARCHED = 400


@dataclass(frozen=True, slots=True)
class End:
    """Why a run is over; the words of RunEnded."""

    reason: str
    detail: str = ""


class EndRules:
    """Decides, asked again and again, whether a run is over. Holds what it has to remember between two questions."""

    def __init__(self, view: RunView, program: Path, *, horizon_s: float, first_step_within_s: float) -> None:
        self._view = view
        self._program = program
        self._horizon_s = horizon_s
        self._first_step_within_s = first_step_within_s
        self._last_words_until_s: float | None = None

    def check(self, now_s: float, started_s: float, processes: Sequence[Running], *, all_started: bool) -> End | None:
        """Return why the run is over, or None. `all_started`: no stage is still to come."""
        view = self._view
        if view.finished():
            return End("finished")
        found = self._workload() or self._stack(processes, all_started=all_started)
        if found is None:
            return self._too_late(now_s - started_s, processes)
        # What was found first may be a consequence: a record of the cause may still be on its way.
        if self._last_words_until_s is None:
            self._last_words_until_s = now_s + LAST_WORDS_S
        return found if now_s >= self._last_words_until_s else None

    def _too_late(self, elapsed_s: float, processes: Sequence[Running]) -> End | None:
        if elapsed_s >= self._horizon_s:
            return End("horizon", f"the training was not complete {self._horizon_s:g} s after its start")
        if elapsed_s < self._first_step_within_s or self._view.any_step() or self._view.injected:
            return None
        said = "".join(f"\n{process.spec.name}{_tail(process)}" for process in processes[:QUOTED])
        return End("horizon", f"no step was completed {self._first_step_within_s:g} s after the start{said}")

    def _workload(self) -> End | None:
        raised = self._view.raised
        if raised is None or self._view.injected:
            return None
        where = "" if raised.step is None else f" at step {raised.step}"
        who = "" if raised.rank is None else f" on rank {raised.rank}"
        return End(
            "workload-error", f"the training program raised {raised.error}{where}{who}\n{raised.traceback}".rstrip()
        )

    def _stack(self, processes: Sequence[Running], *, all_started: bool) -> End | None:
        ended = [(process, status) for process in processes if (status := process.status()) is not None]
        failed = [(process, status) for process, status in ended if status != ExitStatus(0, None)]
        stopped = self._view.stopped
        over = all_started and len(ended) == len(processes)
        gave_up = [
            process for process, status in failed if process.spec.role == "controller" and status.code is not None
        ]
        if stopped is None and not over and not gave_up and not (failed and not self._view.injected):
            return None
        if stopped is not None:
            return self._blame(End("stopped", stopped.reason), [process for process, _ in failed])
        if not failed:
            return End("stopped", "all processes of the stack ended with code 0 before the training was complete")
        said = "\n".join(f"{process.spec.name} {_how(status)}{_tail(process)}" for process, status in failed[:QUOTED])
        return self._blame(End("stopped", said), [process for process, _ in failed])

    def _blame(self, end: End, failed: Sequence[Running]) -> End:
        """Say whose fault it is where a run never made a step: the training program's, if it left its traceback."""
        if self._view.any_step() or self._view.injected:
            return end
        for process in failed:
            lines = process.log_tail(_LOG_LINES_SEARCHED)
            if "Traceback (most recent call last)" in lines and str(self._program) in lines:
                tail = "" if "Traceback" in end.detail else _tail(process)
                return End("workload-error", f"the training program failed before its first step: {end.detail}{tail}")
        return end


def _how(status: ExitStatus) -> str:
    if status.signal is not None:
        return f"was ended by signal {status.signal} ({signal.strsignal(status.signal)})"
    return f"ended with code {status.code}"


def _tail(process: Running) -> str:
    tail = process.log_tail(LOG_LINES).strip()
    return f"; its last lines:\n{tail}" if tail else " and wrote nothing"
