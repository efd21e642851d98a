"""The folder of one drill while it runs: probe files, the bell, logs. Made after its removal is armed, not before."""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from chaos.ledger_state import Undo
from chaos.undo import kill_tagged, remove_tree, tag_folder
from harness.errors import LaunchError
from harness.launch.base import TAG_VARIABLE
from harness.probe.api import BELL_VARIABLE, DIR_VARIABLE

SEED_VARIABLE = "RANKDRILL_SEED"


def new_run_id() -> str:
    """Return a name for a run that no other run has, today or later."""
    return f"rd-{secrets.token_hex(6)}"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Names of one run's folder and what lies in it. Nothing exists before `make`."""

    run_id: str
    root: Path

    @classmethod
    def name(cls, run_id: str) -> Workspace:
        """Choose the folder's place."""
        return cls(run_id, Path(tempfile.gettempdir()).resolve() / f"rankdrill-{run_id}")

    @property
    def probe_dir(self) -> Path:
        """Where probes write."""
        return self.root / "probe"

    @property
    def bell(self) -> Path:
        """The collector's socket."""
        return self.root / "bell"

    @property
    def logs_dir(self) -> Path:
        """The first part of each process' output, while it runs."""
        return self.root / "logs"

    @property
    def temporary(self) -> Path:
        """Where processes of the run put their own temporary files, so that these go when the run is over."""
        return self.root / "tmp"

    def undo(self) -> tuple[Undo, ...]:
        """How everything of this run is removed: its processes first, then the folder they write to."""
        return (kill_tagged(TAG_VARIABLE, self.run_id), remove_tree(str(self.root), self.run_id))

    def make(self) -> None:
        """Make the folders. Raises LaunchError (disk full, no permission)."""
        try:
            self.root.mkdir(mode=0o700)
            # At once, so that the undo finds either an empty folder or one that says whose it is.
            tag_folder(str(self.root), self.run_id)
            self.probe_dir.mkdir()
            self.logs_dir.mkdir()
            self.temporary.mkdir()
        except OSError as error:
            raise LaunchError(
                f"cannot make the drill's folder {self.root}: {error}; set TMPDIR to another place"
            ) from error

    def environment(self, seed: int) -> dict[str, str]:
        """Return what every process of the run gets on top of the tester's own environment."""
        variables = {
            DIR_VARIABLE: str(self.probe_dir),
            BELL_VARIABLE: str(self.bell),
            SEED_VARIABLE: str(seed),
            "TMPDIR": str(self.temporary),
            # Several ranks share this host's cores: more threads than one a rank would fight each other.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        # What a rank printed before it was killed must not be lost in its own buffer; a user's setting wins.
        variables["PYTHONUNBUFFERED"] = os.environ.get("PYTHONUNBUFFERED", "1")
        variables["PYTHONFAULTHANDLER"] = os.environ.get("PYTHONFAULTHANDLER", "1")
        return variables
