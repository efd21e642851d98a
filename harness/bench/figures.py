"""What every benchmark yields: figures with limits, printed as a table and written as JSON."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from harness.errors import StoreError


@dataclass(frozen=True, slots=True)
class BenchFigure:
    """Samples of one figure, and what its value (their median, or their largest) is held against.

    No limit: told only.
    """

    unit: str
    samples: Sequence[float]
    limit: float | None = None
    op: Literal["max", "min"] = "max"
    worst: bool = False

    @property
    def value(self) -> float:
        """The median, or the largest sample where `worst` asks for it; inf without samples."""
        if not self.samples:
            return math.inf
        return max(self.samples) if self.worst else statistics.median(self.samples)

    @property
    def ok(self) -> bool:
        """Whether the limit holds."""
        if not self.samples:
            return False
        if self.limit is None:
            return True
        return self.value <= self.limit if self.op == "max" else self.value >= self.limit

    def as_json(self) -> dict[str, Any]:
        """The documented form; infinity is the word "inf"."""
        ordered = sorted(self.samples)
        told = {
            "value": self.value,
            "unit": self.unit,
            "limit": self.limit,
            "ok": self.ok,
            "n": len(ordered),
            "min": ordered[0] if ordered else None,
            "p50": statistics.median(ordered) if ordered else None,
            "p95": ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else None,
            "max": ordered[-1] if ordered else None,
        }
        return {key: "inf" if value == math.inf else value for key, value in told.items()}


def conclude(
    bench: str,
    figures: Mapping[str, BenchFigure],
    *,
    environment: Mapping[str, Any],
    quick: bool,
    json_file: Path | None,
) -> int:
    """Print the figures, write them where asked, and return 0 only if every limit holds (1 otherwise)."""
    table = Table(title=f"bench {bench}{' (quick: never evidence)' if quick else ''}")
    for column in ("figure", "value", "limit", "n", "min", "median", "max", ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    for name, figure in figures.items():
        told = figure.as_json()
        limit = "" if figure.limit is None else f"{'≤' if figure.op == 'max' else '≥'} {figure.limit:g}"
        table.add_row(
            name,
            f"{_number(told['value'])} {figure.unit}",
            limit,
            str(told["n"]),
            *(_number(told[key]) for key in ("min", "p50", "max")),
            "[green]ok[/]" if figure.ok else "[bold red]MISSED[/]",
        )
    Console(width=max(Console().width, 110)).print(table)
    if json_file is not None:
        content: dict[str, Any] = {"bench": bench, "environment": dict(environment)}
        if quick:
            content["quick"] = True
        content["figures"] = {name: figure.as_json() for name, figure in figures.items()}
        try:
            json_file.write_text(json.dumps(content, indent=2) + "\n")
        except OSError as error:
            raise StoreError(f"{json_file} cannot be written: {error.strerror}; choose another --json FILE") from error
    return 0 if all(figure.ok for figure in figures.values()) else 1


def _number(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.4g}"
