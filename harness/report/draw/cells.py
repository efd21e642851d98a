"""Lays out the stretch around the faults in cells of a terminal: one row a rank, one letter a mark."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report import formats
from harness.report.draw.scale import Scale
from harness.report.model import Drawing, Span, Track

ROWS_MOST = 8
EVEN, ODD, NOTHING, END = "█", "▓", "·", "✕"
_LETTERS = {
    "injected": "F",
    "effective": "E",
    "detected": "D",
    "swapped": "S",
    "restored": "L",
    "first_step": "1",
    "recovered": "R",
    "healed": "H",
}


@dataclass(frozen=True, slots=True)
class CellRow:
    """One rank; `generations` names the look of each cell (-1: no step)."""

    label: str
    cells: str
    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """The drawing, line by line. `cell_text` is how long a cell lasts."""

    marks: list[str]
    rows: list[CellRow]
    more: str
    legend: list[str]
    cell_text: str


def lay_out(drawing: Drawing, columns: int) -> Cells | None:
    """Lay out the zoomed stretch in `columns` cells; None when nothing was injected."""
    window = drawing.zoom
    if window is None or window.to_s <= window.from_s or columns < 10:
        return None
    ranks = _shown(drawing)
    tracks = [track for track in drawing.tracks if track.rank in ranks]
    hidden = len(drawing.tracks) - len(tracks)
    return Cells(
        marks=_marks(drawing, window, columns),
        rows=[_row(drawing, track, window, columns) for track in tracks],
        more=f"… and {formats.count(hidden, 'more rank')}" if hidden > 0 else "",
        legend=[
            f"{_LETTERS[mark.kind]} {formats.clip(mark.text, 40)} "
            + (f"+{formats.seconds(mark.after_s)}" if mark.kind != "injected" else f"at {formats.clock(mark.at_s)}")
            for mark in drawing.marks
            if window.from_s <= mark.at_s <= window.to_s
        ],
        cell_text=formats.seconds((window.to_s - window.from_s) / columns),
    )


def _shown(drawing: Drawing) -> list[int]:
    ranks = [track.rank for track in drawing.tracks]
    touched = [rank for rank in ranks if rank in drawing.affected]
    return sorted([*touched, *(rank for rank in ranks if rank not in touched)][:ROWS_MOST])


def _column(scale: Scale, at_s: float) -> int:
    return min(int(scale.px(at_s)), int(scale.to_px) - 1)


def _marks(drawing: Drawing, window: Span, columns: int) -> list[str]:
    """Return lines of letters; a letter whose cell is taken goes one line up."""
    scale = Scale(window.from_s, window.to_s, 0, columns)
    lines: list[list[str]] = []
    for mark in drawing.marks:
        if not scale.holds(mark.at_s):
            continue
        column = _column(scale, mark.at_s)
        line = next((line for line in lines if line[column] == " "), None)
        if line is None:
            line = [" "] * columns
            lines.append(line)
        line[column] = _LETTERS[mark.kind]
    return ["".join(line).rstrip() for line in reversed(lines)]


def _row(drawing: Drawing, track: Track, window: Span, columns: int) -> CellRow:
    scale = Scale(window.from_s, window.to_s, 0, columns)
    cells, generations = [NOTHING] * columns, [-1] * columns
    for number, step in enumerate(track.step):
        if track.end_s[number] < window.from_s or track.start_s[number] > window.to_s:
            continue
        first, last = round(scale.px(track.start_s[number])), round(scale.px(track.end_s[number]))
        # A step that is shorter than a cell still shows.
        first = min(first, columns - 1)
        for column in range(first, max(first + 1, last)):
            cells[column] = ODD if step % 2 else EVEN
            generations[column] = track.generation[number]
    for hold in drawing.holds:
        member = drawing.members[hold.member]
        if hold.rank == track.rank and member.exited_s == hold.to_s and not member.clean and scale.holds(hold.to_s):
            cells[_column(scale, hold.to_s)] = END
    return CellRow(f"rank {track.rank}", "".join(cells), tuple(generations))
