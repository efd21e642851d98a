"""The JSON Schema accepts what the loader accepts, and refuses what is plainly no scenario."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from harness.judge.figures import FIGURES
from harness.scenario import json_schema, shipped

KNOWN = {
    "$schema", "$defs", "$ref", "title", "description", "default", "type", "properties", "required", "enum", "const",
    "additionalProperties", "items", "anyOf", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "maxLength", "minItems", "minProperties", "patternProperties", "propertyNames",
}  # fmt: skip
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def fits(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Judge a value by the keywords that our schema uses; an unknown keyword is an error of this test."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema and not any(fits(value, one, root) for one in schema["anyOf"]):
        return False
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return False
    if "type" in schema and not _is_of(value, schema["type"]):
        return False
    if isinstance(value, dict):
        return _object_fits(value, schema, root)
    if isinstance(value, list):
        items = schema.get("items", {})
        return len(value) >= schema.get("minItems", 0) and all(fits(item, items, root) for item in value)
    if isinstance(value, str):
        return bool(re.search(schema.get("pattern", ""), value)) and len(value) >= schema.get("minLength", 0)
    return not isinstance(value, int | float) or schema.get("minimum", value) <= value <= schema.get("maximum", value)


def _is_of(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean") == isinstance(value, bool)


def _object_fits(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    if not set(schema.get("required", ())) <= set(value) or len(value) < schema.get("minProperties", 0):
        return False
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key, inner in value.items():
        if key in properties:
            if not fits(inner, properties[key], root):
                return False
        elif others is False or (isinstance(others, dict) and not fits(inner, others, root)):
            return False
    return True


def data_of(name: str) -> Any:
    (path,) = [path for path in shipped() if path.stem == name]
    text = path.read_text().replace("{on: local}", "{'on': local}")
    return yaml.safe_load(text)


@pytest.mark.parametrize("name", [path.stem for path in shipped()])
def test_shipped_scenarios_fit_the_schema(name: str) -> None:
    schema = json_schema()
    assert fits(data_of(name), schema, schema)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("scenario",), "Not A Slug"),
        (("claim",), ""),
        (("unknown",), 1),
        (("certifies",), "rank-death"),
        (("workload", "ranks"), 0),
        (("workload", "rnaks"), 4),
        (("stack", "name"), "other"),
        (("faults",), []),
        (("faults", 0, "kill", "rank"), -1),
        (("faults", 0, "kill", "signal"), "NOPE"),
        (("faults", 0, "kill", "unknown"), 1),
        (("faults", 0, "when"), {}),
        (("faults", 0, "stop"), {"rank": 1}),
        (("slo",), {}),
        (("slo", "no_such_figure"), {"max": 1}),
        (("slo", "weights"), "same"),
        (("slo", "detect_s", "max"), "fast"),
        (("slo", "lost_steps", "max"), "3 steps"),
        (("repeat",), 0),
    ],
)
def test_what_is_wrong_does_not_fit(place: tuple[str | int, ...], value: object) -> None:
    schema = json_schema()
    data = copy.deepcopy(data_of("kill-one-rank"))
    inner: Any = data
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    assert not fits(data, schema, schema)


def test_the_schema_is_json_and_names_every_figure() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(schema["properties"]["slo"]["properties"]) == {*FIGURES, "weights"} - {"weights_equal"}
    assert "not" in schema["required"]
    assert set(schema["required"]) == {"scenario", "claim", "why", "certifies", "not", "workload", "faults", "slo"}
