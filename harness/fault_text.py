"""The `faults` block of a scenario file, read by `chaos.fault`; its JSON Schema comes from the same table of kinds."""

from __future__ import annotations

import re
from typing import Any

from chaos.errors import InputError
from chaos.fault import KINDS, LEASE_MIN_S, Fault, KindSpec, Param, check_chains, parse_fault
from chaos.trigger import CONDITIONS
from harness.problems import Problem, shown
from harness.strict_yaml import FieldPath

_PART = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")
_LONGEST_MESSAGE = 400
_ANY_OR_NODE = {"type": "string", "minLength": 1, "description": "n0, n1, …, or any"}
_TARGET_SCHEMAS: dict[str, dict[str, Any]] = {
    "rank": {"anyOf": [{"type": "integer", "minimum": 0}, {"const": "any"}]},
    "spare": {"const": "any"},
    "node": _ANY_OR_NODE,
    "agent": _ANY_OR_NODE,
    "controller": {"const": True},
}


def parse_faults(raw: Any, place: FieldPath) -> tuple[tuple[Fault, ...], list[Problem]]:
    """Read the list. A fault that could not be read is missing from the result and named by a problem."""
    if not isinstance(raw, tuple | list):
        return (), [Problem(place, f"expected a list of faults, found {shown(raw)}")]
    if not raw:
        return (), [Problem(place, "is empty; expected at least one fault; 'noop' is the one that does nothing")]
    faults: list[Fault] = []
    problems: list[Problem] = []
    for index, item in enumerate(raw):
        if not isinstance(item, dict):
            problems.append(
                Problem((*place, index), f"expected a mapping such as 'kill: {{rank: 2}}', found {shown(item)}")
            )
            continue
        try:
            faults.append(parse_fault(index, item))
        except InputError as error:
            problems.append(as_problem(error))
    if not problems:
        try:
            check_chains(faults)
        except InputError as error:
            problems.append(as_problem(error))
    return tuple(faults), problems


def as_problem(error: InputError) -> Problem:
    """Translate an error of `chaos`, whose field is a whole path such as `faults[0].kill.rank`."""
    message = str(error).removeprefix(f"{error.field}: ")
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]}…"
    return Problem(field_path(error.field), message)


def field_path(text: str) -> FieldPath:
    """Return `faults[0].kill.rank` as a path."""
    return tuple(word or int(number) for word, number in _PART.findall(text))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the block, from the table of kinds."""
    settings = {
        "when": _when_schema(),
        "duration_s": {"type": "number", "exclusiveMinimum": 0, "description": "healed by us after this long"},
        "lease_s": {"type": "number", "minimum": LEASE_MIN_S, "description": "healed by the reapers after this long"},
        "transient": {"type": "boolean", "description": "a recovery after our heal counts as one"},
    }
    kinds = [
        {
            "type": "object",
            "description": spec.doc,
            "properties": {name: _kind_schema(spec), **settings},
            "required": [name, "when"],
            "additionalProperties": False,
        }
        for name, spec in KINDS.items()
    ]
    return {"type": "array", "minItems": 1, "items": {"anyOf": kinds}}


def _kind_schema(spec: KindSpec) -> dict[str, Any]:
    targets = {name: _TARGET_SCHEMAS[name] for name in spec.targets}
    params = {param.name: _param_schema(param) for param in spec.params}
    return {
        "type": "object",
        "properties": {**targets, **params},
        "anyOf": [{"required": [name]} for name in spec.targets],
        "additionalProperties": False,
    }


def _param_schema(param: Param) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": param.doc, "default": param.default}
    if param.allowed:
        return {**schema, "enum": list(param.allowed)}
    kind = "boolean" if isinstance(param.default, bool) else "string" if isinstance(param.default, str) else "number"
    return {**schema, "type": kind}


def _when_schema() -> dict[str, Any]:
    word = {"type": "string", "minLength": 1}
    conditions = {
        "step": {"type": "integer", "minimum": 1},
        "phase": word,
        "after_s": {"type": "number", "minimum": 0},
        "event": word,
    }
    return {
        "type": "object",
        "description": "conditions that must all hold",
        "properties": {name: conditions[name] for name in CONDITIONS},
        "additionalProperties": False,
        "minProperties": 1,
    }
