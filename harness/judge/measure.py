"""Timeline -> figures. One line a figure; docs/figures.md and the function it names say what each means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from harness.judge import accounting, alarms, damage, oracle, stages
from harness.judge.alarms import JudgedClaim
from harness.judge.evidence import Evidence, gather
from harness.judge.figures import FIGURES, Figures, FigureSpec, RecordsMissing, Value, filled
from harness.judge.plan import Plan, Reference
from harness.observe.timeline import Timeline

__all__ = ["FIGURES", "FigureSpec", "Figures", "figures_of", "measure"]

Measure = Callable[[Evidence, Sequence[JudgedClaim]], Value]

_MEASURES: Mapping[str, Measure] = {
    "suspect_s": alarms.suspected_s,
    "detect_s": alarms.detected_s,
    "reaction_s": lambda evidence, _: stages.reacted(evidence),
    "swap_s": lambda evidence, _: stages.slowest(evidence, stages.swapped),
    "restore_s": lambda evidence, _: stages.slowest(evidence, stages.restored),
    "first_step_s": lambda evidence, _: stages.slowest(evidence, stages.first_step),
    "recover_s": lambda evidence, _: stages.slowest(evidence, stages.recovered),
    "caught_up_s": lambda evidence, _: stages.slowest(evidence, stages.caught_up),
    "pause_s": lambda evidence, _: accounting.pause_s(evidence),
    "lost_steps": lambda evidence, _: damage.lost_steps(evidence),
    "redone_steps": lambda evidence, _: damage.redone_steps(evidence),
    "samples_skipped": lambda evidence, _: oracle.samples_skipped(evidence),
    "samples_repeated": lambda evidence, _: oracle.samples_repeated(evidence),
    "bystanders_restarted": lambda evidence, _: damage.bystanders_restarted(evidence),
    "bystanders_rolled_back": lambda evidence, _: damage.bystanders_rolled_back(evidence),
    "false_alarms": lambda evidence, judged: alarms.count(evidence, judged, "false alarm"),
    "wrong_blame": lambda evidence, judged: alarms.count(evidence, judged, "wrong blame"),
    "ambient_alarms": lambda evidence, judged: alarms.count(evidence, judged, "ambient"),
    "goodput": lambda evidence, _: accounting.goodput(evidence),
    "utilization": lambda evidence, _: accounting.utilization(evidence),
    "weights_equal": lambda evidence, _: oracle.weights_equal(evidence),
}


def measure(timeline: Timeline, plan: Plan, reference: Reference | None) -> Figures:
    """Return all figures of a drill (HarnessError when timeline and plan cannot belong together)."""
    evidence = gather(timeline, plan, reference)
    return figures_of(evidence, alarms.judge_claims(evidence))


def figures_of(evidence: Evidence, judged: Sequence[JudgedClaim]) -> Figures:
    """Return all figures of a drill whose claims are judged."""
    values: dict[str, Value] = {}
    unknown: dict[str, str] = {}
    for name in FIGURES:
        try:
            values[name] = _MEASURES[name](evidence, judged)
        except RecordsMissing as missing:
            unknown[name] = str(missing)
    try:
        badput_s = accounting.badput_s(evidence, _detected_at_s(judged))
    except RecordsMissing:
        badput_s = {}
    return filled(values, badput_s, unknown)


def _detected_at_s(judged: Sequence[JudgedClaim]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for one in judged:
        for fault in one.faults if one.word == "right" else ():
            found[fault] = min(one.claim.at_s, found.get(fault, math.inf))
    return found
