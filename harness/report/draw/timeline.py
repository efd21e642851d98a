"""Lays out the drawn timeline: rows, step bars, dead time, marks with their labels, exits and claims."""

from __future__ import annotations

from collections import defaultdict

from harness.report import formats
from harness.report.draw.labels import Placed, place
from harness.report.draw.rows import Row, layout, standbys
from harness.report.draw.scale import Scale, Tick
from harness.report.draw.sheet import Box, Glyph, MarkLine, Shape, Sheet
from harness.report.model import Drawing, Mark, Span, Track

WIDTH_PX = 1120.0
LEFT_PX = 84.0
RIGHT_PX = 176.0
LANE_PX = 17.0
CHAR_PX = 6.4
AXIS_PX = 26.0
GENERATION_COLOURS = 6
_CLAIM_LOOKS = {"right": "good", "suspicion": "doubt", "undecided": "doubt", "ambient": "", "vague": ""}


# Beyond these many marks, labels would fill the page: only the kinds that tell the story are kept.
MARKS_MOST = 18
_STORY = frozenset({"injected", "first_step", "recovered", "healed"})
_SHORT_STORY = frozenset({"injected", "first_step"})


def _told(marks: list[Mark], window: Span, kinds: list[frozenset[str]]) -> list[Mark]:
    """Return the marks within a window of the first set of kinds that is small enough; faults alone if none is."""
    inside = [mark for mark in marks if window.from_s <= mark.at_s <= window.to_s]
    for wanted in kinds:
        chosen = [mark for mark in inside if mark.kind in wanted]
        if len(chosen) <= MARKS_MOST:
            return chosen
    return [mark for mark in inside if mark.kind == "injected"][:MARKS_MOST]


def training(drawing: Drawing) -> Span:
    """Return the stretch from the first step to the last; to the very end where no step came any more."""
    first_s = min((track.start_s[0] for track in drawing.tracks if track.start_s), default=0.0)
    last_s = max((track.end_s[-1] for track in drawing.tracks if track.end_s), default=drawing.end_s)
    last_s = max([last_s, *(mark.at_s for mark in drawing.marks)])
    if any(not span.ends for span in drawing.dead):
        last_s = drawing.end_s
    margin_s = 0.02 * (last_s - first_s)
    return Span(from_s=max(0.0, first_s - margin_s), to_s=min(drawing.end_s, last_s + margin_s))


def whole(drawing: Drawing) -> Sheet:
    """Lay out the whole run, from its first step on. The zoomed stretch is framed."""
    window = training(drawing)
    many = len(drawing.tracks) > 16
    marks = _told(drawing.marks, window, [_STORY, _SHORT_STORY])
    sheet = _Sheet(drawing, window, marks, tall_px=5.0 if many else 12.0, low_px=3.0, each_bar=False, zero_s=0.0)
    return sheet.lay_out("time since the start", drawing.zoom)


def zoomed(drawing: Drawing) -> Sheet | None:
    """Lay out the stretch around the faults; None when nothing was injected."""
    if drawing.zoom is None:
        return None
    zero_s = next((mark.at_s for mark in drawing.marks if mark.kind == "injected"), drawing.zoom.from_s)
    every = frozenset(mark.kind for mark in drawing.marks)
    marks = _told(drawing.marks, drawing.zoom, [every, _STORY | {"detected", "swapped"}, _STORY, _SHORT_STORY])
    sheet = _Sheet(drawing, drawing.zoom, marks, tall_px=22.0, low_px=6.0, each_bar=True, zero_s=zero_s)
    return sheet.lay_out("time since the first fault", None)


class _Sheet:
    """One layout in progress."""

    def __init__(
        self,
        drawing: Drawing,
        window: Span,
        marks: list[Mark],
        *,
        tall_px: float,
        low_px: float,
        each_bar: bool,
        zero_s: float,
    ) -> None:
        self.drawing = drawing
        self.window = window
        self.each_bar = each_bar
        self.zero_s = zero_s
        self.scale = Scale(window.from_s, window.to_s, LEFT_PX, WIDTH_PX - RIGHT_PX)
        self.marks = marks
        self.placed = place([(self.scale.px(mark.at_s), self._label_px(mark)) for mark in self.marks])
        lanes = 1 + max((placed.lane for placed in self.placed), default=-1)
        self.top = 8.0 + lanes * LANE_PX + (6.0 if lanes else 0.0)
        self.rows = layout(drawing, window, top_px=self.top, tall_px=tall_px, low_px=low_px)
        self.rows_end = max((row.y_px + row.height_px for row in self.rows), default=self.top)
        self.band_px = 14.0 if each_bar else 4.0
        self.bottom = self.rows_end + 6.0 + self.band_px + 3.0
        self.by_rank = {row.rank: row for row in self.rows if row.rank is not None}
        self.by_member = {row.member: row for row in self.rows if row.member is not None}

    def lay_out(self, axis: str, frame: Span | None) -> Sheet:
        """Return the finished layout."""
        shapes, bars = self._steps()
        dead = self._dead()
        lengths = self._dead_lengths(dead) if self.each_bar else []
        return Sheet(
            width=WIDTH_PX,
            height=self.bottom + AXIS_PX + (20.0 if lengths else 0.0),
            left=LEFT_PX,
            right=WIDTH_PX - RIGHT_PX,
            top=self.top,
            bottom=self.bottom,
            # The strip of generations below holds names that a line must not cross.
            marks_end=self.rows_end + 4.0,
            name_x=LEFT_PX - 10,
            holder_x=WIDTH_PX - RIGHT_PX + 10,
            tick_y=self.bottom + 16,
            rows=self.rows,
            holds=self._holds(),
            waits=self._waits(),
            feeds=self._feeds(),
            shapes=shapes,
            bars=bars,
            generations=self._generations(),
            dead=dead,
            dead_lengths=lengths,
            marks=[self._line(placed) for placed in self.placed],
            exits=self._exits(),
            claims=self._claims(),
            ticks=self._ticks(),
            axis=axis,
            frame=self._frame(frame),
        )

    def _ticks(self) -> list[Tick]:
        """Ticks count from the first fault (zoomed) or from the start;"""
        from_s, to_s = self.window.from_s - self.zero_s, self.window.to_s - self.zero_s
        return Scale(from_s, to_s, self.scale.from_px, self.scale.to_px).ticks(10, self._tick_text)

    def _tick_text(self, value_s: float) -> str:
        if not self.each_bar:
            return f"{value_s:g} s"
        if value_s == 0:
            return "0"
        short = self.window.to_s - self.window.from_s < 5
        text = f"{value_s * 1000:+.0f} ms" if short else f"{value_s:+g} s"
        return text.replace("-", "−")

    def _label_px(self, mark: Mark) -> float:
        return 10.0 + CHAR_PX * formats.width_cells(f"{formats.clip(mark.text, 30)} {self._after(mark)}")

    def _after(self, mark: Mark) -> str:
        if mark.kind == "injected":
            return f"at {formats.clock(mark.at_s)}"
        return f"+{formats.seconds(mark.after_s)}"

    def _line(self, placed: Placed) -> MarkLine:
        mark = self.marks[placed.index]
        return MarkLine(
            css=mark.kind,
            x=placed.x_px,
            label_top=round(self.top - 18.0 - placed.lane * LANE_PX, 2),
            label_x=round(placed.x_px + 5.0, 2),
            label_y=round(self.top - 8.0 - placed.lane * LANE_PX, 2),
            text=formats.clip(mark.text, 30),
            after=self._after(mark),
            tip=f"{mark.text}: {formats.clock(mark.at_s)} after the start",
        )

    def _holds(self) -> list[Box]:
        boxes = []
        for hold in self.drawing.holds:
            row = self.by_rank.get(hold.rank)
            if row is None or hold.to_s < self.window.from_s or hold.from_s > self.window.to_s:
                continue
            x, end = self.scale.px(hold.from_s), self.scale.px(hold.to_s)
            tip = f"rank {hold.rank} held by {self.drawing.members[hold.member].name}"
            boxes.append(Box(x, row.y_px, round(end - x, 2), row.height_px, tip=tip))
        return boxes

    def _waits(self) -> list[Box]:
        boxes = []
        for wait in standbys(self.drawing):
            row = self.by_member.get(wait.member)
            if row is not None:
                x, end = self.scale.px(wait.from_s), self.scale.px(wait.to_s)
                boxes.append(Box(x, row.middle_px, round(end - x, 2), row.height_px))
        return boxes

    def _feeds(self) -> list[Shape]:
        feeds = []
        for wait in standbys(self.drawing):
            source = self.by_member.get(wait.member)
            if source is None or wait.takes is None or not self.scale.holds(wait.takes.from_s):
                continue
            target = self.by_rank.get(wait.takes.rank)
            if target is not None:
                x = self.scale.px(wait.takes.from_s)
                end_px = round(target.y_px + target.height_px, 2)
                feeds.append(Shape("feed", f"M{x} {source.middle_px}V{end_px + 6}"))
                feeds.append(Shape("feed-head", f"M{x} {end_px}l5 8h-10z"))
        return feeds

    def _steps(self) -> tuple[list[Shape], list[Box]]:
        paths: defaultdict[str, list[str]] = defaultdict(list)
        bars: list[Box] = []
        for track in self.drawing.tracks:
            row = self.by_rank[track.rank]
            visible = [
                number
                for number in range(len(track.step))
                if track.end_s[number] >= self.window.from_s and track.start_s[number] <= self.window.to_s
            ]
            if self.each_bar and row.tall:
                bars.extend(self._bar(track, number, row) for number in visible)
            else:
                self._merge(track, visible, row, paths)
        return [Shape(css, "".join(parts)) for css, parts in sorted(paths.items())], bars

    def _css(self, track: Track, number: int) -> str:
        shade = "odd" if track.step[number] % 2 else "even"
        redone = " redone" if track.redone[number] else ""
        return f"g{track.generation[number] % GENERATION_COLOURS} {shade}{redone}"

    def _bar(self, track: Track, number: int, row: Row) -> Box:
        x, end = self.scale.px(track.start_s[number]), self.scale.px(track.end_s[number])
        width = round(max(1.0, end - x - 1.0), 2)
        duration = formats.seconds(track.end_s[number] - track.start_s[number])
        redone = ", done again" if track.redone[number] else ""
        tip = (
            f"rank {track.rank}, step {track.step[number]}{redone}: {duration}; generation {track.generation[number]}, "
            f"{self.drawing.members[track.member[number]].name}"
        )
        text = str(track.step[number])
        roomy = row.height_px >= 14 and width >= 7 * len(text) + 6
        return Box(
            x,
            row.y_px,
            width,
            row.height_px,
            css=self._css(track, number),
            text=text if roomy else "",
            text_css=f"t{track.generation[number] % GENERATION_COLOURS}",
            text_x=round(x + width / 2, 2),
            text_y=row.text_px,
            tip=tip,
        )

    def _merge(self, track: Track, visible: list[int], row: Row, paths: defaultdict[str, list[str]]) -> None:
        # Bars that are narrower than the pen run together: a thousand steps become a few rectangles a row.
        last_css, last_x, last_end = "", 0.0, 0.0
        for number in visible:
            css = self._css(track, number)
            x, end = self.scale.px(track.start_s[number]), self.scale.px(track.end_s[number])
            thin = end - x < 2.5
            css = css.replace("odd", "even") if thin else css
            if thin and css == last_css and x - last_end < 0.8:
                last_end = max(end, last_end)
                continue
            if last_css:
                paths[last_css].append(_rectangle(last_x, last_end, row))
            last_css, last_x, last_end = css, x, max(x + 0.6, end - (0.0 if thin else 0.7))
        if last_css:
            paths[last_css].append(_rectangle(last_x, last_end, row))

    def _generations(self) -> list[Box]:
        """Return a strip that names the generations: colour alone tells them apart nowhere."""
        spans: dict[int, tuple[float, float]] = {}
        for track in self.drawing.tracks:
            for start_s, end_s, generation in zip(track.start_s, track.end_s, track.generation, strict=True):
                if end_s >= self.window.from_s and start_s <= self.window.to_s:
                    known = spans.get(generation, (start_s, end_s))
                    spans[generation] = (min(known[0], start_s), max(known[1], end_s))
        boxes = []
        for generation, (from_s, to_s) in sorted(spans.items()):
            x, end = self.scale.px(from_s), self.scale.px(to_s)
            width = round(max(1.0, end - x), 2)
            names = (f"generation {generation}", str(generation), "")
            text = next(name for name in names if not name or width > CHAR_PX * len(name) + 9)
            boxes.append(
                Box(
                    x,
                    self.rows_end + 6.0,
                    width,
                    self.band_px,
                    css=f"g{generation % GENERATION_COLOURS} even",
                    text=text if self.each_bar else "",
                    text_css=f"t{generation % GENERATION_COLOURS}",
                    text_x=x + 5,
                    text_y=self.rows_end + 6.0 + 11.0,
                    tip=f"generation {generation}",
                )
            )
        return boxes

    def _dead(self) -> list[Box]:
        boxes = []
        for span in self.drawing.dead:
            if span.to_s >= self.window.from_s and span.from_s <= self.window.to_s:
                x, end = self.scale.px(span.from_s), self.scale.px(span.to_s)
                length = formats.seconds(span.to_s - span.from_s)
                text = f"{length} without a step of the whole world"
                if not span.ends:
                    text = f"no step any more ({length})"
                height = round(self.rows_end - self.top + 4, 2)
                boxes.append(Box(x, self.top - 2, round(max(1.0, end - x), 2), height, text=text))
        return boxes

    def _dead_lengths(self, dead: list[Box]) -> list[Box]:
        """Return a dimension line below the axis for each dead stretch whose text does not meet the one before."""
        lengths: list[Box] = []
        free_px = 0.0
        for box in dead:
            text_px = CHAR_PX * len(box.text)
            end, y = box.x + box.width, self.bottom + 32
            from_px, to_px, text_x, css = box.x, end + 8 + text_px, end + 8, "start"
            if to_px > WIDTH_PX:
                from_px, to_px, text_x, css = box.x - 8 - text_px, end, box.x - 8, "end"
            if from_px < free_px:
                continue
            free_px = to_px + 10
            lengths.append(Box(box.x, y, box.width, 0, css=css, text=box.text, text_x=round(text_x, 2), text_y=y + 4))
        return lengths

    def _exits(self) -> list[Glyph]:
        glyphs = []
        for hold in self.drawing.holds:
            member, row = self.drawing.members[hold.member], self.by_rank.get(hold.rank)
            if member.exited_s is None or member.clean or row is None or not self.scale.holds(member.exited_s):
                continue
            if hold.to_s == member.exited_s:
                tip = f"{member.name} ended: {member.exit}"
                glyphs.append(Glyph("exit", self.scale.px(member.exited_s), row.middle_px, tip))
        return glyphs

    def _claims(self) -> list[Glyph]:
        glyphs = []
        for claim in self.drawing.claims:
            row = None if claim.rank is None else self.by_rank.get(claim.rank)
            if row is not None and self.scale.holds(claim.at_s):
                css = _CLAIM_LOOKS.get(claim.judged, "bad")
                tip = f"claim: {claim.kind}, rank {claim.rank}; {claim.judged or 'confirmed'}"
                glyphs.append(Glyph(f"claim {css}", self.scale.px(claim.at_s), row.y_px + 3.0, tip, css == "bad"))
        return glyphs

    def _frame(self, frame: Span | None) -> Box | None:
        if frame is None:
            return None
        x, end = self.scale.px(frame.from_s), self.scale.px(frame.to_s)
        return Box(x, self.top - 3, round(end - x, 2), round(self.bottom - self.top + 5, 2))


def _rectangle(x: float, end: float, row: Row) -> str:
    return f"M{round(x, 1):g} {row.y_px:g}H{round(end, 1):g}V{row.y_px + row.height_px:g}H{round(x, 1):g}Z"
