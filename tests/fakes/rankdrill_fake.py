"""`rankdrill run FILE…` over the fake stack, as a process of its own, for tests to interrupt and kill."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.display import PlainDisplay
from harness.errors import RankdrillError
from harness.run import RunOptions, run_scenarios
from tests.fakes.stack_fake import FakeStack


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    try:
        return run_scenarios(
            options.files,
            RunOptions(out=options.out),
            PlainDisplay(sys.stderr),
            stacks={"reference": FakeStack()},
        )
    except RankdrillError as error:
        sys.stderr.write(f"rankdrill: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
