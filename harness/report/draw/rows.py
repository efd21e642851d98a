"""Which rows a timeline has, and how tall each is: ranks that faults touched are shown large where there are many."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report.model import Drawing, Hold, Span

SPARE_ROWS_MOST = 8
ALL_TALL_MOST = 12


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the drawing. A spare's row shows a member that holds no rank yet."""

    label: str
    holder: str
    y_px: float
    height_px: float
    rank: int | None
    member: int | None
    tall: bool
    affected: bool

    @property
    def middle_px(self) -> float:
        """Vertical middle of the row."""
        return round(self.y_px + self.height_px / 2, 2)

    @property
    def text_px(self) -> float:
        """Baseline of a text in the middle of the row."""
        return round(self.middle_px + 4, 2)

    @property
    def labelled(self) -> bool:
        """Return whether there is room for the row's own label."""
        return self.height_px >= 9

    @property
    def named(self) -> bool:
        """Return whether the row's name is written: where rows are thin, only ranks that faults touched have room."""
        return self.labelled or (self.affected and self.rank is not None)


@dataclass(frozen=True, slots=True)
class Standby:
    """A spare's wait: from joining until it takes a rank, ends, or the drill ends."""

    member: int
    from_s: float
    to_s: float
    takes: Hold | None


def standbys(drawing: Drawing) -> list[Standby]:
    """Return every wait of a spare, in order of joining.

    Whoever takes a rank before anybody has completed a step is no spare: where a stack hands out ranks only once all
    members are there, all of them join as spares.
    """
    result = []
    first_s = min((track.end_s[0] for track in drawing.tracks if track.end_s), default=drawing.end_s)
    for index, member in enumerate(drawing.members):
        if member.role != "spare" or member.joined_s is None:
            continue
        held = [hold for hold in drawing.holds if hold.member == index]
        takes = min(held, key=lambda hold: hold.from_s, default=None)
        if takes is not None and takes.from_s <= first_s:
            continue
        ends = [drawing.end_s, None if takes is None else takes.from_s, member.exited_s]
        to_s = min(end for end in ends if end is not None)
        result.append(Standby(index, member.joined_s, max(member.joined_s, to_s), takes))
    return sorted(result, key=lambda wait: wait.from_s)


def holder_text(drawing: Drawing, rank: int, window: Span) -> str:
    """Return who holds a rank within a window: "n1/4711", or "n1/4711 → n3/4720" when it changed hands."""
    names = [
        drawing.members[hold.member].name
        for hold in drawing.holds
        if hold.rank == rank and hold.from_s <= window.to_s and hold.to_s >= window.from_s
    ]
    if len(names) > 2:
        return f"{names[0]} → … → {names[-1]}"
    return " → ".join(names)


def layout(drawing: Drawing, window: Span, *, top_px: float, tall_px: float, low_px: float) -> list[Row]:
    """Return the rows of a window. Up to 12 ranks are all tall; beyond, only those that faults touched."""
    ranks = sorted({track.rank for track in drawing.tracks} | {hold.rank for hold in drawing.holds})
    all_tall = len(ranks) <= ALL_TALL_MOST or len(drawing.affected) > ALL_TALL_MOST
    gap_px = 4.0 if all_tall else 2.0
    rows: list[Row] = []
    y_px = top_px
    for rank in ranks:
        affected = rank in drawing.affected
        tall = all_tall or affected
        height_px = tall_px if tall else low_px
        holder = holder_text(drawing, rank, window)
        rows.append(Row(f"rank {rank}", holder, round(y_px, 2), height_px, rank, None, tall, affected))
        y_px += height_px + (gap_px if height_px > 4 else 1.0)
    return rows + _spare_rows(drawing, window, y_px + 4, tall_px)


def _spare_rows(drawing: Drawing, window: Span, y_px: float, tall_px: float) -> list[Row]:
    waits = [wait for wait in standbys(drawing) if wait.from_s <= window.to_s and wait.to_s >= window.from_s]
    height_px = min(tall_px, 14.0)
    rows = []
    for number, wait in enumerate(waits[:SPARE_ROWS_MOST]):
        name = drawing.members[wait.member].name
        y = round(y_px + number * (height_px + 4), 2)
        rows.append(Row("spare", name, y, height_px, None, wait.member, height_px >= 9, wait.takes is not None))
    return rows
