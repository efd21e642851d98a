"""What the meta tests read: the project's own files, parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("chaos", "harness", "scenarios", "tests", "ci")
PURE = (
    "chaos/fault.py",
    "chaos/schedule.py",
    "chaos/target.py",
    "chaos/trigger.py",
    "harness/judge/",
    "harness/observe/observation.py",
    "harness/observe/timeline.py",
    "harness/resilience/control/",
)


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path inside the project, its text and its syntax tree."""

    name: str
    text: str
    tree: ast.Module

    def at(self, node: ast.AST, what: str) -> str:
        """Return `file:line: what`, the form of every complaint."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}: {what}"


@cache
def python_sources() -> tuple[Source, ...]:
    """Every Python file of the project."""
    paths = sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)
    return tuple(_parse(path) for path in paths)


def sources(*prefixes: str) -> tuple[Source, ...]:
    """Return the Python files whose path begins with one of `prefixes`."""
    return tuple(source for source in python_sources() if source.name.startswith(prefixes))


def text_files() -> Iterator[Path]:
    """Every file that people read or machines run: code, scripts, scenarios, documents, configuration."""
    suffixes = {".c", ".css", ".h", ".html", ".j2", ".js", ".json", ".md", ".py", ".toml", ".txt", ".yaml", ".yml", ""}
    for folder in (*CODE, "docs", ".ci"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.suffix in {".md", ".toml"})


def shell_scripts() -> tuple[Path, ...]:
    """Every file of ci/ and .ci/ that bash runs."""
    candidates = (path for folder in ("ci", ".ci") for path in sorted((ROOT / folder).rglob("*")) if path.is_file())
    return tuple(path for path in candidates if path.read_bytes().startswith(b"#!/usr/bin/env bash"))


def imports(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """Yield every module that a file imports, at module level or inside functions, with its statement."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or ""


def _parse(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path.relative_to(ROOT).as_posix(), text, ast.parse(text, filename=str(path)))
