from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.drill import reference as references
from harness.judge.plan import Reference
from harness.observe.observation import MemberId, Observation, StepDone, WeightsDigest
from harness.observe.timeline import Timeline
from harness.scenario import Scenario, load
from tests.fakes.scenario_fake import NOOP, write_scenario
from tests.fakes.stack_fake import FakeStack

REFERENCE = Reference(weights="ab", samples=((1, 2), (3, 4)), losses=(0.5, 0.25))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rankdrill" / "references"


def test_what_is_written_is_read_and_nothing_else_lies_there(cache: Path) -> None:
    assert references.read("key") is None
    references.write("key", REFERENCE)
    assert references.read("key") == REFERENCE
    assert [path.name for path in cache.iterdir()] == ["key.json"]


def test_a_file_that_cannot_be_read_is_none_and_is_replaced(cache: Path) -> None:
    cache.mkdir(parents=True)
    for broken in ("", "{", "[]", '{"weights": "ab"}', '{"weights": "ab", "samples": [1], "losses": []}'):
        (cache / "key.json").write_text(broken)
        assert references.read("key") is None
    references.write("key", REFERENCE)
    assert references.read("key") == REFERENCE


def test_file_systems_without_nameless_files(cache: Path) -> None:
    cache.mkdir(parents=True)
    references.publish_by_name(cache, "key.json", b"old and longer than the new one")
    references.publish_by_name(cache, "key.json", b"new")
    assert (cache / "key.json").read_bytes() == b"new"
    assert [path.name for path in cache.iterdir()] == ["key.json"]


def test_a_cache_that_cannot_be_written_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/self")
    references.write("key", REFERENCE)
    assert references.read("key") is None


def scenario(folder: Path, **fields: Any) -> Scenario:
    return load(write_scenario(folder, **fields))


def test_the_key_changes_with_what_may_change_the_result(tmp_path: Path) -> None:
    stack = FakeStack()
    base = references.key_of(scenario(tmp_path), stack, 1)
    assert references.key_of(scenario(tmp_path), stack, 1) == base
    others = [
        references.key_of(scenario(tmp_path), stack, 2),
        references.key_of(scenario(tmp_path, workload={"steps": 61}), stack, 1),
        references.key_of(scenario(tmp_path, workload={"ranks": 2}), stack, 1),
        references.key_of(scenario(tmp_path, workload={"args": {"salt": "x"}}), stack, 1),
        references.key_of(scenario(tmp_path), FakeStack(name="other"), 1),
    ]
    assert len({base, *others}) == 6
    # Neither faults nor limits touch an unfaulted run.
    assert references.key_of(scenario(tmp_path, faults=(NOOP,), slo={"lost_steps": {"max": 1}}), stack, 1) == base


def test_the_key_changes_with_the_program_and_its_neighbours(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import helper\n")
    (tmp_path / "helper.py").write_text("x = 1\n")
    drill = scenario(tmp_path, workload={"program": str(program)})
    before = references.key_of(drill, FakeStack(), 1)
    (tmp_path / "helper.py").write_text("x = 2\n")
    assert references.key_of(drill, FakeStack(), 1) != before


MEMBERS = (MemberId("n0", 1, 1), MemberId("n0", 2, 2))


def run_of(*, digests: tuple[str, ...] = ("ab", "ab"), steps: int = 2, loss: float | None = 0.5) -> Timeline:
    seen: list[Observation] = []
    for step in range(1, steps + 1):
        for rank, member in enumerate(MEMBERS):
            samples = (step * 10 + 1 - rank,)
            seen.append(StepDone(float(step), None, member, rank, 2, 0, step, samples, loss))
    seen += [WeightsDigest(9.0, MEMBERS[rank], rank, steps, digest) for rank, digest in enumerate(digests)]
    return Timeline(seen)


def test_a_reference_is_read_from_an_unfaulted_run() -> None:
    found = references.reference_of(run_of(), world=2, steps=2)
    assert found == Reference(weights="ab", samples=((10, 11), (20, 21)), losses=(0.5, 0.5))


def test_a_program_without_losses_has_a_reference_without_losses() -> None:
    found = references.reference_of(run_of(loss=None), world=2, steps=2)
    assert found is not None
    assert found.losses == ()


@pytest.mark.parametrize(
    "timeline", [run_of(digests=("ab", "cd")), run_of(digests=("ab",)), run_of(digests=()), run_of(steps=1)]
)
def test_no_reference_where_ranks_disagree_or_records_are_missing(timeline: Timeline) -> None:
    assert references.reference_of(timeline, world=2, steps=2) is None
