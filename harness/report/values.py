"""Value types of report.json that plain JSON lacks: numbers that may be infinite, and text that came from a run.

JSON has no infinity, so one is written as the string "inf" ("-inf", "nan"), and read back as a float.
Text of a run may hold anything; it is made encodable here and capped, and each renderer escapes it for its own format.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

TEXT_CAP_CHARS = 20_000

_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _from_word(value: Any) -> Any:
    return _WORDS.get(value, value) if isinstance(value, str) else value


def to_json_number(value: float | None) -> Any:
    """Return `value` as JSON can hold it: an infinite or undefined number becomes a word.

    The return type is open on purpose: pydantic would turn true into 1.0 to make it fit a number.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _capped(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # A lone surrogate (a file name that is no UTF-8, say) cannot be written to any file; show it as an escape.
    text = value.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) > TEXT_CAP_CHARS:
        return f"{text[:TEXT_CAP_CHARS]}… ({len(text) - TEXT_CAP_CHARS} more characters)"
    return text


_NUMBER_SCHEMA = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]}
_FIGURE_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "boolean"}, {"enum": ["inf"]}, {"type": "null"}]}

Number = Annotated[
    float,
    BeforeValidator(_from_word),
    PlainSerializer(to_json_number, when_used="json"),
    WithJsonSchema(_NUMBER_SCHEMA),
]
"""A float that may be infinite; in JSON then the string "inf"."""

FigureValue = Annotated[
    bool | int | float | None,
    BeforeValidator(_from_word),
    PlainSerializer(to_json_number, when_used="json"),
    WithJsonSchema(_FIGURE_SCHEMA),
]
"""What was measured: a number, true or false, "inf" (never seen) or null (does not apply)."""

RunText = Annotated[str, BeforeValidator(_capped)]
"""Text that came from a run or a scenario: encodable and capped, not yet escaped for any format."""
