"""Where things stand on paper: labels that never meet, round ticks, rows of every size."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.report.draw import cells, plots, timeline
from harness.report.draw.labels import place
from harness.report.draw.rows import layout
from harness.report.draw.scale import Scale, nice_step
from harness.report.draw.timeline import LANE_PX, WIDTH_PX
from harness.report.formats import width_cells
from harness.report.model import Drawing
from tests.report.report_samples import Shape, repeat_of, report_of

places = st.lists(st.tuples(st.floats(0, 1000, allow_nan=False), st.floats(1, 200, allow_nan=False)), max_size=30)


@given(places)
def test_no_label_covers_another_nor_anothers_line(labels: list[tuple[float, float]]) -> None:
    placed = place(labels)
    for one in placed:
        for other in placed:
            if one.index == other.index:
                continue
            meets = one.x_px < other.x_px + other.width_px and other.x_px < one.x_px + one.width_px
            assert not (meets and one.lane == other.lane)
            # The line of `other` runs from its own lane down to lane 0.
            crosses = one.x_px < other.x_px < one.x_px + one.width_px and other.lane >= one.lane
            assert not crosses


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 20))
def test_ticks_are_few_in_order_and_on_the_scale(start: float, span: float, most: int) -> None:
    scale = Scale(start, start + span, 0, 100)
    ticks = [tick.px for tick in scale.ticks(most, str)]
    assert len(ticks) <= most + 2
    assert ticks == sorted(ticks)


def test_steps_of_an_axis_are_round() -> None:
    assert [nice_step(span, 10) for span in (1, 3, 9, 0.07)] == [0.1, 0.5, 1.0, 0.01]
    assert nice_step(math.inf, 10) == nice_step(0, 10) == 1.0


def test_a_scale_holds_what_is_outside_at_its_edge() -> None:
    scale = Scale(0, 10, 100, 200)
    assert [scale.px(value) for value in (-5, 5, 50, math.inf, math.nan)] == [100, 150, 200, 200, 100]
    assert Scale(3, 3, 0, 10).px(3) == 0


def drawn(shape: Shape) -> Drawing:
    return repeat_of(shape).timeline


def test_every_label_of_a_drill_stays_on_the_paper() -> None:
    for shape in (Shape(), Shape(second_kill=(26, 0), spares=2), Shape(dead_s=None), Shape(ranks=64, kill_rank=37)):
        for sheet in (timeline.whole(drawn(shape)), timeline.zoomed(drawn(shape))):
            assert sheet is not None
            for mark in sheet.marks:
                assert mark.label_x + 6.4 * width_cells(f"{mark.text} {mark.after}") <= WIDTH_PX
                assert mark.label_top >= 0
                assert mark.label_y <= sheet.top
            assert max(box.y + box.height for box in sheet.bars or sheet.holds) <= sheet.bottom
            lanes = [(round((sheet.top - mark.label_y) / LANE_PX), mark.x) for mark in sheet.marks]
            assert len(set(lanes)) == len(lanes)


def test_rows_do_not_meet() -> None:
    for ranks in (1, 4, 12, 13, 64, 300):
        drawing = drawn(Shape(ranks=ranks, kill_rank=0, steps=30))
        assert drawing.zoom is not None
        rows = layout(drawing, drawing.zoom, top_px=0, tall_px=22, low_px=6)
        for above, below in pairwise(rows):
            assert above.y_px + above.height_px < below.y_px


def test_among_many_ranks_those_a_fault_touched_are_large() -> None:
    drawing = drawn(Shape(ranks=64, kill_rank=37))
    assert drawing.zoom is not None
    rows = layout(drawing, drawing.zoom, top_px=0, tall_px=22, low_px=6)
    assert [row.rank for row in rows if row.rank is not None and row.tall] == [37]
    assert [row.label for row in rows if row.named and row.rank is not None] == ["rank 37"]


def test_the_spares_row_feeds_the_killed_ranks_row() -> None:
    sheet = timeline.zoomed(drawn(Shape()))
    assert sheet is not None
    rank = next(row for row in sheet.rows if row.rank == 2)
    spare = next(row for row in sheet.rows if row.holder == "n2/5200")
    assert rank.holder == "n1/4102 → n2/5200"
    assert spare.label == "spare"
    line = next(shape.path for shape in sheet.feeds if shape.css == "feed")
    assert line.endswith(f"{spare.middle_px}V{rank.y_px + rank.height_px + 6}")
    assert [glyph.tip for glyph in sheet.exits] == ["n1/4102 ended: signal 9"]


def test_a_long_run_draws_few_shapes() -> None:
    sheet = timeline.whole(drawn(Shape(steps=2000)))
    assert sum(shape.path.count("M") for shape in sheet.shapes) < 2000
    assert len(str(sheet.shapes)) < 100_000


def test_so_many_faults_that_labels_would_fill_the_page_keep_the_story_only() -> None:
    drawing = drawn(Shape())
    mark = drawing.marks[0]
    many = drawing.model_copy(
        update={"marks": [mark.model_copy(update={"at_s": mark.at_s + n / 1000}) for n in range(99)]}
    )
    sheet = timeline.zoomed(many)
    assert sheet is not None
    assert len(sheet.marks) == timeline.MARKS_MOST


def test_a_long_pause_does_not_flatten_the_other_steps() -> None:
    repeat = repeat_of(Shape(dead_s=5.0))
    plot = plots.step_times(repeat.timeline, repeat.steady)
    assert plot is not None
    high = [dot for dot in plot.dots if dot.above]
    assert [dot.text for dot in high] == ["5.01 s"]
    usual = sorted(dot.y for dot in plot.dots)[len(plot.dots) // 2]
    assert plot.bottom - usual > (plot.bottom - plot.top) / 4


def test_a_meter_shows_which_side_of_the_limit_a_value_is() -> None:
    report = report_of(Shape(dead_s=1.5, redo=2))
    by_name = {slo.slo: plots.meter(slo) for slo in report.slos}
    missed, kept, nothing_lost = by_name["first_step_s"], by_name["detect_s"], by_name["lost_steps"]
    assert missed is not None
    assert missed.value_px > missed.limit_x
    assert kept is not None
    assert kept.value_px < kept.limit_x
    assert nothing_lost is not None
    assert nothing_lost.value_px > nothing_lost.limit_x
    assert by_name["weights"] is None


def test_a_strip_shows_every_repeat() -> None:
    strip = plots.strip("first_step_s", [0.1, math.inf, None, 0.3], 0.3, None)
    assert strip is not None
    assert [dot.tip for dot in strip.dots] == ["repeat 1: 100 ms", "repeat 2: never", "repeat 4: 300 ms"]
    assert [dot.css for dot in strip.dots] == ["", "never", ""]
    assert plots.strip("swap_s", [None, None], None, None) is None


def test_cells_of_a_terminal_show_steps_fault_and_gap() -> None:
    found = cells.lay_out(drawn(Shape()), 80)
    assert found is not None
    assert [row.label for row in found.rows] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert all(len(row.cells) == 80 for row in found.rows)
    assert found.rows[2].cells.count(cells.END) == 1
    assert cells.NOTHING in found.rows[0].cells
    assert "F" in "".join(found.marks)
    assert max(found.rows[0].generations) == 1


def test_marks_that_share_a_cell_stand_above_each_other() -> None:
    found = cells.lay_out(drawn(Shape(dead_s=3.0)), 20)
    assert found is not None
    assert sum(len(line.replace(" ", "")) for line in found.marks) == len(found.legend)


def test_a_narrow_terminal_gets_no_drawing() -> None:
    assert cells.lay_out(drawn(Shape()), 5) is None
    assert cells.lay_out(drawn(Shape(kill_rank=None)), 80) is None
