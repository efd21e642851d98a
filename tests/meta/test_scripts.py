"""The scripts that people and machines call first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.meta.sources import ROOT, shell_scripts

FIRST_COMMANDS = ["bash ci/quickstart", "bash ci/test"]


@pytest.mark.parametrize("script", shell_scripts(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_bash_can_read_it(script: Path) -> None:
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert os.access(script, os.X_OK), f"{script} is not executable"


@pytest.mark.parametrize("script", shell_scripts(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_it_stops_at_errors(script: Path) -> None:
    assert re.search(r"^set -e?uo pipefail$", script.read_text(), flags=re.MULTILINE)


def test_shellcheck_has_no_complaint() -> None:
    """ci/test installs shellcheck where it may; elsewhere `bash -n` above must do."""
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        assert os.geteuid() != 0 or shutil.which("apt-get") is None, (
            "run this by `bash ci/test`, which installs shellcheck"
        )
        return
    done = subprocess.run([shellcheck, *shell_scripts()], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


def test_all_the_documented_scripts_exist() -> None:
    expected = {"setup", "quickstart", "check", "test", "bench"}
    assert expected <= {path.name for path in shell_scripts()}


def test_continuous_integration_runs_what_the_readme_says() -> None:
    assert "bash ci/test" in (ROOT / ".ci/run").read_text()


def test_readme_opens_with_the_two_commands() -> None:
    blocks = re.findall(r"^```\w*\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    commands = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    assert commands[:2] == FIRST_COMMANDS
