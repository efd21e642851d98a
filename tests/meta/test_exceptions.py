"""Every exception from a rule says why, and a test that does not run is a missing test."""

from __future__ import annotations

import ast
import re
import tomllib

from tests.meta.sources import ROOT, Source, python_sources, sources

# Put together from parts, so that this file does not break its own rules.
SUPPRESSION = re.compile("#" + r"\s*(noqa: [A-Z0-9, ]+|type: ignore\[[\w, -]+\]|pragma: no cover)(.*)")
ANY_SUPPRESSION = re.compile("#" + r"\s*(noqa|type:\s*ignore|pragma|ruff:)")
SKIPS = frozenset({"skip", "skipif", "importorskip", "xfail", "SkipTest", "skipTest"})


def unexplained(source: Source) -> list[str]:
    """Return suppressions without a reason on their line, or in a comment directly above or below."""
    lines = ["", *source.text.splitlines(), ""]
    found = []
    for number, line in enumerate(lines):
        if not ANY_SUPPRESSION.search(line):
            continue
        said = SUPPRESSION.search(line)
        if said is None:
            found.append(f"{source.name}:{number}: name the rule that is suppressed")
            continue
        beside = any(lines[near].strip().startswith("#") for near in (number - 1, number + 1))
        if not beside and not re.search(r"\w{2,}", said.group(2)):
            found.append(f"{source.name}:{number}: say why {said.group(1)!r} is right here")
    return found


def test_every_suppressed_rule_has_a_reason() -> None:
    found = [line for source in python_sources() for line in unexplained(source)]
    assert not found, "\n".join(found)


def test_every_ignored_rule_has_a_reason() -> None:
    """In pyproject.toml each group of ignored rules stands under a comment."""
    text = (ROOT / "pyproject.toml").read_text()
    ruff = text.partition("[tool.ruff.lint]")[2].partition("[tool.ruff.lint.flake8")[0]
    groups = re.split(r"\n(?=\s*#)", ruff)
    assert len(groups) > 10
    bare = [line for line in groups[0].splitlines() if line.strip().startswith('"')]
    assert not bare, bare
    assert tomllib.loads(text)["tool"]["ruff"]["lint"]["select"] == ["ALL"]


def test_no_test_is_skipped() -> None:
    used = (
        (source, node)
        for source in sources("tests/")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in SKIPS
    )
    found = [
        source.at(node, f"{ast.unparse(node)}: make it run everywhere, or remove it")
        for source, node in used
        if ast.unparse(node).startswith(("pytest.", "unittest."))
    ]
    assert not found, "\n".join(found)
