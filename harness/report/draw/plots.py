"""Lays out the smaller plots: step times, losses, a figure's repeats as a strip, and a value against its limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.judge.figures import Value
from harness.report import formats
from harness.report.draw.scale import Scale, Tick
from harness.report.model import Drawing, Slo, SteadyState

PLOT_WIDTH_PX = 540.0
PLOT_HEIGHT_PX = 200.0
STRIP_WIDTH_PX = 260.0
STRIP_HEIGHT_PX = 24.0
METER_WIDTH_PX = 150.0
LIMIT_SHARE = 0.72
"""Where on its bar a limit stands: what misses it has room to show by how much."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a plot; `css` says what is special about it."""

    x: float
    y: float
    css: str
    tip: str
    text: str = ""
    above: bool = False
    r: float = 3.2


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal line with its name."""

    y: float
    css: str
    text: str
    text_y: float


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with two axes."""

    left: float
    right: float
    top: float
    bottom: float
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    x_axis: str
    lines: list[tuple[str, str]]
    dots: list[Dot]
    rules: list[Rule]
    fault_x: list[float]
    width: float = PLOT_WIDTH_PX
    height: float = PLOT_HEIGHT_PX

    @property
    def y_text_x(self) -> float:
        """Where the names of the vertical axis end."""
        return self.left - 8

    @property
    def rule_text_x(self) -> float:
        """Where the names of horizontal lines begin."""
        return self.right + 6

    @property
    def x_text_y(self) -> float:
        """Baseline of the horizontal axis' names."""
        return self.bottom + 16


def step_times(drawing: Drawing, steady: SteadyState | None) -> Plot | None:
    """Lay out full-world step times over step numbers, with the step limit. None without steps."""
    timed = [step for step in drawing.world_steps if step.duration_s is not None and math.isfinite(step.duration_s)]
    if not timed:
        return None
    durations = sorted(step.duration_s for step in timed if step.duration_s is not None)
    limit_s = steady.limit_s if steady is not None and math.isfinite(steady.limit_s) else None
    usual_s = durations[len(durations) // 2]
    # One long pause must not flatten all other steps: what is higher than the plot is drawn at its edge, with its time.
    top_s = min(durations[-1] * 1.08, max(2.6 * usual_s, 1.5 * (limit_s or 0.0)))
    right = PLOT_WIDTH_PX - 14.0 - (86.0 if limit_s is not None else 0.0)
    xs = Scale(min(step.step for step in timed) - 1, max(step.step for step in timed) + 1, 58.0, right)
    ys = Scale(0.0, top_s or 1.0, PLOT_HEIGHT_PX - 34.0, 22.0)
    dots = []
    for step in timed:
        duration_s = step.duration_s or 0.0
        above = duration_s > top_s
        over = limit_s is not None and duration_s > limit_s
        css, text = f"g{step.generation % 6}{' over' if over else ''}", formats.seconds(duration_s)
        radius = 3.2 if len(timed) <= 150 else 1.8
        dots.append(Dot(xs.px(step.step), ys.px(duration_s), css, f"step {step.step}: {text}", text, above, radius))
    rules = []
    if steady is not None and limit_s is not None:
        # The limit is never below the median: the name of the one rises from its line, the other's hangs below.
        limit_y, median_y = ys.px(limit_s), ys.px(steady.median_s)
        rules = [
            Rule(limit_y, "limit", f"limit {formats.seconds(limit_s)}", min(limit_y + 4, median_y - 5)),
            Rule(median_y, "median", f"median {formats.seconds(steady.median_s)}", median_y + 8),
        ]
    return Plot(
        left=58.0,
        right=right,
        top=22.0,
        bottom=PLOT_HEIGHT_PX - 34.0,
        x_ticks=[tick for tick in xs.ticks(8, lambda value: f"{value:g}") if tick.text.lstrip("-").isdigit()],
        y_ticks=ys.ticks(4, lambda value: formats.seconds(value) if value else "0"),
        x_axis="step",
        lines=[],
        dots=dots,
        rules=rules,
        fault_x=_fault_steps(drawing, xs),
    )


def _fault_steps(drawing: Drawing, xs: Scale) -> list[float]:
    places = []
    for mark in drawing.marks:
        if mark.kind == "injected":
            before = [step.step for step in drawing.world_steps if step.at_s <= mark.at_s]
            places.append(xs.px((before[-1] if before else 0) + 0.5))
    return places


def losses(drawing: Drawing) -> Plot | None:
    """Lay out the loss of the run over that of the reference. None where the program records none."""
    run, reference = drawing.losses.run, drawing.losses.reference
    known = [value for value in [*run, *reference] if value is not None and math.isfinite(value)]
    if not known:
        return None
    low, high = min(known), max(known)
    pad = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    xs = Scale(1, max(len(run), len(reference), 2), 58.0, PLOT_WIDTH_PX - 14.0)
    ys = Scale(low - pad, high + pad, PLOT_HEIGHT_PX - 34.0, 22.0)
    lines = [("reference", _line(reference, xs, ys)), ("run", _line(run, xs, ys))]
    return Plot(
        left=58.0,
        right=PLOT_WIDTH_PX - 14.0,
        top=22.0,
        bottom=PLOT_HEIGHT_PX - 34.0,
        x_ticks=[tick for tick in xs.ticks(8, lambda value: f"{value:g}") if tick.text.isdigit()],
        y_ticks=ys.ticks(4, lambda value: f"{value:g}"),
        x_axis="step",
        lines=[line for line in lines if line[1]],
        dots=[],
        rules=[],
        fault_x=_fault_steps(drawing, xs),
    )


def _line(values: Sequence[float | None], xs: Scale, ys: Scale) -> str:
    parts: list[str] = []
    broken = True
    for number, value in enumerate(values, start=1):
        if value is None or not math.isfinite(value):
            broken = True
            continue
        parts.append(f"{'M' if broken else 'L'}{xs.px(number):g} {ys.px(value):g}")
        broken = False
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Strip:
    """A figure's repeats on one line."""

    dots: list[Dot]
    median_x: float | None
    limit_x: float | None
    op: str
    left: float
    right: float
    width: float = STRIP_WIDTH_PX
    height: float = STRIP_HEIGHT_PX
    middle: float = STRIP_HEIGHT_PX / 2


def strip(name: str, values: Sequence[Value], median: Value, slo: Slo | None) -> Strip | None:
    """Lay out the values of all repeats. None where there is no number."""
    numbers = [(index, float(value)) for index, value in enumerate(values) if value is not None]
    if not numbers:
        return None
    limit = slo.limit_value if slo is not None and slo.limit_value is not None else None
    finite = [value for _, value in numbers if math.isfinite(value)]
    top = max([*finite, limit if limit is not None and math.isfinite(limit) else 0.0, 0.0]) * 1.12 or 1.0
    xs = Scale(min([0.0, *finite]), top, 6.0, STRIP_WIDTH_PX - 14.0)
    dots = []
    for index, value in numbers:
        # Two lanes keep dots of equal value apart; the order of the repeats decides, so that a report stays the same.
        y = STRIP_HEIGHT_PX / 2 + (index % 3 - 1) * 4.5 if len(numbers) > 1 else STRIP_HEIGHT_PX / 2
        css = "never" if math.isinf(value) else "over" if _misses(slo, value) else ""
        x = STRIP_WIDTH_PX - 7 if math.isinf(value) else xs.px(value)
        dots.append(Dot(x, y, css, f"repeat {index + 1}: {formats.figure(name, values[index])}"))
    middle = None if median is None or not math.isfinite(median) or len(numbers) < 2 else xs.px(float(median))
    limit_x = None if limit is None else xs.px(limit)
    return Strip(dots, middle, limit_x, "" if slo is None else slo.op, xs.from_px, xs.to_px)


def _misses(slo: Slo | None, value: float) -> bool:
    if slo is None or slo.limit_value is None:
        return False
    return {"max": value > slo.limit_value, "min": value < slo.limit_value, "equal": value != slo.limit_value}[slo.op]


@dataclass(frozen=True, slots=True)
class Meter:
    """A value as a bar against its limit."""

    limit_x: float
    value_px: float
    beyond: bool
    op: str
    width: float = METER_WIDTH_PX
    arrow: str = f"M{METER_WIDTH_PX - 16} 3l4 0l-4 10l-4 0z"


def meter(slo: Slo) -> Meter | None:
    """Lay out the worst value of an SLO against its limit. None where either is no number."""
    if slo.limit_value is None or slo.worst is None or not math.isfinite(slo.limit_value):
        return None
    if slo.limit_value <= 0:
        # A limit of nothing stands at the very left: any bar at all is beyond it.
        misses = float(slo.worst) > slo.limit_value
        return Meter(3.0, METER_WIDTH_PX if misses else 0.0, misses, slo.op)
    scale = Scale(0.0, slo.limit_value / LIMIT_SHARE, 0.0, METER_WIDTH_PX)
    value = float(slo.worst)
    return Meter(scale.px(slo.limit_value), scale.px(value), value > scale.to_value, slo.op)
