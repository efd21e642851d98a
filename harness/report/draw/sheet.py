"""The parts of a laid-out timeline, in pixels; the template only prints them."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report.draw.rows import Row
from harness.report.draw.scale import Tick


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, its look, and a text that may stand in or beside it."""

    x: float
    y: float
    width: float
    height: float
    css: str = ""
    text: str = ""
    text_css: str = ""
    text_x: float = 0.0
    text_y: float = 0.0
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """Many bars of one look as one path."""

    css: str
    path: str


@dataclass(frozen=True, slots=True)
class MarkLine:
    """A vertical mark from its label down to the axis."""

    css: str
    x: float
    label_top: float
    label_x: float
    label_y: float
    text: str
    after: str
    tip: str


@dataclass(frozen=True, slots=True)
class Glyph:
    """A small sign on a row; `down` turns it round, so that colour is not all that tells signs apart."""

    css: str
    x: float
    y: float
    tip: str
    down: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """A laid-out timeline."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    marks_end: float
    name_x: float
    holder_x: float
    tick_y: float
    rows: list[Row]
    holds: list[Box]
    waits: list[Box]
    feeds: list[Shape]
    shapes: list[Shape]
    bars: list[Box]
    generations: list[Box]
    dead: list[Box]
    dead_lengths: list[Box]
    marks: list[MarkLine]
    exits: list[Glyph]
    claims: list[Glyph]
    ticks: list[Tick]
    axis: str
    frame: Box | None
