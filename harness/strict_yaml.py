"""A small, strict reading of YAML: plain data plus the line of every field, and never a surprise.

What differs from `yaml.safe_load`, and why:
- Every key and item knows its line, so that an error found much later can still name it.
- Duplicate keys, several documents, anchors, aliases and tags are refused: each of them makes a file mean something
  other than what it seems to say, and aliases can blow a small file up to gigabytes.
- Scalars follow YAML 1.2: `on`, `no` and `1:30` are text, `1e-3` is a number. Keys are always text.
- Size, depth and kind of file are limited before anything is read, so that a wrong path costs no memory and no time.

The tree is built from parser events with a stack of its own; no input can exhaust Python's.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness.errors import ScenarioError
from harness.terminal import visible
from harness.words import nearest

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16

FieldPath = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# Longer numbers are not meant as numbers; converting them would take time that grows with the square of their length.
_LONGEST_NUMBER = 64


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML mapping and where each of its fields stands. Sequences are tuples."""

    path: Path
    data: Mapping[str, Any]
    lines: Mapping[FieldPath, int]

    def line(self, place: FieldPath) -> int:
        """Return the line (from 1) of a field, or of the nearest enclosing one that the file holds."""
        for length in range(len(place), 0, -1):
            found = self.lines.get(place[:length])
            if found is not None:
                return found
        return self.lines.get((), 1)


def read_document(path: Path) -> Document:
    """Read one file. Raises ScenarioError that names the file, the line and what was expected."""
    return parse_document(path, _decode(path, _read(path)))


def parse_document(path: Path, text: str) -> Document:
    """Read `text`; `path` is only named in errors. Raises ScenarioError."""
    builder = _Builder(path)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(path, text, error) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _error(path, line, f"character {error.character!r} is not allowed in YAML; expected text") from None
    if not builder.documents:
        raise _error(path, 1, "the file holds no YAML document; expected a mapping that starts with 'scenario: NAME'")
    return Document(path=path, data=builder.root, lines=builder.lines)


def _error(path: Path, line: int, message: str) -> ScenarioError:
    return ScenarioError(f"{visible(str(path))}:{line}: {visible(message)}")


def _read(path: Path) -> bytes:
    shown = visible(str(path))
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise ScenarioError(
                f"{shown}: is a folder; expected a scenario file, for instance {shown.rstrip('/')}/*.yaml"
            )
        if not stat.S_ISREG(found.st_mode):
            raise ScenarioError(f"{shown}: is not a regular file; expected a scenario file")
        if found.st_size > MAX_BYTES:
            raise ScenarioError(
                f"{shown}: holds {found.st_size} bytes; expected a scenario file of at most {MAX_BYTES} bytes"
            )
        with path.open("rb") as file:
            # One byte more than allowed is enough to notice a file that grew in between.
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        near = nearest(path.name, [found.name for found in path.parent.glob("*.y*ml")])
        hint = "" if near is None else f"; did you mean '{visible(str(path.parent / near))}'?"
        raise ScenarioError(f"{shown}: no such file; expected the path of a scenario file{hint}") from None
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{shown}: cannot be read: {visible(str(error))}") from None
    if len(data) > MAX_BYTES:
        raise ScenarioError(f"{shown}: expected a scenario file of at most {MAX_BYTES} bytes")
    return data


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; expected a text file in UTF-8"
        raise _error(path, line, message) from None


def _syntax_error(path: Path, text: str, error: yaml.MarkedYAMLError) -> ScenarioError:
    mark = error.problem_mark or error.context_mark
    line = 1 if mark is None else mark.line + 1
    rows = text.splitlines()
    row = rows[line - 1] if line <= len(rows) else ""
    if "\t" in row[: len(row) - len(row.lstrip())] or "'\\t'" in (error.problem or ""):
        return _error(path, line, "a tab; expected spaces (YAML does not allow tabs for indentation)")
    parts = [part for part in (error.context, error.problem) if part]
    return _error(path, line, f"not valid YAML: {', '.join(parts)}")


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not been seen yet."""

    place: FieldPath
    value: dict[str, Any] | list[Any]
    key: str | None = None
    key_lines: dict[str, int] = field(default_factory=dict)


class _Builder:
    """Turns parser events into data. One event at a time, with an explicit stack."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack: list[_Open] = []
        self.lines: dict[FieldPath, int] = {}
        self.root: dict[str, Any] = {}
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event. Raises ScenarioError on what this reading refuses."""
        assert event.start_mark is not None  # PyYAML's parser marks every event.
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise _error(self._path, line, "a second YAML document; expected one scenario a file")
        elif isinstance(event, yaml.AliasEvent):
            raise _error(self._path, line, f"alias '*{event.anchor}'; expected the value written out")
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            self._refuse_decoration(event, line)
            self._value(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()

    def _refuse_decoration(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, line: int) -> None:
        if event.anchor is not None:
            raise _error(
                self._path, line, f"anchor '&{event.anchor}'; expected plain values without anchors and aliases"
            )
        if event.tag is not None:
            raise _error(self._path, line, f"tag '{event.tag}'; expected plain values without tags")

    def _value(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, line: int) -> None:
        top = self._stack[-1] if self._stack else None
        if top is None and not isinstance(event, yaml.MappingStartEvent):
            raise _error(self._path, line, "not a mapping; expected 'scenario: NAME' and further 'key: value' lines")
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._key(top, event, line)
            return
        place = self._place(top)
        # The line of a mapping entry is its key's, which was noted with the key.
        self.lines.setdefault(place, line)
        if isinstance(event, yaml.ScalarEvent):
            self._put(top, _scalar(event))
            return
        if len(self._stack) >= MAX_DEPTH:
            raise _error(self._path, line, f"nested deeper than {MAX_DEPTH} levels; expected a scenario")
        self._stack.append(_Open(place, {} if isinstance(event, yaml.MappingStartEvent) else []))

    def _key(self, top: _Open, event: yaml.ScalarEvent | yaml.CollectionStartEvent, line: int) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            raise _error(self._path, line, "a list or mapping as key; expected a word as key")
        key = event.value
        if key in top.key_lines:
            name, first = field_name((*top.place, key)), top.key_lines[key]
            message = f"{name}: the key appears twice; expected it once (first in line {first})"
            raise _error(self._path, line, message)
        top.key = key
        top.key_lines[key] = line
        self.lines[(*top.place, key)] = line

    def _place(self, top: _Open | None) -> FieldPath:
        if top is None:
            return ()
        if isinstance(top.value, dict):
            assert top.key is not None
            return (*top.place, top.key)
        return (*top.place, len(top.value))

    def _put(self, top: _Open | None, value: Any) -> None:
        assert top is not None
        if isinstance(top.value, dict):
            assert top.key is not None
            top.value[top.key] = value
            top.key = None
        else:
            top.value.append(value)

    def _close(self) -> None:
        done = self._stack.pop()
        value = done.value if isinstance(done.value, dict) else tuple(done.value)
        if self._stack:
            self._put(self._stack[-1], value)
        else:
            assert isinstance(value, dict)
            self.root = value


def _scalar(event: yaml.ScalarEvent) -> str | int | float | bool | None:
    text: str = event.value
    if event.style is not None:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    return _number(text)


def _number(text: str) -> str | int | float:
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    special = _SPECIAL.fullmatch(text)
    if special is None:
        return text
    if special[1] is None:
        return math.nan
    return -math.inf if special[1] == "-" else math.inf


def field_name(place: FieldPath) -> str:
    """Return a field's path as written in errors: `faults[0].kill.rank`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
