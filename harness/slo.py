"""The `slo` block of a scenario: which figure may be how large, in its own unit or in steps.

A percentile is a promise about runs that were not made. With n repeats that all keep a limit, one may say with 95 %
confidence that at least a share p of all runs keep it when p**n <= 0.05; fewer repeats than that are refused. Each
repeat is then held to the limit, which is exactly what that statement needs, so a percentile is judged as a `max`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.judge.figures import FIGURES
from harness.problems import Problem, shown
from harness.strict_yaml import FieldPath
from harness.words import nearest, one_of

Operator = Literal["max", "min", "equal"]

CONFIDENCE = 0.95
WEIGHTS = "weights"
WEIGHTS_FIGURE = "weights_equal"
OPERATORS: tuple[str, ...] = ("max", "min", "equal")
PERCENTILES: Mapping[str, float] = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}

_STEPS = re.compile(r"([0-9]+(?:\.[0-9]+)?) steps?")


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit. `unit` is "steps" when the value counts median steps before the fault; `percentile` is e.g. "p95"."""

    slo: str
    op: Operator
    value: float
    unit: Literal["figure", "steps"]
    percentile: str | None = None


@dataclass(frozen=True, slots=True)
class Slo:
    """All limits of a scenario, in file order."""

    limits: tuple[Bound, ...]
    weights_equal: bool


def figure_names() -> tuple[str, ...]:
    """Return the keys that an `slo` block may hold."""
    return (*(name for name in FIGURES if name != WEIGHTS_FIGURE), WEIGHTS)


def repeats_needed(share: float) -> int:
    """Return how many clean repeats support, at 95 % confidence, that at least `share` of all runs keep a limit."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(share))


def parse_slo(raw: Any, place: FieldPath) -> tuple[Slo, list[Problem]]:
    """Read the block. What could not be read is missing from the result and named by a problem."""
    if not isinstance(raw, Mapping):
        return Slo((), False), [Problem(place, f"expected a mapping of figures to limits, found {shown(raw)}")]
    if not raw:
        example = "for instance 'first_step_s: {max: 1.0}'"
        return Slo((), False), [Problem(place, f"is empty; expected at least one limit, {example}")]
    limits: list[Bound] = []
    problems: list[Problem] = []
    for name, text in raw.items():
        if name == WEIGHTS:
            problems.extend(_weights_problems(text, (*place, name)))
            continue
        for found in _figure(name, text, (*place, name)):
            if isinstance(found, Bound):
                limits.append(found)
            else:
                problems.append(found)
    return Slo(tuple(limits), WEIGHTS in raw), problems


def percentile_problems(slo: Slo, repeat: int, place: FieldPath) -> Iterator[Problem]:
    """Yield a problem for each percentile that `repeat` repeats cannot support."""
    for bound in slo.limits:
        if bound.percentile is None:
            continue
        needed = repeats_needed(PERCENTILES[bound.percentile])
        if repeat < needed:
            message = (
                f"{bound.percentile} at {CONFIDENCE:.0%} confidence needs {needed} repeats, the scenario has {repeat}; "
                f"expected 'repeat: {needed}' or more, or 'max'"
            )
            yield Problem((*place, bound.slo, bound.percentile), message)


def _weights_problems(text: Any, place: FieldPath) -> Iterator[Problem]:
    if text != "equal":
        near = nearest(text, ("equal",)) if isinstance(text, str) else None
        yield Problem(place, f"expected 'equal', found {shown(text)}", near)


def _figure(name: str, text: Any, place: FieldPath) -> Iterator[Bound | Problem]:
    valid = figure_names()
    if name not in valid:
        near = WEIGHTS if name == WEIGHTS_FIGURE else nearest(name, valid)
        yield Problem(place, f"unknown figure; expected {one_of(valid)}", near)
        return
    operators = (*OPERATORS, *PERCENTILES) if _smaller_is_better(name) else OPERATORS
    if not isinstance(text, Mapping) or not text:
        yield Problem(
            place, f"expected a limit such as '{{max: 1.0}}', found {shown(text) if text != {} else 'nothing'}"
        )
        return
    for op, value in text.items():
        if op not in operators:
            yield Problem((*place, op), f"unknown kind of limit; expected {one_of(operators)}", nearest(op, operators))
            continue
        yield _bound(name, op, value, (*place, op))
    yield from _contradictions(text, place)


def _bound(name: str, op: str, value: Any, place: FieldPath) -> Bound | Problem:
    timed = name.endswith("_s")
    expected = "a number of seconds that is not negative, or '45 steps'" if timed else "a number that is not negative"
    percentile = op if op in PERCENTILES else None
    kind: Any = "max" if percentile is not None else op
    if isinstance(value, str) and timed:
        counted = _STEPS.fullmatch(value)
        if counted is not None:
            return Bound(name, kind, float(counted[1]), "steps", percentile)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return Problem(place, f"expected {expected}, found {shown(value)}")
    return Bound(name, kind, float(value), "figure", percentile)


def _contradictions(text: Mapping[str, Any], place: FieldPath) -> Iterator[Problem]:
    if "equal" in text and len(text) > 1:
        yield Problem((*place, "equal"), "expected 'equal' alone, or 'max' and 'min'")
    low, high = text.get("min"), text.get("max")
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        yield Problem((*place, "min"), f"expected at most the value of 'max' ({high}), found {low}")


def _smaller_is_better(name: str) -> bool:
    return name == WEIGHTS or FIGURES[name].direction == "lower"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the block, from the table of figures."""
    properties: dict[str, Any] = {
        WEIGHTS: {"const": "equal", "description": "the weights of an unfaulted run, bit by bit"}
    }
    for name in figure_names():
        if name != WEIGHTS:
            properties[name] = _figure_schema(name)
    return {
        "type": "object",
        "description": "limits by figure; at least one",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
    }


def _figure_schema(name: str) -> dict[str, Any]:
    number: dict[str, Any] = {"type": "number", "minimum": 0}
    steps = {"type": "string", "pattern": f"^{_STEPS.pattern}$"}
    value = {"anyOf": [number, steps]} if name.endswith("_s") else number
    operators = (*OPERATORS, *PERCENTILES) if _smaller_is_better(name) else OPERATORS
    return {
        "type": "object",
        "description": FIGURES[name].doc,
        "properties": dict.fromkeys(operators, value),
        "additionalProperties": False,
        "minProperties": 1,
    }
