"""Whole drills with real ranks, through the command line, as a user runs them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
LIMIT_S = 150

pytestmark = pytest.mark.live


@dataclass(frozen=True)
class Outcome:
    """What one `rankdrill run` left."""

    code: int
    output: str
    report: dict[str, Any]
    folder: Path

    @property
    def repeat(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["repeats"][0]
        return found

    @property
    def figures(self) -> dict[str, Any]:
        found: dict[str, Any] = self.repeat["figures"]
        return found


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment of its own: state and cached reference runs are shared by these tests only."""
    base = tmp_path_factory.mktemp("home")
    return {**os.environ, "XDG_STATE_HOME": str(base / "state"), "XDG_CACHE_HOME": str(base / "cache")}


def run(scenario: Path, out: Path, home: dict[str, str], *more: str) -> Outcome:
    """Run one scenario once."""
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", "run", str(scenario), "--repeat", "1", "--out", str(out), *more],
        env=home,
        cwd=out.parent,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    report = out / "report.json"
    content = json.loads(report.read_text()) if report.exists() else {}
    return Outcome(done.returncode, done.stdout + done.stderr, content, out)


def changed(name: str, tmp_path: Path, **changes: Any) -> Path:
    """A shipped scenario with some keys replaced; its program is named by path."""
    content = yaml.safe_load((SCENARIOS / name).read_text())
    content["launch"] = {"on": "local"}
    content["workload"]["program"] = str(SCENARIOS / "workloads" / "gpt.py")
    for key, value in changes.items():
        content[key] = {**content[key], **value} if isinstance(value, dict) else value
    path = tmp_path / name
    # JSON, since this writer's YAML would turn the key `on` into a truth value.
    path.write_text(json.dumps(content))
    return path


def nothing_left(home: dict[str, str]) -> bool:
    """No process of a run, no ledger."""
    ledgers = list(Path(home["XDG_STATE_HOME"]).rglob("*.ledger"))
    tagged = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = environ.read_bytes()
        except OSError:
            continue
        if b"RANKDRILL_RUN=" in content and home["XDG_STATE_HOME"].encode() in content:
            tagged.append(environ)
    return not ledgers and not tagged


def test_a_killed_rank_is_replaced_and_nothing_is_lost(tmp_path: Path, home: dict[str, str]) -> None:
    """And a foreign listener on the port that the controller was to use is left alone."""
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        outcome = run(changed("kill-one-rank.yaml", tmp_path, stack={"port": port}), tmp_path / "out", home)
        with socket.create_connection(("127.0.0.1", port), timeout=5), foreign.accept()[0]:
            pass
    assert outcome.code == 0, outcome.output
    assert outcome.report["verdict"] == "PASS"
    figures = outcome.figures
    assert figures["weights_equal"] is True
    for name in ("lost_steps", "bystanders_restarted", "bystanders_rolled_back", "false_alarms", "wrong_blame"):
        assert figures[name] == 0, name
    assert 0 < figures["detect_s"] < figures["swap_s"] < figures["restore_s"] < figures["first_step_s"]
    fault = outcome.repeat["faults"][0]
    assert fault["kind"] == "kill"
    assert fault["target"] == "rank 2"
    assert fault["proof"]
    assert {path.name for path in outcome.folder.iterdir()} >= {"report.html", "report.md", "report.json", "junit.xml"}
    assert nothing_left(home)


def test_three_deaths_by_three_signals_have_the_same_outcome(tmp_path: Path, home: dict[str, str]) -> None:
    outcome = run(SCENARIOS / "kill-by-any-signal.yaml", tmp_path / "out", home)
    assert outcome.code == 0, outcome.output
    assert [fault["kind"] for fault in outcome.repeat["faults"]] == ["kill"] * 3
    assert outcome.figures["bystanders_restarted"] == 0


def test_a_stopped_rank_goes_on_and_nobody_is_accused(tmp_path: Path, home: dict[str, str]) -> None:
    outcome = run(SCENARIOS / "stop-and-continue.yaml", tmp_path / "out", home)
    assert outcome.code == 0, outcome.output
    fault = outcome.repeat["faults"][0]
    assert fault["healed_at_s"] > fault["effective_at_s"] >= fault["injected_at_s"]


def write_program(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(f"import sys\nsys.path.insert(0, {str(SCENARIOS / 'workloads')!r})\n{body}")
    return path


def test_a_bug_of_the_training_program_is_reported_as_its_own(tmp_path: Path, home: dict[str, str]) -> None:
    body = """
import gpt, gpt_model
sound = gpt_model.Corpus.batch
def batch(self, step, *rest):
    if step == 7:
        raise ValueError("no such batch: 7")
    return sound(self, step, *rest)
gpt_model.Corpus.batch = batch
gpt.main()
"""
    program = write_program(tmp_path, body)
    scenario = changed("kill-one-rank.yaml", tmp_path, workload={"program": str(program), "nodes": 1})
    outcome = run(scenario, tmp_path / "out", home)
    assert outcome.code == 2, outcome.output
    assert outcome.report["verdict"] == "INCONCLUSIVE"
    text = json.dumps(outcome.report)
    assert "no such batch: 7" in text
    assert "program.py" in text, "its traceback is reported"
    assert nothing_left(home)


def test_a_training_program_that_cannot_be_imported_is_reported_at_once(tmp_path: Path, home: dict[str, str]) -> None:
    program = write_program(tmp_path, "import a_module_that_nobody_has\n")
    scenario = changed("kill-one-rank.yaml", tmp_path, workload={"program": str(program), "nodes": 1})
    outcome = run(scenario, tmp_path / "out", home)
    assert outcome.code == 2, outcome.output
    assert "a_module_that_nobody_has" in outcome.output
    assert nothing_left(home)
