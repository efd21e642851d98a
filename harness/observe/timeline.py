"""All observations of one drill, in order of time, immutable. Pure: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from harness.observe.observation import Observation

Kind = TypeVar("Kind", bound=Observation)


class Timeline:
    """An immutable, time-ordered sequence of observations. Records of equal time keep the order they were given in."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self._observations: tuple[Observation, ...] = tuple(sorted(observations, key=lambda seen: seen.at_s))

    def __iter__(self) -> Iterator[Observation]:
        return iter(self._observations)

    def __len__(self) -> int:
        return len(self._observations)

    def of(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """Return the observations of one type, in order of time."""
        return tuple(seen for seen in self._observations if isinstance(seen, kind))

    def first(self, kind: type[Kind]) -> Kind | None:
        """Return the earliest observation of one type, or None."""
        return next((seen for seen in self._observations if isinstance(seen, kind)), None)
