"""The pytest door: scenario files are tests, and the fixture `drill` runs one from Python.

    pytest scenarios                  every scenario file below `scenarios` is one test
    pytest scenarios -k ci            those tagged `ci`
    def test_mine(drill): drill("scenarios/kill-one-rank.yaml", repeat=1)

A verdict other than PASS fails the test with its own word, the failing checks and the path of the report. Figures go
into the test's `user_properties`, and from there into `--junitxml`. pytest loads this module in every session of an
environment that has rankdrill, so it imports nothing but pytest until a drill is run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from harness.drill_result import DrillResult

Runner = Callable[[Sequence[Path], Any, Any], int]
"""`harness.run.run_scenarios`: paths, options and progress; returns the exit code."""

_SCENARIO_KEY = re.compile(rb"^scenario[ \t]*:", re.MULTILINE)
_LOOKED_AT_BYTES = 64 * 1024


class Hooks:
    """Hooks that a conftest may implement."""

    @pytest.hookspec(firstresult=True)
    def pytest_rankdrill_runner(self, config: pytest.Config) -> Runner | None:
        """Return what runs scenarios; the default is rankdrill itself."""


class Drill(Protocol):
    """What the fixture `drill` is."""

    def __call__(self, scenario: str | Path, *, repeat: int | None = None, seed: int | None = None) -> DrillResult:
        """Run a scenario file, or a shipped one by name; fail the test unless it passes, return what was measured."""
        ...


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our hooks."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("rankdrill", "fault drills of training runs")
    group.addoption("--drill-out", metavar="DIR", default=None, help="folder of the drills' reports (default: runs)")
    group.addoption("--drill-repeat", metavar="N", type=int, default=None, help="repeats, instead of the scenario's")


@pytest.hookimpl(trylast=True)
def pytest_rankdrill_runner() -> Runner:
    """Return the real runner."""
    from harness.run import run_scenarios

    return run_scenarios


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """Collect YAML files that are scenarios; other YAML files are none of our business."""
    if file_path.suffix not in (".yaml", ".yml") or not _is_scenario(file_path):
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


def _is_scenario(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _SCENARIO_KEY.search(file.read(_LOOKED_AT_BYTES)) is not None
    except OSError:
        return False


class ScenarioFile(pytest.File):
    """One YAML file."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield its one drill."""
        yield DrillItem.from_parent(self, name=self.path.stem)


class DrillItem(pytest.Item):
    """One scenario as a test."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._broken: Exception | None = None
        self._read()

    def _read(self) -> None:
        from harness.errors import ScenarioError
        from harness.scenario import load

        try:
            self.extra_keyword_matches.update(load(self.path).tags)
        except ScenarioError as error:
            # Told when the test is run: one broken file must not keep the others from being collected.
            self._broken = error

    def runtest(self) -> None:
        """Run the drill. Raises DrillNotPassed with the reason unless the verdict is PASS."""
        if self._broken is not None:
            raise self._broken
        result = _run(self.config, self.path, None, None, self.user_properties)
        result.require_pass()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show errors that explain themselves without a traceback."""
        from harness.drill_result import DrillNotPassed
        from harness.errors import RankdrillError
        from harness.terminal import visible

        if isinstance(excinfo.value, DrillNotPassed | RankdrillError):
            return visible(str(excinfo.value), keep_newlines=True)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the test comes from."""
        return self.path, 0, f"drill {self.name}"


@pytest.fixture
def drill(request: pytest.FixtureRequest) -> Drill:
    """Run a scenario from Python: `drill("kill-one-rank", repeat=1)` fails the test unless it passes."""
    __tracebackhide__ = True

    def run(scenario: str | Path, *, repeat: int | None = None, seed: int | None = None) -> DrillResult:
        __tracebackhide__ = True
        path = _find(scenario, request.path.parent)
        result = _run(request.config, path, repeat, seed, request.node.user_properties)
        result.require_pass()
        return result

    return run


def _find(scenario: str | Path, folder: Path) -> Path:
    """Return the file: as given, beside the test, or shipped under that name."""
    given = Path(scenario)
    if given.exists() or given.is_absolute():
        return given
    from harness.scenario import SHIPPED

    for candidate in (folder / given, SHIPPED / f"{given}.yaml"):
        if candidate.is_file():
            return candidate
    return given


def _run(
    config: pytest.Config,
    path: Path,
    repeat: int | None,
    seed: int | None,
    properties: list[tuple[str, object]],
) -> DrillResult:
    from harness.display import PlainDisplay
    from harness.drill_result import new_folder, read_result
    from harness.run import RunOptions

    runner: Runner = config.hook.pytest_rankdrill_runner(config=config)
    chosen = config.getoption("--drill-out")
    base = Path(chosen) if chosen else config.rootpath / "runs"
    folder = new_folder(base, path.stem)
    wanted = repeat if repeat is not None else config.getoption("--drill-repeat")
    options = RunOptions(repeat=wanted, seed=seed, out=folder, on=None)
    code = runner([path], options, PlainDisplay(sys.stderr))
    result = read_result(folder, code)
    properties.extend(result.properties())
    if result.interrupted:
        # The run has cleaned up and reported; the session must end too, not go on with the next drill.
        raise KeyboardInterrupt
    return result
