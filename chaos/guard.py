"""The safety of one run from its first moment: its ledger, the undo of the whole run, both reapers, the heartbeat.

with Guard.open(state_dir(), run_id, undo=(kill_tagged(…), remove_tree(…)), clock=clock) as guard:
    …start processes, run a Conductor on guard.ledger…
guard.report says what was undone and what could not be
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from chaos import reaper
from chaos.clock import Clock
from chaos.errors import LeaseLostError, LedgerError
from chaos.ledger import RUN_ENTRY, Ledger, path_of
from chaos.ledger_state import Undo
from chaos.leftovers import HealReport, heal_ledger

LEASE_S = 5.0
RENEW_S = 1.0
REAPERS_END_S = 5.0


class Guard:
    """While it is open, the death of this process undoes the run: at once, or `lease_s` after it stopped answering."""

    def __init__(self, ledger: Ledger, clock: Clock, lease_s: float) -> None:
        self.ledger = ledger
        self.report: HealReport | None = None
        self._clock = clock
        self._lease_s = lease_s
        self._closing = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, name="rankdrill-heartbeat", daemon=True)

    @classmethod
    def open(cls, state_dir: str, run_id: str, *, undo: Sequence[Undo], clock: Clock, lease_s: float = LEASE_S) -> Self:
        """Record how the whole run is undone, and arm the reapers; only then may anything of the run be started.

        `undo` is performed in its order when the run ends, however it ends. Raises LedgerError, ReaperError.
        """
        starter = reaper.start(path_of(state_dir, run_id))
        try:
            ledger = Ledger.create(state_dir, run_id, clock)
        except BaseException:
            reaper.abandon(starter)
            raise
        guard = cls(ledger, clock, lease_s)
        try:
            ledger.arm(RUN_ENTRY, undo, lease_s, renewed=True)
            guard._heartbeat.start()
            reaper.wait_armed(starter, ledger, clock)
        except BaseException:
            # Ctrl-C included: nothing may stay armed that nobody holds.
            reaper.abandon(starter)
            guard.close()
            raise
        return guard

    def close(self) -> HealReport:
        """Undo what is left, remove the ledger, and see the reapers end. What could not be undone is in the report."""
        if self.report is not None:
            return self.report
        self._closing.set()
        if self._heartbeat.ident is not None:
            self._heartbeat.join()
        try:
            self.report = heal_ledger(self.ledger, self._clock, by="tester")
        except LedgerError as error:
            self.report = HealReport(self.ledger.run_id, self.ledger.path, healed=(), failed=(str(error),))
        if self.report.clean and not reaper.wait_ended(self.ledger, self._clock, REAPERS_END_S):
            failed = (f"a reaper of run {self.ledger.run_id} has not ended {REAPERS_END_S:g} s after the run",)
            self.report = HealReport(self.ledger.run_id, self.ledger.path, self.report.healed, failed)
        self.ledger.release()
        return self.report

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _beat(self) -> None:
        while not self._closing.wait(RENEW_S):
            try:
                self.ledger.renew(self._lease_s)
            except LeaseLostError:
                # The conductor finds out by itself, at its next step.
                return
            except LedgerError:
                # The next beat tries again; if none succeeds, the run is undone, which is the safe side.
                continue
