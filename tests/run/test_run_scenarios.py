from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CapabilityError, DirtyHostError, ScenarioError, StoreError, UsageError
from harness.run import RunOptions, dry_run, run_scenarios
from harness.scenario import load
from harness.stacks.base import Stack
from tests.fakes.drilling import Places, Told
from tests.fakes.scenario_fake import KILL, NOOP, write_scenario
from tests.fakes.stack_fake import FakeStack

# Too short to be judged, where the verdict is not at stake.
SHORT = {"steps": 20}
EARLY = ({"kill": {"rank": 1}, "when": {"step": 10}},)


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    made = Places(tmp_path)
    made.use(monkeypatch)
    monkeypatch.chdir(tmp_path)
    yield made
    assert made.left() == []


def drill(
    *paths: Path, options: RunOptions | None = None, stack: Stack | None = None
) -> tuple[int, Mapping[str, Any], Told]:
    """Run scenarios over the fake stack; return exit code, the last report and what was told."""
    told = Told()
    stacks = {"reference": stack or FakeStack()}
    code = run_scenarios(paths, options or RunOptions(), told, stacks=stacks, stream=io.StringIO())
    folder = told.ends[-1][2]
    assert folder is not None
    return code, json.loads((folder / "report.json").read_text()), told


def test_a_stack_that_recovers_passes_and_its_report_is_kept(tmp_path: Path) -> None:
    code, report, told = drill(write_scenario(tmp_path))
    assert (code, report["verdict"]) == (0, "PASS"), report["reasons"]
    (repeat,) = report["repeats"]
    assert repeat["figures"]["weights_equal"] == 1
    assert repeat["figures"]["lost_steps"] == 0
    assert repeat["faults"][0]["kind"] == "kill"
    assert report["replay"].endswith("fake-drill.yaml --seed 0 --repeat 1")
    folder = told.ends[-1][2]
    assert folder is not None
    assert folder.parent == Path("runs/fake-drill")
    assert {"report.json", "report.html", "report.md", "junit.xml"} == {path.name for path in folder.iterdir()}


def test_the_reference_run_is_made_once(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, faults=EARLY, workload=SHORT)
    _, _, first = drill(path)
    _, _, second = drill(path)
    assert first.events.count("the run is over: finished") == 2
    assert second.events.count("the run is over: finished") == 1


def test_other_arguments_need_another_reference(tmp_path: Path) -> None:
    drill(write_scenario(tmp_path, faults=EARLY, workload=SHORT))
    _, _, told = drill(write_scenario(tmp_path, faults=EARLY, workload={**SHORT, "args": {"salt": "other"}}))
    assert told.events.count("the run is over: finished") == 2


def test_repeats_and_seed_may_be_chosen(tmp_path: Path) -> None:
    options = RunOptions(repeat=2, seed=5, out=tmp_path / "here")
    _, report, told = drill(write_scenario(tmp_path, faults=EARLY, workload=SHORT), options=options)
    assert [repeat["seed"] for repeat in report["repeats"]] == [5, 5]
    assert report["replay"].endswith("--seed 5 --repeat 2")
    assert told.ends[-1][2] == tmp_path / "here"


def test_several_scenarios_get_a_folder_each_and_the_worst_code(tmp_path: Path) -> None:
    good = write_scenario(tmp_path, name="good")
    bad = write_scenario(tmp_path, name="bad", slo={"redone_steps": {"min": 3}})
    code, _, told = drill(bad, good, options=RunOptions(out=tmp_path / "here"))
    assert code == 1
    assert [(verdict, folder) for verdict, _, folder in told.ends] == [
        ("FAIL", tmp_path / "here" / "bad"),
        ("PASS", tmp_path / "here" / "good"),
    ]


def test_a_failed_drill_keeps_its_logs(tmp_path: Path) -> None:
    stack = FakeStack(controller_options=("--pause-forever",), agent_options=())
    path = write_scenario(tmp_path, workload={"spares": 0}, slo={"first_step_s": {"max": 1}}, horizon_s=3.0)
    code, report, told = drill(path, stack=stack)
    assert (code, report["verdict"]) == (1, "FAIL")
    assert report["repeats"][0]["figures"]["first_step_s"] == "inf"
    folder = told.ends[-1][2]
    assert folder is not None
    assert "State:" in (folder / "logs" / "repeat-1" / "processes.log").read_text()


def test_a_program_that_raises_is_inconclusive_with_its_traceback_and_not_repeated(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, workload={"args": {"raise-at-step": 7}}, repeat=3)
    code, report, _ = drill(path)
    assert (code, report["verdict"], len(report["repeats"])) == (2, "INCONCLUSIVE", 1)
    said = "\n".join(report["reasons"])
    assert "ValueError: bad value at step 7" in said
    assert "Traceback" in said


def test_a_program_that_cannot_be_imported_is_inconclusive(tmp_path: Path) -> None:
    code, report, _ = drill(write_scenario(tmp_path, workload={"args": {"raise-at-import": 1}}))
    assert code == 2
    assert "the training program cannot be imported" in "\n".join(report["reasons"])


def test_a_stack_that_dies_wordlessly_is_quoted(tmp_path: Path) -> None:
    code, report, _ = drill(write_scenario(tmp_path, workload={"args": {"exit-at-step": 5}}))
    assert code == 2
    assert "giving up without a word to the tester" in "\n".join(report["reasons"])


def test_a_silent_stack_does_not_pass(tmp_path: Path) -> None:
    stack = FakeStack(controller_options=("--silent",))
    code, report, _ = drill(write_scenario(tmp_path, slo={"detect_s": {"max": 1}}), stack=stack)
    assert (code, report["verdict"]) == (1, "FAIL")


def test_files_are_read_before_anything_is_started(tmp_path: Path) -> None:
    good = write_scenario(tmp_path)
    bad = tmp_path / "bad.yaml"
    bad.write_text("scenario: bad\n")
    told = Told()
    with pytest.raises(ScenarioError):
        run_scenarios([good, bad], RunOptions(), told, stacks={"reference": FakeStack()}, stream=io.StringIO())
    assert told.events == []


def test_a_missing_program_for_the_stack_is_refused(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, stack={"name": "torchrun"}, workload={"nodes": 1, "spares": 0})
    with pytest.raises(CapabilityError, match=r"stack_program_torchrun\.py"):
        run_scenarios([path], RunOptions(), Told(), stream=io.StringIO())


def test_an_unknown_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--on"):
        run_scenarios([write_scenario(tmp_path)], RunOptions(on="moon"), Told(), stream=io.StringIO())


def test_a_dirty_host_is_refused(tmp_path: Path, places: Places) -> None:
    ledger = places.state / "rd-dead.ledger"
    ledger.write_bytes(b"not a ledger\n")
    with pytest.raises(DirtyHostError, match="nothing was started"):
        run_scenarios([write_scenario(tmp_path)], RunOptions(), Told(), stream=io.StringIO())
    ledger.unlink()


def test_a_place_that_cannot_be_written_is_refused_before_the_drill(tmp_path: Path) -> None:
    told = Told()
    with pytest.raises(StoreError, match="--out"):
        run_scenarios(
            [write_scenario(tmp_path)],
            RunOptions(out=Path("/proc/self/report")),
            told,
            stacks={"reference": FakeStack()},
            stream=io.StringIO(),
        )
    assert told.events == []


def test_a_folder_that_vanishes_during_the_drill_costs_the_report_not_the_summary(tmp_path: Path) -> None:
    class Saboteur(Told):
        def step(self, number: int) -> None:
            out = tmp_path / "out"
            if not out.exists():
                out.write_text("a file where the folder should be")

    told, stream = Saboteur(), io.StringIO()
    with pytest.raises(StoreError, match="out"):
        run_scenarios(
            [write_scenario(tmp_path, faults=(NOOP,), slo={"false_alarms": {"max": 0}})],
            RunOptions(out=tmp_path / "out"),
            told,
            stacks={"reference": FakeStack()},
            stream=stream,
        )
    assert told.ends[0][0] == "ERROR"
    assert told.ends[0][2] is None
    assert "false_alarms" in stream.getvalue()


def test_the_target_is_drawn_by_seed_and_repeat(tmp_path: Path) -> None:
    kill = {"kill": {"rank": "any"}, "when": {"step": 5}}
    path = write_scenario(tmp_path, faults=(kill,), workload={"steps": 8}, repeat=3, slo={"lost_steps": {"max": 0}})
    _, first, _ = drill(path)
    _, second, _ = drill(path)
    hit = [[repeat["faults"][0]["ranks"] for repeat in report["repeats"]] for report in (first, second)]
    assert hit[0] == hit[1]


def test_dry_run_says_who_when_how_and_starts_nothing(tmp_path: Path) -> None:
    stop = {"stop": {"rank": 2}, "when": {"step": 20}, "duration_s": 2}
    said = dry_run(load(write_scenario(tmp_path, faults=(KILL, stop))), {"reference": FakeStack()})
    for words in ("rank 1", "step 40", "rank 2", "SIGCONT after 2 s", "cannot be undone", "n0: 2, n1: 2"):
        assert words in said, said
    assert os.listdir(tmp_path / "tmp") == []
