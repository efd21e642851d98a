"""What is wrong with a scenario file: a place, an expectation and the nearest valid word; written as one line each."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from harness.errors import ScenarioError
from harness.strict_yaml import Document, FieldPath, field_name
from harness.terminal import visible
from harness.words import nearest, one_of

MOST_LINES = 3
_LONGEST_VALUE = 60
# The lists of a scenario that are read here hold words; faults are read by chaos.
_LIST_ITEM = "a word of lower-case letters and digits, joined by '-'"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `message` says what was expected; `near` is the word that was probably meant."""

    place: FieldPath
    message: str
    near: str | None = None

    def __str__(self) -> str:
        hint = "" if self.near is None else f"; did you mean '{visible(self.near)}'?"
        return f"{visible(self.message)}{hint}"


def scenario_error(document: Document, problems: Iterable[Problem]) -> ScenarioError:
    """Return one error of at most three lines that names file, line and field of each problem, in order of line."""
    ordered = sorted(problems, key=lambda problem: document.line(problem.place))
    lines = [problem_line(document, problem.place, str(problem)) for problem in ordered]
    if len(lines) > MOST_LINES:
        rest = len(lines) - MOST_LINES + 1
        lines = [*lines[: MOST_LINES - 1], f"{visible(str(document.path))}: and {rest} more; fix these first"]
    return ScenarioError("\n".join(lines))


def problem_line(document: Document, place: FieldPath, text: str) -> str:
    """Return "file:line: field: text"."""
    name = visible(field_name(place)) or "file"
    return f"{visible(str(document.path))}:{document.line(place)}: {name}: {text}"


def shown(value: object) -> str:
    """Return a value as an error shows it: short, and by what the file says rather than by Python's types."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def from_validation(error: ValidationError, model: type[BaseModel], document: Document) -> list[Problem]:
    """Translate pydantic's findings into problems. Findings inside one union count once."""
    found: dict[FieldPath, Problem] = {}
    for detail in error.errors(include_url=False, include_context=True):
        place = _known_place(tuple(detail["loc"]), detail["type"], document)
        found.setdefault(place, _problem(place, dict(detail), model))
    # A list that is too short because its item is wrong is one mistake, not two.
    return [problem for place, problem in found.items() if not any(_within(other, place) for other in found)]


def _within(inner: FieldPath, outer: FieldPath) -> bool:
    return len(inner) > len(outer) > 0 and inner[: len(outer)] == outer


def _known_place(location: FieldPath, kind: str, document: Document) -> FieldPath:
    """Cut what pydantic adds to a location (names of union members, "[key]") and the file does not hold."""
    place: FieldPath = ()
    for part in location:
        if (*place, part) not in document.lines:
            return (*place, part) if kind == "missing" else place
        place = (*place, part)
    return place


def _problem(place: FieldPath, detail: dict[str, Any], model: type[BaseModel]) -> Problem:
    kind = detail["type"]
    if kind == "extra_forbidden":
        word, valid = str(place[-1]), keys_of(model, place[:-1])
        return Problem(place, f"unknown key; expected {one_of(valid)}", nearest(word, valid))
    in_list = bool(place) and isinstance(place[-1], int)
    expectation = _LIST_ITEM if in_list else _description(model, place) or str(detail["msg"])
    if kind == "missing":
        return Problem(place, f"is missing; expected {expectation}")
    valid = _literals(model, place)
    value = detail["input"]
    near = nearest(value, valid) if isinstance(value, str) else None
    return Problem(place, f"expected {one_of(valid) if valid else expectation}, found {shown(value)}", near)


def keys_of(model: type[BaseModel], place: FieldPath) -> tuple[str, ...]:
    """Return the keys that the mapping at `place` may hold, as a file writes them."""
    for part in place:
        inner = _inner_model(model, str(part))
        if inner is None:
            return ()
        model = inner
    return tuple(info.alias or name for name, info in model.model_fields.items())


def _field(model: type[BaseModel], place: FieldPath) -> Any:
    """Return pydantic's FieldInfo of the deepest named field on the way to `place`."""
    info = None
    for part in place:
        by_key = {(found.alias or name): found for name, found in model.model_fields.items()}
        if str(part) not in by_key:
            break
        info = by_key[str(part)]
        inner = _inner_model(model, str(part))
        if inner is None:
            break
        model = inner
    return info


def _inner_model(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    for name, info in model.model_fields.items():
        if key == (info.alias or name) and isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            return info.annotation
    return None


def _description(model: type[BaseModel], place: FieldPath) -> str | None:
    info = _field(model, place)
    return None if info is None else info.description


def _literals(model: type[BaseModel], place: FieldPath) -> tuple[str, ...]:
    info = _field(model, place)
    options = () if info is None else (info.annotation, *typing.get_args(info.annotation))
    for option in options:
        if typing.get_origin(option) is typing.Literal:
            return tuple(str(value) for value in typing.get_args(option))
    return ()
