"""The same events give the same commands in every process: nothing that decides may depend on the hash of a string."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.meta.sources import ROOT


def replayed(hash_seed: str) -> list[str]:
    argv = [sys.executable, "-m", "tests.meta.replay"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_one_trace_gives_the_same_commands_under_two_hash_seeds() -> None:
    one, other = replayed("1"), replayed("2")
    assert one == other
    # The trace is worth replaying only if it gets somewhere: two swaps and the end.
    generations = {line.partition("generation=")[2].partition(",")[0] for line in one if line.startswith("Form(")}
    assert generations == {"1", "2", "3"}
    assert one[-1].startswith("Finish(")
