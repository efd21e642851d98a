"""From values to positions on paper. This is layout, not measurement: no number that a reader sees comes from here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis and what is written there."""

    px: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map of values to pixels; values outside are held at the edge."""

    from_value: float
    to_value: float
    from_px: float
    to_px: float

    def px(self, value: float) -> float:
        """Return the position of a value, within the edges."""
        span = self.to_value - self.from_value
        if span <= 0 or math.isnan(value):
            return self.from_px
        share = 1.0 if math.isinf(value) and value > 0 else (value - self.from_value) / span
        return round(self.from_px + min(1.0, max(0.0, share)) * (self.to_px - self.from_px), 2)

    def holds(self, value: float) -> bool:
        """Return whether a value lies within the edges."""
        return self.from_value <= value <= self.to_value

    def ticks(self, most: int, text: Callable[[float], str]) -> list[Tick]:
        """Return at most `most` + 1 round values with their positions."""
        step = nice_step(self.to_value - self.from_value, most)
        first, last = math.ceil(self.from_value / step - 1e-9), math.floor(self.to_value / step + 1e-9)
        values = [round(number * step, 12) for number in range(first, last + 1)]
        return [Tick(self.px(value), text(value)) for value in values]


def nice_step(span: float, most: int) -> float:
    """Return the smallest of 1, 2, 5 × 10^n that divides `span` into at most `most` parts."""
    if not math.isfinite(span) or span <= 0:
        return 1.0
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if factor * power >= raw * (1 - 1e-9):
            return factor * power
    return 10.0 * power
