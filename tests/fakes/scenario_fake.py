"""Scenario files for the fake stack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.fakes.stack_fake import PROGRAM

KILL = {"kill": {"rank": 1}, "when": {"step": 40}}
NOOP = {"noop": {"rank": 1}, "when": {"step": 40}}


def write_scenario(
    folder: Path,
    *,
    name: str = "fake-drill",
    faults: tuple[Mapping[str, object], ...] = (KILL,),
    slo: Mapping[str, object] | None = None,
    workload: Mapping[str, object] | None = None,
    **fields: object,
) -> Path:
    """Write a scenario of 3 ranks and a spare on 2 nodes for 60 steps of 20 ms, with what is given on top."""
    content = {
        "scenario": name,
        "claim": "A killed rank is replaced.",
        "why": "One card dies.",
        "certifies": ["rank-death"],
        "not": ["network"],
        "workload": {"program": str(PROGRAM), "ranks": 3, "spares": 1, "nodes": 2, "steps": 60, **(workload or {})},
        "stack": {"name": "reference", "limits": "ci"},
        "faults": list(faults),
        "slo": {"weights": "equal", "lost_steps": {"max": 0}} if slo is None else dict(slo),
        **fields,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path
