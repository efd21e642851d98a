"""Events and commands as JSON lines between controller and agents."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, cast

import numpy as np

from harness.resilience.control import commands, events

_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        events.NodeJoined,
        events.MembersReady,
        events.MembersExited,
        events.MembersParked,
        events.MembersFormed,
        events.MembersFinished,
        events.MembersRaised,
        events.RestockFailed,
        commands.Park,
        commands.Form,
        commands.Release,
        commands.Restock,
        commands.Finish,
        commands.Stop,
    )
}


@dataclasses.dataclass(frozen=True, slots=True)
class Digests:
    """What a node's members are doing. `digests` holds a row of the stethoscope per member, shape (members, words)."""

    node: int
    members: list[int]
    phases: list[str]
    digests: list[list[int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Published:
    """A rank's address for a generation's group."""

    node: int
    generation: int
    rank: int
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class Addresses:
    """All ranks' addresses for a generation's group."""

    generation: int
    values: dict[str, str]


_TYPES.update({kind.__name__: kind for kind in (Digests, Published, Addresses)})


def encode(message: Any) -> bytes:
    """One line, newline included."""
    fields: dict[str, Any] = {"is": type(message).__name__}
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        fields[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Any:
    """The event, command or message that `encode` wrote. Raises ValueError for anything else."""
    fields = json.loads(line)
    if not isinstance(fields, dict) or fields.get("is") not in _TYPES:
        raise ValueError(f"not a message of this version: {line[:80]!r}")
    kind = _TYPES[cast(str, fields.pop("is"))]
    for field in dataclasses.fields(kind):
        if field.type == "Ints":
            fields[field.name] = np.array(fields[field.name], dtype=np.int64)
        elif str(field.type).startswith("tuple["):
            fields[field.name] = tuple(fields[field.name])
    return kind(**fields)
