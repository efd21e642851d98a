"""Every key and value of every shipped scenario is broken in turn; the error must name its line and field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from harness.errors import ScenarioError
from harness.scenario import load, shipped
from harness.strict_yaml import field_name

WRONG_VALUES = (
    "",
    "true",
    "-1",
    "1.5",
    "1e999",
    "zzz zzz",
    "[]",
    "{a: 1}",
    "'\\x1b[31m'",
    "[[x]]",
    ".nan",
    "99999999999",
)


@dataclass(frozen=True)
class Spot:
    """A key or value of a file: where its text stands, and the field it belongs to."""

    what: str
    field: str
    key: str
    line: int
    column: int
    start: int
    end: int


def spots(text: str) -> Iterator[Spot]:
    """Yield every key and every scalar value, found by PyYAML's own node tree."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert root is not None
    yield from _spots(root, ())


def _spots(node: yaml.Node, place: tuple[str | int, ...]) -> Iterator[Spot]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*place, key.value)
            yield _spot("key", key, inner, key.value)
            yield from _spots(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _spots(value, (*place, index))
    else:
        yield _spot("value", node, place, "")


def _spot(what: str, node: yaml.Node, place: tuple[str | int, ...], key: str) -> Spot:
    start, end = node.start_mark, node.end_mark
    return Spot(what, field_name(place), key, start.line + 1, start.column, start.index, end.index)


SPOTS = [(path, spot) for path in shipped() for spot in spots(path.read_text())]
KEYS = [pytest.param(path, spot, id=f"{path.stem}-{spot.field}") for path, spot in SPOTS if spot.what == "key"]
VALUES = [pytest.param(path, spot, id=f"{path.stem}-{spot.field}") for path, spot in SPOTS if spot.what == "value"]


def refusal(folder: Path, original: Path, spot: Spot, replacement: str) -> tuple[Path, list[str]]:
    """Return the lines of the error that the changed file gives; none if it is accepted."""
    text = original.read_text()
    path = folder / original.name
    path.write_text(text[: spot.start] + replacement + text[spot.end :])
    return path, complaint(path).splitlines()


def complaint(path: Path) -> str:
    """Return what is said of a file; nothing if it is accepted."""
    try:
        load(path)
    except ScenarioError as error:
        return str(error)
    return ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the workload that the shipped scenarios name."""
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "gpt.py").write_text("")
    return tmp_path


def test_there_is_something_to_break() -> None:
    assert len(shipped()) >= 5
    assert len(KEYS) > 100
    assert len(VALUES) > 100


@pytest.mark.parametrize(("original", "spot"), KEYS)
def test_a_misspelt_key_is_named_with_its_line_and_the_right_word(folder: Path, original: Path, spot: Spot) -> None:
    path, lines = refusal(folder, original, spot, f"{spot.key}x")
    assert 1 <= len(lines) <= 3
    (line,) = [line for line in lines if line.startswith(f"{path}:{spot.line}: {spot.field}x: ")]
    assert "expected" in line
    assert line.endswith(f"did you mean '{spot.key}'?")


@pytest.mark.parametrize(("original", "spot"), KEYS)
def test_a_key_given_twice_is_named_with_its_line(folder: Path, original: Path, spot: Spot) -> None:
    row = original.read_text().splitlines()[spot.line - 1]
    before = row[: spot.column]
    flow = before.strip(" -") != ""
    separator = ", " if flow else "\n" + " " * spot.column
    path, lines = refusal(folder, original, spot, f"{spot.key}: 1{separator}{spot.key}")
    line = spot.line if flow else spot.line + 1
    twice = f"the key appears twice; expected it once (first in line {spot.line})"
    assert lines == [f"{path}:{line}: {spot.field}: {twice}"]


@pytest.mark.parametrize(("original", "spot"), VALUES)
def test_a_mapping_in_place_of_a_value_is_named_with_its_line(folder: Path, original: Path, spot: Spot) -> None:
    path, lines = refusal(folder, original, spot, "{a: 1}")
    assert len(lines) == 1
    assert lines[0].startswith(f"{path}:{spot.line}: {spot.field}")
    assert "expected" in lines[0]


@pytest.mark.parametrize(("original", "spot"), [value for value in VALUES if "stop-and-continue" in str(value.id)])
def test_whatever_stands_in_place_of_a_value_the_error_is_short_and_names_a_place(
    folder: Path, original: Path, spot: Spot
) -> None:
    for value in WRONG_VALUES:
        path, lines = refusal(folder, original, spot, value)
        assert len(lines) <= 3, lines
        for line in lines:
            assert line.startswith(f"{path}:"), line
            assert len(line) < 800, line
            assert "expected" in line or "not valid YAML" in line, line
            assert "\x1b" not in line


@pytest.mark.parametrize("original", [pytest.param(path, id=path.stem) for path in shipped()])
def test_a_deleted_key_is_optional_or_missed_by_name(folder: Path, original: Path) -> None:
    root = yaml.compose(original.read_text(), Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    data = [key.value for key, _ in root.value]
    path = folder / original.name
    for key in data:
        changed = [other for other in data if other != key]
        path.write_text("\n".join(f"{name}: {original_text(original, name)}" for name in changed))
        said = complaint(path)
        if key in {"stack", "launch", "repeat", "seed", "tags"}:
            assert not said
        else:
            assert f"{path}:1: {key}: is missing; expected" in said


def original_text(original: Path, key: str) -> str:
    """Return the text of a top-level value as the file has it."""
    text = original.read_text()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    (value,) = [value for name, value in root.value if name.value == key]
    indented = text[value.start_mark.index : value.end_mark.index]
    return indented if value.start_mark.line == value.end_mark.line else f"\n{' ' * value.start_mark.column}{indented}"
