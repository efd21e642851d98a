from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from chaos.undo import TAG_PREFIX
from harness.drill.workspace import Workspace, new_run_id
from harness.errors import LaunchError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_nothing_exists_before_it_is_made(place: Path) -> None:
    workspace = Workspace.name(new_run_id())
    assert os.listdir(place) == []
    workspace.make()
    assert os.listdir(place) == [f"rankdrill-{workspace.run_id}"]
    assert f"{TAG_PREFIX}{workspace.run_id}" in os.listdir(workspace.root)
    assert workspace.root.stat().st_mode & 0o777 == 0o700


def test_everything_of_the_run_lies_in_its_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONFAULTHANDLER", raising=False)
    monkeypatch.setenv("PYTHONUNBUFFERED", "0")
    workspace = Workspace.name(new_run_id())
    workspace.make()
    environment = workspace.environment(seed=3)
    for name in ("RANKDRILL_PROBE_DIR", "TMPDIR"):
        assert Path(environment[name]).is_dir()
        assert Path(environment[name]).is_relative_to(workspace.root)
    assert Path(environment["RANKDRILL_BELL"]).parent == workspace.root
    assert environment["RANKDRILL_SEED"] == "3"
    assert environment["OMP_NUM_THREADS"] == environment["OPENBLAS_NUM_THREADS"] == "1"
    # A user's own setting wins.
    assert (environment["PYTHONUNBUFFERED"], environment["PYTHONFAULTHANDLER"]) == ("0", "1")


def test_the_undo_ends_processes_before_it_removes_what_they_write_to(place: Path) -> None:
    workspace = Workspace.name("rd-x")
    assert [undo["do"] for undo in workspace.undo()] == ["kill_tagged", "remove_tree"]


def test_runs_have_different_names() -> None:
    assert len({new_run_id() for _ in range(100)}) == 100


def test_a_place_without_room_is_a_launch_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/self")
    with pytest.raises(LaunchError, match="set TMPDIR to another place"):
        Workspace.name("rd-x").make()
