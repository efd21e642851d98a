"""Steady state: is the run quiet enough to be judged, what is a normal step, and is it normal again after the heal?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from harness.judge.steps import Completion

FIRST_STEPS_IGNORED = 3
STEADY_STEPS = 10
RECOVERED_STEPS = 5
MEDIAN_FACTOR = 1.1
MAD_FACTOR = 4.5


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The steady steps `from_step`..`to_step` before the fault, and the step limit that follows from them.

    On the tester's clock: `reached_at_s` is when ten steady steps were first complete, `began_at_s` when they began.
    """

    median_s: float
    mad_s: float
    limit_s: float
    from_step: int
    to_step: int
    reached_at_s: float
    began_at_s: float

    def in_words(self) -> str:
        """The step limit and where it comes from, as reports print it."""
        return (
            f"step limit {self.limit_s:.4f} s = max({MEDIAN_FACTOR} × {self.median_s:.4f}, "
            f"{self.median_s:.4f} + {MAD_FACTOR} × {self.mad_s:.4f}), steps {self.from_step} to {self.to_step}"
        )


@dataclass(frozen=True, slots=True)
class Unsteady:
    """No steady state before the fault, and why."""

    reason: str


def step_limit(times_s: Sequence[float]) -> tuple[float, float, float]:
    """Return median, MAD (unscaled) and step limit of some step times, in seconds."""
    middle_s = median(times_s)
    mad_s = median(abs(time_s - middle_s) for time_s in times_s)
    return middle_s, mad_s, max(MEDIAN_FACTOR * middle_s, middle_s + MAD_FACTOR * mad_s)


def steady_before(
    completions: Sequence[Completion], *, started_s: float, until_s: float, within_s: float
) -> SteadyState | Unsteady:
    """Find the steady state among the steps completed by `until_s` (the first fault, or the end of a run without)."""
    before = [done for done in completions if done.at_s <= until_s]
    windows = list(_steady_windows(before))
    if not windows:
        seen = sum(done.step > FIRST_STEPS_IGNORED for done in before)
        return Unsteady(
            f"no {STEADY_STEPS} steady full-world steps in a row after step {FIRST_STEPS_IGNORED} "
            f"({seen} such steps were seen before the fault or the end)"
        )
    reached = before[windows[0] + STEADY_STEPS - 1]
    if reached.at_s > started_s + within_s:
        return Unsteady(
            f"steady state came {reached.at_s - started_s:.1f} s after the start; allowed are {within_s:g} s"
        )
    first, last = _last_stretch(windows)
    middle_s, mad_s, limit_s = step_limit([done.gap_s for done in before[first:last] if done.gap_s is not None])
    began_at_s = before[windows[0]].at_s - (before[windows[0]].gap_s or 0.0)
    return SteadyState(middle_s, mad_s, limit_s, before[first].step, before[last - 1].step, reached.at_s, began_at_s)


def _steady_windows(completions: Sequence[Completion]) -> Iterator[int]:
    """Yield where ten steps in a row begin that all keep the step limit of their own median and MAD."""
    for place in range(len(completions) - STEADY_STEPS + 1):
        window = completions[place : place + STEADY_STEPS]
        times_s = [done.gap_s for done in window if done.gap_s is not None]
        if window[0].step <= FIRST_STEPS_IGNORED or len(times_s) < STEADY_STEPS or not _in_a_row(window):
            continue
        if 0 < max(times_s) <= step_limit(times_s)[2]:
            yield place


def _in_a_row(window: Sequence[Completion]) -> bool:
    return all(later.step == sooner.step + 1 for sooner, later in pairwise(window))


def _last_stretch(windows: Sequence[int]) -> tuple[int, int]:
    """Return the bounds of the last stretch of steady steps: steady windows that overlap or touch are one."""
    first = last = windows[-1]
    for place in reversed(windows):
        if place + STEADY_STEPS < first:
            break
        first = place
    return first, last + STEADY_STEPS


def normal_runs(completions: Sequence[Completion], limit_s: float) -> Iterator[list[Completion]]:
    """Yield the longest runs of steps in a row that all keep the step limit."""
    run: list[Completion] = []
    for done in completions:
        normal = done.gap_s is not None and done.gap_s <= limit_s
        if run and not (normal and done.step == run[-1].step + 1):
            yield run
            run = []
        if normal:
            run.append(done)
    if run:
        yield run


def steady_again(completions: Sequence[Completion], limit_s: float, after_s: float) -> float | None:
    """Return when five steps in a row, all completed after a moment, were normal again; None if never."""
    after = [done for done in completions if done.at_s > after_s]
    for run in normal_runs(after, limit_s):
        if len(run) >= RECOVERED_STEPS:
            return run[RECOVERED_STEPS - 1].at_s
    return None
