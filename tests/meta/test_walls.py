"""Walls that import-linter cannot express: lists of what *may* be imported, and what an import really loads."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.meta.sources import ROOT, Source, imports, sources

OURS = ("chaos", "harness", "scenarios", "tests")


def outside(source: Source, allowed: tuple[str, ...]) -> list[str]:
    """Return the imports of a file that are neither standard library nor in `allowed` (a module, or `package.*`)."""
    return [
        source.at(statement, f"imports {module}")
        for statement, module in imports(source)
        if module.split(".")[0] not in sys.stdlib_module_names
        and not any(module == name or (name.endswith(".*") and f"{module}.".startswith(name[:-1])) for name in allowed)
    ]


@pytest.mark.parametrize("source", sources("chaos/"), ids=lambda source: source.name)
def test_chaos_needs_the_standard_library_only(source: Source) -> None:
    allowed = ("chaos.*", "hypothesis") if source.name == "chaos/search.py" else ("chaos.*",)
    assert not (found := outside(source, allowed)), "\n".join(found)


@pytest.mark.parametrize("source", sources("harness/probe/"), ids=lambda source: source.name)
def test_the_probe_needs_the_standard_library_only(source: Source) -> None:
    assert not (found := outside(source, ("harness.probe.*",))), "\n".join(found)


@pytest.mark.parametrize("source", sources("harness/judge/"), ids=lambda source: source.name)
def test_the_judge_sees_the_timeline_only(source: Source) -> None:
    allowed = ("harness.judge.*", "harness.observe.observation", "harness.observe.timeline", "harness.errors")
    assert not (found := outside(source, allowed)), "\n".join(found)


@pytest.mark.parametrize("source", sources("harness/resilience/"), ids=lambda source: source.name)
def test_the_stack_under_test_knows_the_probe_only(source: Source) -> None:
    allowed = ("harness.resilience.*", "harness.probe.*", "harness.errors", "numpy.*", "torch.*", "xxhash")
    assert not (found := outside(source, allowed)), "\n".join(found)


@pytest.mark.parametrize("source", sources("scenarios/workloads/"), ids=lambda source: source.name)
def test_a_workload_imports_what_a_user_would(source: Source) -> None:
    # A workload runs as a script, so the files beside it are modules of its own.
    beside = tuple(other.name.split("/")[-1].removesuffix(".py") for other in sources("scenarios/workloads/"))
    allowed = ("harness.resilience.session", "harness.probe.*", "numpy.*", "torch.*", *beside)
    found = [
        source.at(statement, "imports harness: name the module")
        for statement, module in imports(source)
        if module in {"harness", "harness.resilience"}
    ]
    found += outside(source, allowed)
    assert not found, "\n".join(found)


def loaded_by(module: str) -> frozenset[str]:
    """Return what importing a module adds to a bare interpreter: no site-packages, no environment, no user folder."""
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules); __import__(sys.argv[2]); "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    argv = [sys.executable, "-I", "-S", "-B", "-c", program, str(ROOT), module]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return frozenset(json.loads(done.stdout))


def foreign(modules: frozenset[str], home: tuple[str, ...]) -> list[str]:
    return sorted(
        name for name in modules if name.split(".")[0] not in sys.stdlib_module_names and name.split(".")[0] not in home
    )


def test_importing_the_probe_adds_standard_library_modules_only() -> None:
    modules = loaded_by("harness.probe.api")
    ours = sorted(name for name in modules if name.split(".")[0] in OURS)
    assert not foreign(modules, ("harness",))
    assert all(name in {"harness", "harness.probe"} or name.startswith("harness.probe.") for name in ours), ours


def test_the_probe_is_light() -> None:
    """A training program imports it beside its own start: no asyncio, no logging, no thread pool."""
    assert not loaded_by("harness.probe.api") & {"asyncio", "concurrent.futures", "logging", "multiprocessing"}


@pytest.mark.parametrize("module", ["chaos.reaper", "chaos.undo", "chaos.ledger"])
def test_what_heals_needs_the_standard_library_only(module: str) -> None:
    modules = loaded_by(module)
    assert not foreign(modules, ("chaos",))
    assert not [name for name in modules if name.split(".")[0] in {"harness", "scenarios"}]
