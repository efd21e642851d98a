"""The pytest door, in pytest runs of their own with a runner that only writes reports."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import harness.display
import harness.drill_result
import harness.run
import harness.scenario

pytest_plugins = ("pytester",)

# pytester forgets the modules that an inner run imports, but not what hangs on their packages; a second inner run would
# then meet two versions of one class. What is imported here is imported once.
IMPORTED_ONCE = (harness.display, harness.drill_result, harness.run, harness.scenario)

SHIPPED = Path(__file__).resolve().parents[2] / "scenarios"

# A conftest whose runner writes the report that a file beside it asks for, and notes what it was asked.
CONFTEST = """
import json
from pathlib import Path

import pytest

from harness.errors import UsageError

HERE = Path(__file__).parent


def _report(word, code):
    check = {"slo": "detect_s", "limit": "max 0.2", "value": 0.5, "verdict": word, "reason": "too \\x1b[31m late",
             "op": "max", "limit_value": 0.2}
    good = {**check, "slo": "lost_steps", "verdict": "PASS", "value": 0}
    repeat = {"number": 1, "seed": 7, "verdict": word, "exit_code": code, "checks": [check, good]}
    return {"schema_version": 1, "scenario": "noop", "verdict": word, "exit_code": code, "seed": 7,
            "headline": f"the headline of {word}", "reasons": ["a reason"], "replay": "rankdrill run x",
            "repeats": [repeat],
            "summary": {"detect_s": {"n": 2, "min": 0.4, "p50": 0.5, "p95": 0.6, "max": 0.6},
                        "lost_steps": {"n": 1, "min": 0, "p50": 0, "p95": 0, "max": "inf"}}}


WORDS = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 3}


@pytest.hookimpl
def pytest_rankdrill_runner(config):
    def run(paths, options, progress):
        (HERE / "asked.txt").write_text(f"{paths[0].name} {options.repeat} {options.seed} {options.on}\\n")
        word = (HERE / "word.txt").read_text()
        if word == "USAGE":
            raise UsageError(f"{paths[0]}: no \\x1b such thing")
        if word == "STOPPED":
            report = {**_report("ERROR", 3), "reasons": ["interrupted by SIGINT"]}
            (options.out / "report.json").write_text(json.dumps(report))
            return 3
        if word == "NOTHING":
            return 3
        progress.started("noop 1/1", steps=60)
        (options.out / "report.json").write_text(json.dumps(_report(word, WORDS[word])))
        return WORDS[word]

    return run
"""


@pytest.fixture
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    (pytester.path / "word.txt").write_text("PASS")
    folder = pytester.mkdir("scenarios")
    shutil.copy(SHIPPED / "noop.yaml", folder)
    return pytester


def run(inner: pytest.Pytester, *line: str) -> pytest.RunResult:
    # hypothesis' plugin would be imported anew by every inner run, for half a second each.
    return inner.runpytest("-p", "no:cacheprovider", "-p", "no:hypothesispytest", *line)


def say(inner: pytest.Pytester, word: str) -> None:
    (inner.path / "word.txt").write_text(word)


def asked(inner: pytest.Pytester) -> str:
    return (inner.path / "asked.txt").read_text().strip()


def test_a_scenario_file_is_a_test_and_its_figures_are_properties(inner: pytest.Pytester) -> None:
    run(inner, "scenarios", "--junitxml=junit.xml").assert_outcomes(passed=1)
    assert asked(inner) == "noop.yaml None None None"
    root = ET.parse(inner.path / "junit.xml").getroot()  # noqa: S314 - written by this test.
    properties = {element.get("name"): element.get("value") for element in root.iter("property")}
    (report,) = (inner.path / "runs" / "noop").glob("*/report.json")
    assert properties == {
        "verdict": "PASS",
        "seed": "7",
        "report": str(report),
        "detect_s": "0.5",
        "detect_s.max": "0.6",
        "lost_steps": "0.0",
    }


@pytest.mark.parametrize("word", ["FAIL", "INCONCLUSIVE", "ERROR"])
def test_what_is_no_pass_fails_with_its_own_word(inner: pytest.Pytester, word: str) -> None:
    say(inner, word)
    result = run(inner, "scenarios")
    result.assert_outcomes(failed=1)
    said = result.stdout.str()
    assert f"{word}: the headline of {word}" in said
    assert "because: a reason" in said
    assert f"repeat 1: {word} detect_s (detection): limit max 0.2, measured 500 ms; too \\x1b[31m late" in said
    assert "repeat 1: PASS" not in said
    assert "report.html" in said
    assert "Traceback" not in said
    assert "\x1b" not in said


def test_a_refused_scenario_and_a_missing_report_fail_in_words(inner: pytest.Pytester) -> None:
    say(inner, "USAGE")
    result = run(inner, "scenarios")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*noop.yaml: no \\x1b such thing"])
    say(inner, "NOTHING")
    result = run(inner, "scenarios")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["ERROR: the drill ended with exit code 3 and wrote no report to *"])


def test_an_interrupted_drill_ends_the_session(inner: pytest.Pytester) -> None:
    shutil.copy(SHIPPED / "kill-twice.yaml", inner.path / "scenarios")
    say(inner, "STOPPED")
    # In a process of its own: inside this one it would end the whole test run.
    result = inner.runpytest_subprocess("-p", "no:cacheprovider", "scenarios")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert asked(inner) == "kill-twice.yaml None None None"


def test_a_broken_file_fails_alone_and_names_the_line(inner: pytest.Pytester) -> None:
    (inner.path / "scenarios" / "bad.yaml").write_text("scenario: bad\nclaim: x\nclaim: y\n")
    result = run(inner, "scenarios")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*bad.yaml:3: claim: the key appears twice*"])
    assert "Traceback" not in result.stdout.str()


def test_other_yaml_files_are_left_alone(inner: pytest.Pytester) -> None:
    (inner.path / "scenarios" / "compose.yaml").write_text("services:\n  scenario: 1\n")
    (inner.path / "scenarios" / "binary.yml").write_bytes(bytes(range(256)))
    run(inner, "scenarios").assert_outcomes(passed=1)


def test_tags_select(inner: pytest.Pytester) -> None:
    run(inner, "scenarios", "-k", "ci").assert_outcomes(passed=1)
    run(inner, "scenarios", "-k", "staging").assert_outcomes(deselected=1)


def test_options_choose_repeats_and_the_folder(inner: pytest.Pytester) -> None:
    run(inner, "scenarios", "--drill-repeat", "3", "--drill-out", "reports").assert_outcomes(passed=1)
    assert asked(inner) == "noop.yaml 3 None None"
    assert len(list((inner.path / "reports" / "noop").glob("*/report.json"))) == 1


def test_two_drills_in_one_second_have_folders_of_their_own(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        def test_mine(drill):
            first, second = drill("noop"), drill("noop")
            assert first.folder != second.folder
        """
    )
    run(inner, "test_two_drills_in_one_second_have_folders_of_their_own.py").assert_outcomes(passed=1)


def test_the_fixture_runs_a_drill_from_python(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_mine="""
        def test_by_path(drill, request):
            result = drill("scenarios/noop.yaml", repeat=2, seed=9)
            assert result.verdict == "PASS"
            assert result.figures["detect_s"] == 0.5
            assert result.checks[1][1].slo == "lost_steps"
            assert (result.folder / "report.json").is_file()
            assert ("detect_s", 0.5) in request.node.user_properties

        def test_shipped_by_name(drill):
            assert drill("kill-one-rank").verdict == "PASS"
        """
    )
    run(inner, "test_mine.py::test_by_path").assert_outcomes(passed=1)
    assert asked(inner) == "noop.yaml 2 9 None"
    run(inner, "test_mine.py::test_shipped_by_name").assert_outcomes(passed=1)
    assert asked(inner) == "kill-one-rank.yaml None None None"


def test_the_fixture_fails_the_test_that_asked(inner: pytest.Pytester) -> None:
    say(inner, "INCONCLUSIVE")
    inner.makepyfile(test_mine="def test_it(drill):\n    drill('noop')\n")
    result = run(inner, "test_mine.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*INCONCLUSIVE: the headline of INCONCLUSIVE*"])


def test_the_plugin_costs_other_sessions_nothing(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_mine="""
        import sys

        def test_it():
            assert not {"harness.run", "harness.scenario", "pydantic", "yaml", "torch"} & set(sys.modules)
        """
    )
    inner.runpytest_subprocess("-p", "no:cacheprovider", "test_mine.py").assert_outcomes(passed=1)
