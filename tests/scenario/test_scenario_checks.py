"""What is refused although every field by itself is well formed, and what is only warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ScenarioError, UsageError
from harness.scenario import Scenario, load, shipped

BASE = """\
scenario: mine
claim: It recovers.
why: It broke once.
certifies: [rank-death]
not: [network]
workload: {program: train.py, ranks: 4, spares: 1, nodes: 3, steps: 60}
stack: {name: reference, limits: ci}
faults:
  - kill: {rank: 2}
    when: {step: 20}
slo:
  first_step_s: {max: 1.0}
repeat: 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "bert.py").write_text("")
    return tmp_path / "mine.yaml"


def written(file: Path, *changes: tuple[str, str]) -> Path:
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return file


def accepted(file: Path, *changes: tuple[str, str]) -> Scenario:
    return load(written(file, *changes))


def refused(file: Path, *changes: tuple[str, str]) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load(written(file, *changes))
    return [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]


def test_a_scenario_is_read(file: Path) -> None:
    scenario = accepted(file)
    assert scenario.scenario == "mine"
    assert scenario.path == file
    assert scenario.program_path == file.parent / "train.py"
    assert scenario.workload.ranks == 4
    assert scenario.launch.on == "local"
    assert scenario.faults[0].target.which == 2
    assert [(bound.slo, bound.op, bound.value, bound.unit) for bound in scenario.slo.limits] == [
        ("first_step_s", "max", 1.0, "figure")
    ]
    assert not scenario.slo.weights_equal
    assert (scenario.repeat, scenario.seed, scenario.steady_within_s, scenario.horizon_s) == (3, 0, 60.0, 120.0)
    assert scenario.warnings() == ()


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in shipped()])
def test_every_shipped_scenario_can_be_run_and_warns_of_nothing(path: Path) -> None:
    scenario = load(path)
    assert scenario.scenario == path.stem
    assert scenario.warnings() == ()
    assert scenario.slo.weights_equal


@pytest.mark.parametrize(
    ("old", "new", "start", "end"),
    [
        ("rank: 2", "rank: 9", "9: faults[0].kill.rank: expected a rank below 4", "got 9"),
        ("rank: 2", "node: n7", "9: faults[0].kill.node: expected a node of this run (n0, n1, n2), got n7", ""),
        ("rank: 2", "agent: n3", "9: faults[0].kill.agent: expected a node of this run", ""),
        ("rank: 2", "node: N1", "9: faults[0].kill.node: expected a node of this run", "did you mean 'n1'?"),
        ("kill: {rank: 2}", "kill: {}", "9: faults[0].kill: expected one target", "got none"),
        (
            "kill: {rank: 2}",
            "kill: {rank: 1, node: n1}",
            "9: faults[0].kill: expected exactly one target",
            "rank and node",
        ),
        ("kill: {rank: 2}", "kil: {rank: 2}", "9: faults[0].kil: expected one of", "did you mean 'kill'?"),
        (
            "kill: {rank: 2}",
            "kill: {rank: 2, signal: KIL}",
            "9: faults[0].kill.signal: expected one of",
            "did you mean 'KILL'?",
        ),
        ("step: 20", "step: 61", "10: faults[0].when.step: never fires: the workload ends at step 60", "found 61"),
        ("step: 20", "step: 0", "10: faults[0].when.step: expected the number of a step", "got 0"),
        ("step: 20", "event: 'fault:f0'", "10: faults[0].when.event: expected", "got fault:f0"),
        ("step: 20", "event: 'fault:f3'", "10: faults[0].when.event: expected", "got fault:f3"),
        (
            "step: 20",
            "phase: backward",
            "10: faults[0].when.phase: never fires",
            "expected 'step', 'after_s' or 'event'",
        ),
        ("step: 20", "event: restord", "10: faults[0].when.event: never fires: no such event", "'restored'?"),
        ("program: train.py", "program: trian.py", "6: workload.program: no such file; expected the path", ""),
        (
            "program: train.py",
            "program: bart",
            "6: workload.program: no such workload; expected",
            "did you mean 'bert'?",
        ),
        (
            "program: train.py",
            "command: torchrun x",
            "6: workload.command: stack 'reference' starts",
            "did you mean 'program'?",
        ),
        ("program: train.py, ", "", "6: workload.program: is missing; expected the name of a workload", ""),
        ("nodes: 3", "nodes: 6", "6: workload.nodes: expected at most 5, one member a node, found 6", ""),
        ("steps: 60", "steps: 60, args: {seed: 1}", "6: workload.args.seed: expected the field 'seed'", ""),
        (
            "steps: 60",
            "steps: 60, args: {a: [1]}",
            "6: workload.args.a: expected a mapping of option names",
            "found a list",
        ),
        ("steps: 60", "steps: 60, args: {a: .inf}", "6: workload.args.a: expected", "found inf"),
        ("steps: 60", "steps: 60, args: {9x: 1}", "6: workload.args.9x: expected a mapping of option names", ""),
        (
            "first_step_s: {max: 1.0}",
            "frist_step_s: {max: 1}",
            "12: slo.frist_step_s: unknown figure",
            "'first_step_s'?",
        ),
        (
            "first_step_s: {max: 1.0}",
            "weights_equal: {equal: 1}",
            "12: slo.weights_equal: unknown figure",
            "'weights'?",
        ),
        ("first_step_s: {max: 1.0}", "weights: eqal", "12: slo.weights: expected 'equal', found 'eqal'", "'equal'?"),
        ("max: 1.0", "maximum: 1.0", "12: slo.first_step_s.maximum: unknown kind of limit", "did you mean 'max'?"),
        ("max: 1.0", "max: -1", "12: slo.first_step_s.max: expected a number of seconds", "found -1"),
        ("max: 1.0", "max: 3 stepps", "12: slo.first_step_s.max: expected a number of seconds", "found '3 stepps'"),
        ("max: 1.0", "max: .nan", "12: slo.first_step_s.max: expected a number of seconds", "found nan"),
        ("{max: 1.0}", "1.0", "12: slo.first_step_s: expected a limit such as '{max: 1.0}', found 1.0", ""),
        ("{max: 1.0}", "{}", "12: slo.first_step_s: expected a limit such as '{max: 1.0}', found nothing", ""),
        ("{max: 1.0}", "{equal: 1, max: 2}", "12: slo.first_step_s.equal: expected 'equal' alone", ""),
        ("{max: 1.0}", "{min: 2, max: 1}", "12: slo.first_step_s.min: expected at most the value of 'max' (1)", ""),
        ("{max: 1.0}", "{p95: 1}", "12: slo.first_step_s.p95: p95 at 95% confidence needs 59 repeats", ""),
        ("{max: 1.0}", "{p50: 1}", "12: slo.first_step_s.p50: p50 at 95% confidence needs 5 repeats", ""),
        ("first_step_s: {max: 1.0}", "goodput: {p95: 1}", "12: slo.goodput.p95: unknown kind of limit", ""),
        (
            "first_step_s: {max: 1.0}",
            "lost_steps: {max: 3 steps}",
            "12: slo.lost_steps.max: expected a number",
            "'3 steps'",
        ),
        ("\n  first_step_s: {max: 1.0}", " {}", "11: slo: is empty; expected at least one limit", ""),
        ("\n  first_step_s: {max: 1.0}", "", "11: slo: expected a mapping of figures to limits, found nothing", ""),
        ("certifies: [rank-death]", "certifies: rank-death", "4: certifies: expected a list", "found 'rank-death'"),
        ("not: [network]", "not: network", "5: not: expected a list of words", "found 'network'"),
        ("not: [network]", "not_: [network]", "1: not: is missing", ""),
        (
            "certifies: [rank-death]",
            "certifies: []",
            "4: certifies: expected a list of at least one word",
            "found a list",
        ),
        ("name: reference", "name: referenc", "7: stack.name: expected one of 'reference', 'torchrun'", "'reference'?"),
        (
            "limits: ci",
            "limits: CI",
            "7: stack.limits: expected one of 'ci', 'production', found 'CI'",
            "did you mean 'ci'?",
        ),
        ("limits: ci", "port: 99999", "7: stack.port: expected a port from 0 to 65535", "found 99999"),
        ("ranks: 4", "ranks: 4.0", "6: workload.ranks: expected a whole number of ranks", "found 4.0"),
        ("ranks: 4", "ranks: true", "6: workload.ranks: expected a whole number of ranks", "found true"),
        ("ranks: 4", "ranks: '4'", "6: workload.ranks: expected a whole number of ranks", "found '4'"),
        ("repeat: 3", "repeat: 0", "13: repeat: expected a whole number of repeats from 1 to 1000, found 0", ""),
        ("repeat: 3", "horizon_s: .inf", "13: horizon_s: expected seconds", "found inf"),
        ("scenario: mine", "scenario: ../mine", "1: scenario: expected a name of lower-case words", "found '../mine'"),
        ("scenario: mine", "scenario: 'mine\\n'", "1: scenario: expected a name of lower-case words", ""),
        ("claim: It recovers.", "claim: ' '", "2: claim: expected a sentence", ""),
        ("  - kill: {rank: 2}\n    when: {step: 20}", "  []", "8: faults: is empty; expected at least one fault", ""),
        ("  - kill: {rank: 2}\n    when: {step: 20}", "  kill: {rank: 2}", "8: faults: expected a list of faults", ""),
        (
            "  - kill: {rank: 2}\n    when: {step: 20}",
            "  - kill",
            "9: faults[0]: expected a mapping such as",
            "found 'kill'",
        ),
        ("    when: {step: 20}\n", "", "9: faults[0].when: expected conditions, such as {step: 20}", "got none"),
        ("step: 20", "stepp: 20", "10: faults[0].when.stepp: expected one of", "did you mean 'step'?"),
    ],
)
def test_what_cannot_be_meant_is_refused(file: Path, old: str, new: str, start: str, end: str) -> None:
    lines = refused(file, (old, new))
    assert any(line.startswith(start) and line.endswith(end) for line in lines), lines
    assert len(lines) <= 3


def test_a_spare_is_only_hit_where_there_is_one(file: Path) -> None:
    assert accepted(file, ("rank: 2", "spare: any")).faults[0].target.what == "spare"
    (line,) = refused(file, ("rank: 2", "spare: any"), ("spares: 1", "spares: 0"))
    assert line.startswith("9: faults[0].kill.spare: expected a workload with `spares` of at least 1")


def test_two_faults_may_not_wait_for_each_other(file: Path) -> None:
    second = "step: 20}\n  - kill: {rank: 1}\n    when: {event: 'fault:f0'}"
    assert len(accepted(file, ("step: 20}", second)).faults) == 2
    lines = refused(file, ("step: 20}", second.replace("step: 20", "event: 'fault:f1'")))
    assert lines[0].startswith("10: faults[0].when.event: expected faults that do not wait for each other")


def test_a_percentile_is_accepted_with_enough_repeats_and_judged_as_a_max(file: Path) -> None:
    scenario = accepted(file, ("{max: 1.0}", "{p95: 40 steps}"), ("repeat: 3", "repeat: 59"))
    (bound,) = scenario.slo.limits
    assert (bound.op, bound.value, bound.unit, bound.percentile) == ("max", 40.0, "steps", "p95")
    with pytest.raises(UsageError, match="--repeat: p95 at 95% confidence needs 59 repeats"):
        scenario.override(repeat=58)
    assert scenario.override(repeat=60).repeat == 60


def test_repeat_and_seed_can_be_overridden_within_their_bounds(file: Path) -> None:
    scenario = accepted(file)
    changed = scenario.override(repeat=1, seed=9)
    assert (changed.repeat, changed.seed, changed.path, changed.program_path) == (1, 9, file, scenario.program_path)
    assert scenario.override() == scenario
    with pytest.raises(UsageError, match="--repeat"):
        scenario.override(repeat=0)
    with pytest.raises(UsageError, match="--seed"):
        scenario.override(seed=-1)


def test_torchrun_has_no_spares_no_controller_and_no_alarms(file: Path) -> None:
    torchrun = ("name: reference", "name: torchrun")
    (warning,) = accepted(file, torchrun).warnings()
    assert warning == f"{file}:6: workload.spares: warning: stack 'torchrun' keeps no spares; they are not started"
    for target in ("controller: true", "agent: n1", "spare: any"):
        assert refused(file, torchrun, ("rank: 2", target))
    (line,) = refused(file, torchrun, ("first_step_s", "detect_s"))
    assert line.startswith("12: slo.detect_s: stack 'torchrun' raises no alarms; expected 'reaction_s' instead")


def test_a_fault_before_steady_state_is_warned_of(file: Path) -> None:
    (warning,) = accepted(file, ("step: 20", "step: 12")).warnings()
    assert warning.startswith(f"{file}:10: faults[0].when.step: warning: step 12 comes before steady state")
    assert "INCONCLUSIVE" in warning
    assert accepted(file, ("step: 20", "step: 13")).warnings() == ()


def test_a_fault_too_near_the_end_is_warned_of(file: Path) -> None:
    (warning,) = accepted(file, ("step: 20", "step: 56")).warnings()
    assert "step 56 leaves 4 steps to the end" in warning
    assert accepted(file, ("step: 20", "step: 55")).warnings() == ()


def test_many_mistakes_make_three_lines(file: Path) -> None:
    lines = refused(file, ("ranks: 4", "ranks: x"), ("name: reference", "nam: y"), ("repeat: 3", "repaet: z\nzzz: 1"))
    assert len(lines) == 3
    assert lines[0].startswith("6: workload.ranks: ")
    assert lines[1].startswith("7: stack.nam: ")
    assert lines[2].endswith("and 2 more; fix these first")


def test_yaml_words_of_version_1_1_are_plain_words(file: Path) -> None:
    scenario = accepted(file, ("repeat: 3", "launch: {on: local}\ntags: [on, no, y]"))
    assert scenario.tags == ("on", "no", "y")


def test_errors_do_not_repeat_what_acts_on_a_terminal(file: Path) -> None:
    lines = refused(
        file, ("claim: It recovers.", 'claim: It.\n"\\e[31m\\u202e": 1'), ("name: reference", 'name: "\\e[2J"')
    )
    assert all("\x1b" not in line and "\u202e" not in line for line in lines)
