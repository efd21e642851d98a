"""docs/report-schema.md, written from the model; `python -m harness.report.schema_doc FILE` writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.judge.figures import BADPUT_CAUSES, FIGURES
from harness.report.model import SCHEMA_VERSION, Report

_HEAD = f"""# report.json

Written from `harness/report/model.py` by `python -m harness.report.schema_doc docs/report-schema.md`; a test fails when
the two differ.

This is schema version {SCHEMA_VERSION}. Keys may be added within a version, so ignore those you do not know; a changed
meaning or a removed key makes a new version.

- Every duration and every moment ends in `_s` and is in seconds. Moments inside a repeat count from just before that
  repeat's first process was started. Where a table says otherwise, it holds.
- JSON has no infinity: a number that may be infinite is written as the string `"inf"` then. `first_step_s: "inf"` means
  that the step was not seen by the horizon.
- A figure that does not apply is `null`; so is one that cannot be known, and then `unknown` says why.
- Text of a run is cut at 20,000 characters. It is not escaped: whoever shows it must do so for his format.
- The exit codes are 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 ERROR.
"""


def text() -> str:
    """Return the document."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    schema = Report.model_json_schema(mode="serialization")
    parts: Mapping[str, Any] = schema["$defs"]
    yield _HEAD
    yield from _part("Report", schema)
    for name in _in_order(schema, parts):
        yield from _part(name, parts[name])
    yield "## Figures"
    yield ""
    yield "The keys of `figures` and of `summary`; docs/figures.md explains each."
    yield ""
    yield "| figure | unit | what it measures | better |"
    yield "|---|---|---|---|"
    for name, spec in FIGURES.items():
        yield f"| `{name}` | {spec.unit} | {spec.doc} | {spec.direction} |"
    yield ""
    yield f"The causes in `badput_s`: {', '.join(f'`{cause}`' for cause in BADPUT_CAUSES)}."
    yield ""


def _in_order(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> list[str]:
    """Return the names of all parts, each after the one that first uses it."""
    found: dict[str, None] = {}
    queue = [schema]
    while queue:
        for name in _references(queue.pop(0)):
            if name not in found:
                found[name] = None
                queue.append(parts[name])
    return list(found)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value.rpartition("/")[2]
            elif key != "$defs":
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _part(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield schema["description"]
    yield ""
    yield "| key | type | meaning |"
    yield "|---|---|---|"
    for key, field in schema["properties"].items():
        yield f"| `{key}` | {_type(field)} | {field.get('description', '')} |"
    yield ""


def _type(field: Mapping[str, Any]) -> str:
    """Return a field's type in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(option) for option in field["anyOf"]))
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f'`"{value}"`' for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if field.get("type") == "object":
        return f"object of {_type(field['additionalProperties'])}"
    return str(field.get("type", "any"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
