"""The moments and stretches that a timeline shows, fault by fault, as the judge finds them. Seconds since the start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from harness.judge import stages
from harness.judge.alarms import JudgedClaim
from harness.judge.evidence import Evidence, Track
from harness.judge.figures import RecordsMissing
from harness.observe.observation import FaultInjected
from harness.report.model import Dead, Mark, MarkKind, Span, WorldStep
from harness.report.series import rounded

STEPS_BEFORE = 5
STEPS_AFTER = 8
BEFORE_AT_MOST_S = 30.0

_STAGES: tuple[tuple[MarkKind, str, stages.Stage], ...] = (
    ("swapped", "replacement holds the rank", stages.swapped),
    ("restored", "state loaded", stages.restored),
    ("first_step", "first step of the whole world", stages.first_step),
    ("recovered", "recovered", stages.recovered),
)


def marks_of(evidence: Evidence, claims: Sequence[JudgedClaim], zero_s: float) -> list[Mark]:
    """Return the moments to draw, in order of time. A moment that several faults share is named once."""
    found: dict[tuple[MarkKind, float], Mark] = {}
    for track, injected in evidence.injected:
        for kind, at_s, text in _moments(evidence, track, injected, claims):
            mark = Mark(
                kind=kind,
                at_s=rounded(at_s - zero_s),
                after_s=rounded(at_s - injected.at_s),
                text=text,
                ranks=sorted(injected.ranks),
            )
            found.setdefault((kind, mark.at_s), mark)
    return sorted(found.values(), key=lambda mark: mark.at_s)


def _moments(
    evidence: Evidence, track: Track, injected: FaultInjected, claims: Sequence[JudgedClaim]
) -> Iterator[tuple[MarkKind, float, str]]:
    name = f"{injected.kind} {injected.target}"
    yield "injected", injected.at_s, name
    if track.effective is not None:
        yield "effective", track.effective.at_s, "effect proven"
    # A target that is gone when the drill tidies up is healed in the ledger's sense; only an undo is worth a mark.
    if track.healed is not None and track.planned.has_undo:
        yield "healed", track.healed.at_s, f"{name} healed"
    named = [one.claim.at_s for one in claims if one.word == "right" and track.planned.id in one.faults]
    if named:
        yield "detected", min(named), "detected"
    elif injected.at_s == evidence.first_injected_s:
        reaction_s = stages.reacted(evidence)
        if reaction_s is not None and math.isfinite(reaction_s):
            yield "detected", injected.at_s + reaction_s, "first reaction"
    for kind, text, stage in _STAGES:
        at_s = reached(evidence, track, injected, stage)
        if at_s is not None and math.isfinite(at_s):
            yield kind, at_s, text


def reached(evidence: Evidence, track: Track, injected: FaultInjected, stage: stages.Stage) -> float | None:
    """Return when a stage was reached (tester's clock); inf: never; None: does not apply, or not known."""
    try:
        return stage(evidence, track, injected)
    except RecordsMissing:
        return None


def dead_stretches(evidence: Evidence, zero_s: float) -> list[Dead]:
    """Return the stretches from a fault to the next step of the whole world; those that meet are one."""
    spans: list[Dead] = []
    end_s = rounded(evidence.end_s - zero_s)
    for track, injected in evidence.injected:
        at_s = reached(evidence, track, injected, stages.first_step)
        if at_s is None:
            continue
        from_s, to_s = rounded(injected.at_s - zero_s), rounded(min(at_s - zero_s, end_s))
        if spans and from_s <= spans[-1].to_s:
            from_s = spans.pop().from_s
        spans.append(Dead(from_s=from_s, to_s=max(from_s, to_s), ends=math.isfinite(at_s)))
    return spans


def zoom(marks: Sequence[Mark], dead: Sequence[Dead], steps: Sequence[WorldStep], end_s: float) -> Span | None:
    """Return the stretch around the faults: some full-world steps before the first and after the last."""
    injected = [mark.at_s for mark in marks if mark.kind == "injected"]
    if not injected:
        return None
    before = [step.at_s for step in steps if step.at_s <= injected[0]]
    from_s = before[-STEPS_BEFORE - 1] if len(before) > STEPS_BEFORE else before[0] if before else injected[0] - 1.0
    from_s = max(0.0, from_s, injected[0] - BEFORE_AT_MOST_S)
    anchor_s = max([*injected, *(span.to_s for span in dead if span.ends)])
    if not dead:
        anchor_s = max([anchor_s, *(mark.at_s for mark in marks if mark.kind in {"detected", "recovered"})])
    after = [step.at_s for step in steps if step.at_s > anchor_s]
    longest_s = anchor_s + max(1.0, 3 * (injected[0] - from_s))
    to_s = after[STEPS_AFTER - 1] if len(after) >= STEPS_AFTER else longest_s
    return Span(from_s=rounded(from_s), to_s=rounded(max(min(to_s, end_s), from_s)))
