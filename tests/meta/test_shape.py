"""Files and functions stay small enough to read in one go, and say what they mean in the house's words."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.meta.sources import ROOT, Source, python_sources, sources, text_files

LONGEST_FUNCTION = 70
LONGEST_FILE = 500
# Put together from parts, so that this file does not break its own rules.
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")
REGISTRY_HOSTS = (
    "py" + "pi.org",
    "python" + "hosted.org",
    "registry." + "npmjs",
    "deb." + "debian.org",
    "download." + "pytorch",
)


def functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        source.at(node, f"{node.name} has {lines} lines, {LONGEST_FUNCTION} allowed")
        for source in python_sources()
        for node in functions(source)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert not long, "\n".join(long)


def test_no_file_holds_more_than_one_idea() -> None:
    long = [
        f"{source.name}: {lines} lines, {LONGEST_FILE} allowed"
        for source in python_sources()
        if (lines := source.text.count("\n")) > LONGEST_FILE
    ]
    assert not long, "\n".join(long)


def test_package_init_files_are_empty() -> None:
    full = [
        source.name for source in sources("chaos/", "harness/") if source.name.endswith("__init__.py") and source.text
    ]
    assert not full, full


def test_every_folder_of_a_package_is_a_package() -> None:
    """Without its __init__ a folder is invisible to import-linter and to the installed distribution."""
    missing = sorted(
        {
            source.name
            for source in sources("chaos/", "harness/")
            if not (ROOT / source.name).with_name("__init__.py").exists()
        }
    )
    assert not missing, missing


def test_tests_and_scenarios_are_no_packages() -> None:
    packages = [source.name for source in sources("tests/", "scenarios/") if source.name.endswith("__init__.py")]
    assert not packages, packages


@pytest.mark.parametrize("word", UNFINISHED)
def test_nothing_is_left_for_later(word: str) -> None:
    found = [path.relative_to(ROOT).as_posix() for path in text_files() if word in path.read_text("utf-8", "replace")]
    assert not found, found


@pytest.mark.parametrize("host", REGISTRY_HOSTS)
def test_no_file_names_a_package_registry(host: str) -> None:
    found = [path.relative_to(ROOT).as_posix() for path in text_files() if host in path.read_text("utf-8", "replace")]
    assert not found, found


def defined_names(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Names that a file gives, as opposed to those it uses: another project's API keeps its own words."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node, node.name
        elif isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id


def test_a_process_that_may_hold_a_rank_is_a_member() -> None:
    """`worker` means four things in this field; the house says rank, member, spare and agent."""
    wrong = [
        source.at(node, f"{name}: say rank, member, spare or agent")
        for source in python_sources()
        for node, name in defined_names(source)
        if "work" + "er" in name.lower()
    ]
    files = [source.name for source in python_sources() if "work" + "er" in source.name]
    assert not wrong + files, "\n".join(wrong + files)
