"""The benchmarks that `rankdrill bench NAME` knows, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

Bench = Callable[[bool, Path | None], int]
"""Takes `quick` and the file for the figures, prints them, and returns 0 only if every limit holds."""

NAMES: Mapping[str, Bench] = {}
