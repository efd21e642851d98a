"""The benchmarks that `rankdrill bench NAME` knows, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

Bench = Callable[[bool, Path | None], int]
"""Takes `quick` and the file for the figures, prints them, and returns 0 only if every limit holds."""


def _recovery(quick: bool, json_file: Path | None) -> int:
    # Imported when it is called: the command line must start fast.
    from harness.bench.recovery import bench

    return bench(quick, json_file)


NAMES: Mapping[str, Bench] = MappingProxyType({"recovery": _recovery})
