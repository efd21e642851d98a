from __future__ import annotations

from pathlib import Path

import pytest

from harness import answers
from harness.doctor import Probe, examine, machine_probes, sufficient


def broken() -> tuple[bool, str]:
    raise PermissionError(13, "not \x1b allowed")


FINE = Probe("fine", True, "all", lambda: (True, "there"))
BROKEN = Probe("broken", True, "some", broken)
OPTIONAL = Probe("optional", False, "few", lambda: (False, "not there"))


def test_a_probe_that_raises_is_missing_with_its_reason() -> None:
    (finding,) = examine([BROKEN])
    assert not finding.ok
    assert "PermissionError" in finding.detail


def test_only_what_is_required_decides() -> None:
    assert sufficient(examine([FINE, OPTIONAL]))
    assert not sufficient(examine([FINE, BROKEN]))


def test_every_line_says_ok_or_missing_and_what_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert answers.tell_findings(examine([FINE, OPTIONAL])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["fine", "ok", "there", "all", "(always)"]
    assert lines[1].split() == ["optional", "missing", "not", "there", "few"]
    assert answers.tell_findings(examine([BROKEN])) == 4
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out
    assert "broken missing" in captured.err


def test_this_machine_is_examined_without_leaving_anything(tmp_path: Path) -> None:
    state, runs = tmp_path / "state", tmp_path / "runs"
    findings = {finding.name: finding for finding in examine(machine_probes(state, runs))}
    assert findings["python"].ok
    assert findings["pidfd"].ok
    assert findings["clean host"].ok
    assert all(finding.detail and finding.needed_for for finding in findings.values())
    assert list(tmp_path.iterdir()) == []


def test_an_open_ledger_is_shown(tmp_path: Path) -> None:
    (tmp_path / "r1.ledger").write_text("")
    findings = {finding.name: finding for finding in examine(machine_probes(tmp_path, tmp_path))}
    assert not findings["clean host"].ok
    assert "r1.ledger" in findings["clean host"].detail


def test_a_folder_that_cannot_be_made_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    findings = {finding.name: finding for finding in examine(machine_probes(tmp_path, tmp_path / "file" / "runs"))}
    assert not findings["runs folder"].ok
