"""Step records -> full-world steps, breaks of the world, surviving history, missing records. Each in one pass."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from harness.observe.observation import MemberId, StepDone

Row = list[StepDone | None]


@dataclass(frozen=True, slots=True)
class Completion:
    """A step that every rank of the whole world completed. `gap_s` is the time since the completion before it."""

    step: int
    generation: int
    attempt: int
    at_s: float
    gap_s: float | None


@dataclass(frozen=True, slots=True)
class Break:
    """A world begins anew: another generation, another process in a rank, or a step executed again.

    `completed` is the highest step that every rank of the world before had completed, `begun` the highest that any had.
    `again` are the ranks that, in this world, executed a step <= `completed`.
    """

    at_s: float
    completed: int
    begun: int
    first_step: int
    again: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Absence:
    """A rank without records while the others went on; in a synchronous run it must have stepped too."""

    rank: int
    generation: int
    from_step: int


@dataclass(frozen=True, slots=True)
class Change:
    """A rank passed from one process to another."""

    at_s: float
    rank: int
    old: MemberId
    new: MemberId


@dataclass(frozen=True, slots=True)
class StepLog:
    """Everything the figures ask of step records."""

    records: Sequence[StepDone]
    completions: Sequence[Completion]
    breaks: Sequence[Break]
    rows: Mapping[int, Row]
    absences: Sequence[Absence]
    changes: Sequence[Change]

    def completed_by(self, at_s: float) -> int:
        """Return the newest full-world step completed at or before a moment, 0 if none."""
        done = 0
        for completion in self.completions:
            if completion.at_s > at_s:
                break
            done = completion.step
        return done


def read_steps(records: Sequence[StepDone], world: int) -> StepLog:
    """Read the step records of a run that was asked for `world` ranks."""
    # A record of an old generation belongs to the old world however late it comes; equal times have one order only.
    ordered = sorted(records, key=attrgetter("generation", "at_s", "step", "rank"))
    return StepLog(
        records=ordered,
        completions=tuple(_completions(ordered, world)),
        breaks=tuple(_breaks(ordered)),
        rows=_rows(ordered),
        absences=tuple(_absences(ordered)),
        changes=tuple(_changes(ordered)),
    )


class _Slot:
    """One step of one generation. The k-th record that a rank writes of it belongs to the k-th attempt."""

    __slots__ = ("counts", "seen")

    def __init__(self, world: int) -> None:
        self.seen = array("L", bytes(array("L").itemsize * world))
        self.counts: list[int] = []

    def add(self, rank: int) -> tuple[int, int]:
        """Count a record; return its attempt and how many ranks that attempt has now."""
        attempt = self.seen[rank]
        self.seen[rank] = attempt + 1
        if attempt == len(self.counts):
            self.counts.append(0)
        self.counts[attempt] += 1
        return attempt, self.counts[attempt]


def _completions(ordered: Sequence[StepDone], world: int) -> Iterator[Completion]:
    slots: dict[tuple[int, int], _Slot] = {}
    done: list[tuple[float, int, int, int]] = []
    for record in ordered:
        if record.world != world or not 0 <= record.rank < world:
            # A world of another size is not the whole world, whatever it completes.
            continue
        key = (record.generation, record.step)
        slot = slots.get(key)
        if slot is None:
            slot = slots[key] = _Slot(world)
        attempt, ranks = slot.add(record.rank)
        if ranks == world:
            done.append((record.at_s, record.step, record.generation, attempt))
    before_s: float | None = None
    for at_s, step, generation, attempt in sorted(done):
        yield Completion(step, generation, attempt, at_s, None if before_s is None else at_s - before_s)
        before_s = at_s


@dataclass
class _World:
    """One world between two breaks, while it is read."""

    generation: int
    size: int
    at_s: float
    completed: int
    begun: int
    first_step: int
    newest: dict[int, StepDone] = field(default_factory=dict)
    again: dict[int, None] = field(default_factory=dict)

    def is_broken_by(self, record: StepDone) -> bool:
        if record.generation != self.generation:
            return True
        last = self.newest.get(record.rank)
        return last is not None and (record.member != last.member or record.step <= last.step)

    def add(self, record: StepDone) -> None:
        self.size = max(self.size, record.world)
        self.first_step = min(self.first_step, record.step)
        self.newest[record.rank] = record
        if record.step <= self.completed:
            self.again[record.rank] = None

    def close(self, tops: dict[int, int]) -> None:
        """Carry into `tops` (newest surviving step by rank) what this world did: what it rolled back is void."""
        for rank, top in tops.items():
            tops[rank] = min(top, self.first_step - 1)
        for rank, record in self.newest.items():
            tops[rank] = max(tops.get(rank, 0), record.step)

    def as_break(self) -> Break:
        return Break(self.at_s, self.completed, self.begun, self.first_step, tuple(sorted(self.again)))


def _breaks(ordered: Sequence[StepDone]) -> Iterator[Break]:
    tops: dict[int, int] = {}
    world: _World | None = None
    started = False
    for record in ordered:
        if world is None or world.is_broken_by(record):
            completed = begun = 0
            if world is not None:
                if started:
                    yield world.as_break()
                started = True
                world.close(tops)
                completed = min(tops.get(rank, 0) for rank in range(world.size))
                begun = max(tops.values())
            world = _World(record.generation, record.world, record.at_s, completed, begun, record.step)
        world.add(record)
    if world is not None and started:
        yield world.as_break()


def _rows(ordered: Sequence[StepDone]) -> dict[int, Row]:
    """Return the surviving history: for each step and rank the record of the highest generation, the latest in it."""
    rows: dict[int, Row] = {}
    sizes: dict[int, int] = {}
    for record in ordered:
        row = rows.get(record.step)
        if row is None:
            row = rows[record.step] = [None] * record.world
        if record.rank >= len(row):
            row.extend([None] * (record.rank + 1 - len(row)))
        row[record.rank] = record
        sizes[record.step] = record.world
    # The last world to execute a step says how many ranks it has: records of ranks that a smaller world lacks are void.
    return {step: (row + [None] * sizes[step])[: sizes[step]] for step, row in rows.items()}


def _absences(ordered: Sequence[StepDone]) -> Iterator[Absence]:
    """Yield ranks two or more steps behind in their generation: nobody finishes n + 1 without everybody's n."""
    place = 0
    while place < len(ordered):
        generation, first_step, world = ordered[place].generation, ordered[place].step, 0
        tops: dict[int, int] = {}
        while place < len(ordered) and ordered[place].generation == generation:
            record = ordered[place]
            if record.step > tops.get(record.rank, 0):
                tops[record.rank] = record.step
            first_step = min(first_step, record.step)
            world = max(world, record.world)
            place += 1
        newest = max(tops.values(), default=0)
        for rank in range(world):
            top = tops.get(rank, first_step - 1)
            if newest - top >= 2:
                yield Absence(rank, generation, top + 1)


def _changes(ordered: Sequence[StepDone]) -> Iterator[Change]:
    holders: dict[int, MemberId] = {}
    for record in ordered:
        old = holders.get(record.rank)
        if old is not None and old != record.member:
            yield Change(record.at_s, record.rank, old, record.member)
        holders[record.rank] = record.member
