"""Where the time went: the longest pause, goodput, badput by cause, utilization."""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.judge.evidence import Evidence, Track
from harness.judge.figures import BADPUT_CAUSES, RecordsMissing
from harness.judge.stages import Stage, require_steady, require_step_records, restored, stepped, swapped
from harness.judge.steady import SteadyState
from harness.judge.steps import Completion
from harness.observe.observation import FaultInjected, MemberId, MemberJoined, RankHeld, StackStopped


def pause_s(evidence: Evidence) -> float | None:
    """Longest gap between two full-world steps since the first fault, the one it hit included, less the median step.

    inf when the world stands still at the end: the stack gave up, or no step came for longer than the step limit.
    """
    if not evidence.injected:
        return None
    steady = require_steady(evidence)
    completions = require_step_records(evidence)
    if not evidence.trained:
        gave_up = evidence.timeline.first(StackStopped) is not None
        if gave_up or evidence.end_s - completions[-1].at_s > steady.limit_s:
            return math.inf
    gaps_s = [done.gap_s for done in completions if done.at_s > evidence.first_injected_s and done.gap_s is not None]
    if not gaps_s:
        raise RecordsMissing("no step was completed after the fault, which came when the run was ending")
    return max(0.0, max(gaps_s) - steady.median_s)


def goodput(evidence: Evidence) -> float:
    """Distinct steps × median step ÷ time, from the beginning of the first steady step to the last step.

    While training is incomplete the end of the run counts as the last step: a run that hangs earns nothing.
    """
    steady, steps, end_s = _stretch(evidence)
    distinct = len(dict.fromkeys(done.step for done in steps))
    return distinct * steady.median_s / (end_s - steady.began_at_s)


def badput_s(evidence: Evidence, detected_s: Mapping[str, float]) -> dict[str, float]:
    """Seconds of the same stretch that were not productive, by cause; `detected_s` is when each fault was detected.

    A gap between two full-world steps holds one median step of work; what is over is split at the stages of the fault
    that fell into it (in_flight, detect, swap, restore, restart), else it is slow. A step executed again is redone.
    """
    steady, steps, end_s = _stretch(evidence)
    ends_pause = {
        stepped(evidence, track, injected): (track, injected)
        for track, injected in reversed(evidence.injected)
        if track.stops_ranks
    }
    spent = dict.fromkeys(BADPUT_CAUSES, 0.0)
    seen: dict[int, None] = {}
    for done in steps:
        gap_s = done.gap_s if done.gap_s is not None else 0.0
        if done.step in seen:
            spent["redone"] += min(gap_s, steady.median_s)
        seen[done.step] = None
        hit = ends_pause.get(done.at_s)
        if hit is None:
            spent["slow"] += gap_s - steady.median_s
        else:
            pause = _stages(evidence, *hit, detected_s)
            _split(spent, pause, from_s=done.at_s - gap_s, to_s=done.at_s, work_s=steady.median_s)
    # A run faster than its own median has no slow time, rather than a negative one.
    spent["slow"] = max(0.0, spent["slow"])
    spent["unfinished"] = max(0.0, end_s - steps[-1].at_s)
    return spent


def utilization(evidence: Evidence) -> float:
    """Time that ranks spent in steps ÷ (cards × held time, start-up included), an upper bound of own compute.

    Cards are the members that were there before the first full-world step, spares included.
    """
    completions = require_step_records(evidence)
    records = evidence.log.records
    if not completions or any(record.started_s is None for record in records):
        raise RecordsMissing("the program does not say when its steps begin")
    first_s = completions[0].at_s
    cards: dict[MemberId, None] = {}
    present: list[MemberJoined | RankHeld] = [*evidence.timeline.of(MemberJoined), *evidence.timeline.of(RankHeld)]
    for seen in present:
        if seen.at_s <= first_s:
            cards[seen.member] = None
    busy_s = sum(record.at_s - record.started_s for record in records if record.started_s is not None)
    held_s = max(len(cards), evidence.plan.world) * (evidence.end_s - evidence.started_s)
    if held_s <= 0:
        raise RecordsMissing("the run has no length")
    return busy_s / held_s


def _stretch(evidence: Evidence) -> tuple[SteadyState, list[Completion], float]:
    """Return the steady state, the full-world steps from the first steady one on, and when the stretch ends."""
    steady = require_steady(evidence)
    steps = [done for done in require_step_records(evidence) if done.at_s > steady.began_at_s]
    end_s = steps[-1].at_s if evidence.trained else max(evidence.end_s, steps[-1].at_s)
    return steady, steps, end_s


def _stages(
    evidence: Evidence, track: Track, injected: FaultInjected, detected_s: Mapping[str, float]
) -> dict[str, float]:
    """Return when each part of a pause ended; a part that was not seen leaves its time to the next one."""
    return {
        "in_flight": injected.at_s,
        "detect": detected_s.get(track.planned.id, math.inf),
        "swap": _known(swapped, evidence, track, injected),
        "restore": _known(restored, evidence, track, injected),
    }


def _known(stage: Stage, evidence: Evidence, track: Track, injected: FaultInjected) -> float:
    try:
        at_s = stage(evidence, track, injected)
    except RecordsMissing:
        return math.inf
    return math.inf if at_s is None else at_s


def _split(spent: dict[str, float], stages: Mapping[str, float], *, from_s: float, to_s: float, work_s: float) -> None:
    for cause, end_s in stages.items():
        if from_s < end_s <= to_s:
            spent[cause] += end_s - from_s
            from_s = end_s
    spent["restart"] += max(0.0, to_s - from_s - work_s)
