"""All observations of one drill, in order of time, immutable. Pure: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from harness.observe.observation import Observation

Kind = TypeVar("Kind", bound=Observation)


class Timeline:
    """An immutable, time-ordered sequence of observations. Records of equal time keep the order they were given in."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self._observations: tuple[Observation, ...] = tuple(sorted(observations, key=attrgetter("at_s")))
        # Grouped once: 10,000 ranks write millions of step records, and every figure asks for some other kind.
        grouped: dict[type[Any], list[Any]] = {}
        for seen in self._observations:
            grouped.setdefault(type(seen), []).append(seen)
        self._by_kind: dict[type[Any], tuple[Any, ...]] = {kind: tuple(rows) for kind, rows in grouped.items()}

    def __iter__(self) -> Iterator[Observation]:
        return iter(self._observations)

    def __len__(self) -> int:
        return len(self._observations)

    def of(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """Return the observations of one type, in order of time."""
        return self._by_kind.get(kind, ())

    def first(self, kind: type[Kind]) -> Kind | None:
        """Return the earliest observation of one type, or None."""
        return next(iter(self.of(kind)), None)
