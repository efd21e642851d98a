"""The figures a drill yields: their table, and the values of one drill. docs/figures.md explains each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Value = float | int | bool | None


class RecordsMissing(Exception):
    """A figure cannot be known: records that it needs are not there. The message says which."""


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """How to read a figure. `direction` says which way is better."""

    unit: Literal["s", "steps", "samples", "members", "claims", "ratio", "bool"]
    doc: str
    direction: Literal["lower", "higher", "equal"]


FIGURES: Mapping[str, FigureSpec] = {
    "suspect_s": FigureSpec("s", "injected → receipt of the first yellow card that names the culprit", "lower"),
    "detect_s": FigureSpec("s", "injected → receipt of the first confirmed right claim (kind and culprit)", "lower"),
    "reaction_s": FigureSpec("s", "stacks without alarms: injected → first visible reaction", "lower"),
    "swap_s": FigureSpec("s", "injected → a replacement holds the rank", "lower"),
    "restore_s": FigureSpec("s", "injected → the state is loaded on all ranks", "lower"),
    "first_step_s": FigureSpec("s", "injected → first step completed by the whole new world", "lower"),
    "recover_s": FigureSpec("s", "injected → first of 5 steps in a row within the step limit, fault held", "lower"),
    "caught_up_s": FigureSpec("s", "injected → the step after the last one that every rank had completed", "lower"),
    "pause_s": FigureSpec("s", "longest gap between two completed steps, less the median step", "lower"),
    "lost_steps": FigureSpec("steps", "steps that every rank had completed and that were executed again", "lower"),
    "redone_steps": FigureSpec("steps", "steps in flight at the fault that were executed again", "lower"),
    "samples_skipped": FigureSpec("samples", "samples of the reference run that the surviving history lacks", "lower"),
    "samples_repeated": FigureSpec("samples", "samples that the surviving history holds more than once", "lower"),
    "bystanders_restarted": FigureSpec("members", "healthy members whose process was ended or replaced", "lower"),
    "bystanders_rolled_back": FigureSpec("members", "healthy ranks that executed a completed step again", "lower"),
    "false_alarms": FigureSpec("claims", "confirmed claims without a fault", "lower"),
    "wrong_blame": FigureSpec("claims", "confirmed claims that name another than the culprit", "lower"),
    "ambient_alarms": FigureSpec("claims", "confirmed claims of what was not injected but seen by the tester", "lower"),
    "goodput": FigureSpec("ratio", "distinct steps × median step ÷ time, first steady step to last", "higher"),
    "utilization": FigureSpec("ratio", "time in steps ÷ (cards × held time, start-up included)", "higher"),
    "weights_equal": FigureSpec("bool", "final weights and samples equal an unfaulted run's", "equal"),
}

BADPUT_CAUSES = ("in_flight", "detect", "swap", "restore", "restart", "redone", "slow", "unfinished")


@dataclass(frozen=True, slots=True)
class Figures:
    """The values of one drill. None: n/a, or not known (`unknown` says why). inf: not seen by the horizon."""

    suspect_s: float | None = None
    detect_s: float | None = None
    reaction_s: float | None = None
    swap_s: float | None = None
    restore_s: float | None = None
    first_step_s: float | None = None
    recover_s: float | None = None
    caught_up_s: float | None = None
    pause_s: float | None = None
    lost_steps: float | int | None = None
    redone_steps: float | int | None = None
    samples_skipped: int | None = None
    samples_repeated: int | None = None
    bystanders_restarted: int | None = None
    bystanders_rolled_back: int | None = None
    false_alarms: int | None = None
    wrong_blame: int | None = None
    ambient_alarms: int | None = None
    goodput: float | None = None
    utilization: float | None = None
    weights_equal: bool | None = None
    badput_s: Mapping[str, float] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """Return one figure of FIGURES (KeyError for any other name)."""
        if name not in FIGURES:
            raise KeyError(f"{name!r} is not a figure")
        found: Value = getattr(self, name)
        return found

    def as_dict(self) -> dict[str, Value]:
        """Return all figures by name, in the order of FIGURES."""
        return {name: self.value(name) for name in FIGURES}


def filled(values: Mapping[str, Value], badput_s: Mapping[str, float], unknown: Mapping[str, str]) -> Figures:
    """Make figures from values by name; names left out stay None (TypeError for a name that is no figure)."""
    by_name: dict[str, Any] = dict(values)
    return Figures(**by_name, badput_s=dict(badput_s), unknown=dict(unknown))


def field_names() -> tuple[str, ...]:
    """Return the names of the figures that `Figures` has, for a test that holds them against the table."""
    return tuple(item.name for item in fields(Figures) if item.name not in {"badput_s", "unknown"})
