"""The command line, over doors that record what they were asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from chaos.errors import LedgerError
from chaos.leftovers import HealReport
from harness import answers
from harness.cli import main
from harness.doors import Doors, RunRequest
from harness.errors import CapabilityError, DirtyHostError, Interrupted, RankdrillError, WorkloadError

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "scenarios"


class FakeDoors(Doors):
    """Doors whose work is `work`; what they were asked stands in `asked`."""

    def __init__(self, folder: Path, work: Callable[[], int] = lambda: 0) -> None:
        self.asked: list[object] = []
        self._folder = folder
        self._work = work

    def run(self, request: RunRequest) -> int:
        self.asked.append(request)
        return self._work()

    def dry_run(self, request: RunRequest) -> int:
        self.asked.append(("dry", request))
        return self._work()

    def report(self, folder: Path) -> int:
        self.asked.append(folder)
        return self._work()

    def heal(self) -> int:
        self.asked.append("heal")
        return self._work()

    def bench(self, name: str, quick: bool, json_file: Path | None) -> int:
        self.asked.append((name, quick, json_file))
        return self._work()

    def selftest(self) -> int:
        self.asked.append("selftest")
        return self._work()

    def internal_error(self, error: Exception) -> str:
        return answers.internal_error(error, self._folder)


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


@pytest.fixture
def doors(tmp_path: Path) -> FakeDoors:
    return FakeDoors(tmp_path)


def test_run_passes_on_what_it_was_asked(doors: FakeDoors) -> None:
    line = ["run", "a.yaml", "b.yaml", "--repeat", "2", "--seed", "5", "--out", "there", "--on", "local"]
    assert main(line, doors) == 0
    assert doors.asked == [
        RunRequest((Path("a.yaml"), Path("b.yaml")), repeat=2, seed=5, out=Path("there"), on="local")
    ]


def test_run_leaves_open_what_was_not_asked(doors: FakeDoors) -> None:
    assert main(["run", "a.yaml"], doors) == 0
    assert doors.asked == [RunRequest((Path("a.yaml"),))]


def test_dry_run_does_not_run(doors: FakeDoors) -> None:
    assert main(["run", "a.yaml", "--dry-run"], doors) == 0
    assert doors.asked == [("dry", RunRequest((Path("a.yaml"),)))]


def test_the_other_commands_reach_their_doors(doors: FakeDoors) -> None:
    assert main(["report", "runs/x"], doors) == 0
    assert main(["heal"], doors) == 0
    assert main(["bench", "recovery", "--quick", "--json", "out.json"], doors) == 0
    assert main(["selftest"], doors) == 0
    assert doors.asked == [Path("runs/x"), "heal", ("recovery", True, Path("out.json")), "selftest"]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4])
def test_the_exit_code_is_the_doors(tmp_path: Path, code: int) -> None:
    assert main(["run", "a.yaml"], FakeDoors(tmp_path, lambda: code)) == code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CapabilityError("no root"), 4, "rankdrill: no root\n"),
        (DirtyHostError("left over"), 3, "rankdrill: left over\n"),
        (WorkloadError("raised"), 2, "rankdrill: raised\n"),
        (RankdrillError("\x1b[31mred\u202e"), 3, "rankdrill: \\x1b[31mred\\u202e\n"),
        (Interrupted("SIGTERM"), 3, "rankdrill: interrupted: SIGTERM\n"),
        (LedgerError("the ledger is full"), 3, "rankdrill: the ledger is full\n"),
        (OSError(28, "No space left on device", "/there"), 3, "rankdrill: No space left on device: /there\n"),
        (KeyboardInterrupt(), 3, "rankdrill: interrupted\n"),
    ],
)
def test_errors_are_a_line_and_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    assert main(["run", "a.yaml"], FakeDoors(tmp_path, raising(error))) == code
    assert capsys.readouterr().err == said


def test_a_bug_of_ours_says_so_and_where_its_details_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "state" / "errors"
    assert main(["heal"], FakeDoors(folder, raising(TypeError("'NoneType' \x1b is\nnot callable")))) == 3
    said = capsys.readouterr().err
    (details,) = folder.iterdir()
    assert said == (
        "rankdrill: internal error: TypeError: 'NoneType' \\x1b is\n"
        f"This is a bug in rankdrill; please report it together with {details}\n"
    )
    assert "Traceback" in details.read_text()
    assert "in raising" in details.read_text() or "in work" in details.read_text()


def test_a_bug_whose_details_cannot_be_written_is_still_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["heal"], FakeDoors(tmp_path / "file" / "errors", raising(TypeError("x")))) == 3
    assert "its details could not be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["run"], "'FILE...'"),
        (["run", "a.yaml", "--sed", "1"], "--seed"),
        (["run", "a.yaml", "--repeat", "0"], "--repeat"),
        (["run", "a.yaml", "--repeat", "many"], "--repeat"),
        (["run", "a.yaml", "--seed", "-1"], "--seed"),
        (["run", "a.yaml", "--on", "locl"], "--on: expected local, found 'locl'; did you mean 'local'?"),
        (["report"], "DIR"),
        (["report", "a", "b"], "unexpected extra argument"),
        (["bench"], "NAME"),
        (["check"], "FILE..."),
        (["run", "a.yaml", "--\x1b[31m"], "\\x1b[31m"),
    ],
)
def test_a_wrong_line_is_exit_code_4_and_one_line(
    doors: FakeDoors, capsys: pytest.CaptureFixture[str], line: list[str], said: str
) -> None:
    assert main(line, doors) == 4
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.startswith("rankdrill: ")
    assert captured.err.count("\n") == 1
    assert doors.asked == []


def test_help_is_for_everybody(doors: FakeDoors, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], doors) == 0
    assert main(["run", "--help"], doors) == 0
    assert "--dry-run" in capsys.readouterr().out
    assert main([], doors) == 4
    assert "Commands:" in capsys.readouterr().out
    assert main(["--version"], doors) == 0
    assert capsys.readouterr().out.startswith("rankdrill 0")


def test_check_tells_good_from_bad(doors: FakeDoors, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("scenario: bad\nclaim: x\nclaim: y\n")
    assert main(["check", str(SHIPPED / "noop.yaml")], doors) == 0
    assert "noop.yaml: ok: noop, 4 ranks" in capsys.readouterr().out
    assert main(["check", str(bad), str(SHIPPED / "noop.yaml")], doors) == 4
    captured = capsys.readouterr()
    assert captured.err.startswith(f"{bad}:3: claim: the key appears twice")
    assert "noop.yaml: ok" in captured.out


def test_check_misses_the_program_that_the_stack_runs(
    doors: FakeDoors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("")
    path = tmp_path / "mine.yaml"
    text = (SHIPPED / "noop.yaml").read_text().replace("program: gpt", "program: mine.py")
    path.write_text(text)
    assert main(["check", str(path)], doors) == 0
    path.write_text(text.replace("name: reference", "name: torchrun"))
    assert main(["check", str(path)], doors) == 4
    assert "mine_torchrun.py" in capsys.readouterr().err


def test_check_warns_without_refusing(doors: FakeDoors, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    early = tmp_path / "early.yaml"
    early.write_text((SHIPPED / "noop.yaml").read_text().replace("step: 20", "step: 5"))
    assert main(["check", str(early)], doors) == 0
    captured = capsys.readouterr()
    assert "early.yaml:11: faults[0].when.step: warning: step 5 comes before steady state" in captured.err
    assert "ok" in captured.out


def test_list_shows_every_shipped_scenario(doors: FakeDoors, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"], doors) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert {"kill-one-rank", "kill-rank-zero", "kill-twice", "stop-and-continue", "noop"} <= set(names)
    (line,) = [line for line in lines if line.startswith("kill-one-rank")]
    assert "A killed rank is replaced by a spare at once" in line
    assert line.endswith("ci")


def test_schema_is_json_on_stdout(doors: FakeDoors, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"], doors) == 0
    assert "slo" in json.loads(capsys.readouterr().out)["properties"]


def test_healing_is_told_and_a_dirty_host_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    healed = HealReport("r1", "/state/r1.ledger", healed=("f0",), failed=())
    stuck = HealReport("r2", "/state/r2.ledger", healed=(), failed=("f1: still \x1b stopped",))
    assert answers.tell_healed([]) == 0
    assert answers.tell_healed([healed]) == 0
    assert "healed: f0 (run r1)" in capsys.readouterr().out
    with pytest.raises(DirtyHostError, match="r2"):
        answers.tell_healed([healed, stuck])
    assert "NOT healed: f1: still \\x1b stopped (run r2, /state/r2.ledger)" in capsys.readouterr().out


def test_benchmarks_are_found_by_name(tmp_path: Path) -> None:
    asked: list[tuple[bool, Path | None]] = []

    def recovery(quick: bool, json_file: Path | None) -> int:
        asked.append((quick, json_file))
        return 1

    names = {"recovery": recovery}
    assert answers.run_bench(names, "recovery", True, tmp_path / "out.json") == 1
    assert asked == [(True, tmp_path / "out.json")]
    with pytest.raises(RankdrillError, match="did you mean 'recovery'"):
        answers.run_bench(names, "recovry", False, None)
    with pytest.raises(RankdrillError, match="--json"):
        answers.run_bench(names, "recovery", False, tmp_path / "no" / "out.json")


def rankdrill(*line: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *line],
        cwd=ROOT,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def imported_by(line: Sequence[str]) -> set[str]:
    """Return the modules that a command line imports, in a process of its own."""
    program = (
        "import sys; from harness.cli import main; code = main(sys.argv[1:]);"
        "print('\\n' + ' '.join(sorted(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *line], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


def test_help_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "pydantic.main", "yaml", "jinja2", "rich.console", "harness.run", "harness.scenario"}
    assert not imported_by(["--help"]) & heavy


def test_no_command_that_reads_scenarios_imports_torch() -> None:
    for line in (["check", "scenarios/noop.yaml"], ["list"], ["schema"]):
        assert not imported_by(line) & {"torch", "numpy"}


def test_the_program_can_be_run_as_a_process(tmp_path: Path) -> None:
    assert rankdrill("--version").stdout.startswith("rankdrill ")
    done = rankdrill("check", str(tmp_path / "none.yaml"))
    assert done.returncode == 4
    assert done.stderr.startswith(f"{tmp_path}/none.yaml: no such file")
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error_of_ours() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "schema"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 3
    assert said == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_with_3_and_without_a_traceback(tmp_path: Path, number: signal.Signals) -> None:
    # A session in the background has SIGINT ignored, and its children inherit that.
    program = """
import signal
import sys
from harness.cli import main
from harness.doors import Doors

signal.signal(signal.SIGINT, signal.default_int_handler)

class Waiting(Doors):
    def heal(self):
        print("waiting", flush=True)
        sys.stdin.read()
        return 0

sys.exit(main(["heal"], Waiting()))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert said.startswith("rankdrill: interrupted")
    assert "Traceback" not in said
