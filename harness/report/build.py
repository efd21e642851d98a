"""Judgement + timeline + scenario -> report. Everything a renderer shows is computed here or in harness/report/summary.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.observe.observation import FaultInjected, StepDone
from harness.observe.timeline import Timeline
from harness.report import claims, series, summary
from harness.report.model import (
    About,
    Check,
    Dead,
    Drawing,
    Environment,
    Fault,
    Mark,
    MarkKind,
    Repeat,
    Report,
    Span,
    SteadyState,
    WorldStep,
)

if TYPE_CHECKING:
    from harness.judge.plan import Plan, Reference
    from harness.judge.verdict import Judgement

STEPS_BEFORE = 5
STEPS_AFTER = 8
EXIT_CODES = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 3}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was asked for, beside the scenario's own words: the same for all repeats of a report."""

    scenario: str
    seed: int
    started_at: str
    replay: str
    about: About
    environment: Environment


def build_repeat(
    *, number: int, seed: int, timeline: Timeline, plan: Plan, reference: Reference | None, judgement: Judgement
) -> Repeat:
    """Return one drill as a report shows it. `number` counts from 1."""
    zero_s = series.origin_s(timeline)
    figures = {name: _figure(value) for name, value in judgement.figures.as_dict().items()}
    faults = [_fault(index, outcome, timeline, plan, zero_s) for index, outcome in enumerate(judgement.faults)]
    steady = _steady(judgement)
    return Repeat(
        number=number,
        seed=seed,
        verdict=judgement.verdict.value,
        exit_code=int(judgement.exit_code),
        reasons=list(judgement.reasons),
        figures=figures,
        faults=faults,
        checks=[_check(check, plan, steady) for check in judgement.checks],
        steady=steady,
        duration_s=series.rounded(max(0.0, series.end_s(timeline) - zero_s)),
        timeline=_drawing(timeline, plan, reference, figures, faults),
    )


def build_report(facts: RunFacts, repeats: Sequence[Repeat], *, error: str | None = None) -> Report:
    """Return the report of all repeats. `error` is what ended the run before its end: the verdict is ERROR then."""
    verdict = "ERROR" if error is not None else summary.merged([repeat.verdict for repeat in repeats])
    reasons = summary.reasons(repeats)
    if error is not None:
        reasons = [error, *reasons]
    elif not repeats:
        reasons = ["nothing was run"]
    slos = summary.slos(repeats)
    figures = summary.figures(repeats)
    featured = summary.featured(repeats)
    return Report(
        scenario=facts.scenario,
        verdict=verdict,
        exit_code=EXIT_CODES[verdict],
        seed=facts.seed,
        started_at=facts.started_at,
        headline=summary.headline(verdict, repeats, slos, figures, reasons),
        reasons=reasons,
        replay=facts.replay,
        about=facts.about,
        environment=facts.environment,
        repeats=list(repeats),
        featured=featured,
        slos=slos,
        summary=figures,
    )


def _figure(value: bool | int | float | None) -> bool | int | float | None:
    if isinstance(value, float):
        # An undefined figure is one that does not apply.
        return None if math.isnan(value) else value if math.isinf(value) else series.rounded(value)
    return value


def _relative(at_s: float | None, zero_s: float) -> float | None:
    return None if at_s is None else series.rounded(at_s - zero_s) if math.isfinite(at_s) else at_s


def _fault(index: int, outcome: FaultOutcome, timeline: Timeline, plan: Plan, zero_s: float) -> Fault:
    name = plan.faults[index].id if index < len(plan.faults) else f"f{index}"
    ranks = {rank for seen in timeline.of(FaultInjected) if seen.fault == name for rank in seen.ranks}
    return Fault(
        id=name,
        kind=outcome.kind,
        target=outcome.target,
        injected_at_s=_relative(outcome.injected_at_s, zero_s),
        effective_at_s=_relative(outcome.effective_at_s, zero_s),
        effective_after_s=_relative(outcome.effective_at_s, outcome.injected_at_s or 0.0),
        healed_at_s=_relative(outcome.healed_at_s, zero_s),
        proof=outcome.proof or "",
        ranks=sorted(ranks),
    )


def _steady(judgement: Judgement) -> SteadyState | None:
    steady = judgement.steady
    if steady is None:
        return None
    return SteadyState(
        from_step=steady.from_step,
        to_step=steady.to_step,
        median_s=steady.median_s,
        mad_s=steady.mad_s,
        limit_s=steady.limit_s,
    )


def _check(check: JudgeCheck, plan: Plan, steady: SteadyState | None) -> Check:
    asked = next((limit for limit in plan.limits if limit.slo == check.slo), None)
    value = None if asked is None else float(asked.value)
    if asked is not None and asked.unit == "steps":
        value = None if steady is None or value is None else value * steady.median_s
    return Check(
        slo=check.slo,
        limit=check.limit,
        value=_figure(check.value),
        verdict=check.verdict.value,
        reason=check.reason,
        op="equal" if asked is None else asked.op,
        limit_value=value,
    )


def _drawing(
    timeline: Timeline,
    plan: Plan,
    reference: Reference | None,
    figures: dict[str, bool | int | float | None],
    faults: Sequence[Fault],
) -> Drawing:
    zero_s = series.origin_s(timeline)
    end_s = series.rounded(series.end_s(timeline) - zero_s)
    roll = series.Roll(timeline)
    holds = series.holds(timeline, roll)
    steps = series.world_steps(timeline, plan.world)
    marks = _marks(figures, faults)
    dead = _dead(figures, faults, steps, end_s)
    changed = {hold.rank for hold in holds if sum(other.rank == hold.rank for other in holds) > 1}
    return Drawing(
        end_s=end_s,
        ended=series.how_it_ended(timeline),
        world=plan.world,
        members=roll.members(timeline),
        tracks=series.tracks(timeline, roll),
        holds=holds,
        marks=marks,
        claims=claims.seen(timeline, plan, zero_s),
        dead=dead,
        zoom=_zoom(marks, dead, steps, end_s),
        affected=sorted(changed | {rank for fault in faults for rank in fault.ranks}),
        world_steps=steps,
        losses=series.loss_curves(timeline, () if reference is None else reference.losses),
    )


_FIGURE_MARKS: tuple[tuple[str, MarkKind, str], ...] = (
    ("detect_s", "detected", "detected"),
    ("reaction_s", "detected", "first reaction"),
    ("swap_s", "swapped", "replacement holds the rank"),
    ("restore_s", "restored", "state loaded"),
    ("first_step_s", "first_step", "first step of the whole world"),
    ("recover_s", "recovered", "recovered"),
)


def _marks(figures: dict[str, bool | int | float | None], faults: Sequence[Fault]) -> list[Mark]:
    """Return the moments to draw. Figures count from the first fault, as the judge defines them."""
    injected = [fault.injected_at_s for fault in faults if fault.injected_at_s is not None]
    if not injected:
        return []
    zero_s = min(injected)

    def mark(kind: MarkKind, at_s: float | None, text: str, ranks: Sequence[int] = ()) -> Mark | None:
        if at_s is None or not math.isfinite(at_s):
            return None
        return Mark(kind=kind, at_s=at_s, after_s=series.rounded(at_s - zero_s), text=text, ranks=list(ranks))

    marks = []
    for fault in faults:
        name = f"{fault.kind} {fault.target}"
        marks.append(mark("injected", fault.injected_at_s, name, fault.ranks))
        marks.append(mark("effective", fault.effective_at_s, "effect proven", fault.ranks))
        marks.append(mark("healed", fault.healed_at_s, f"healed: {name}", fault.ranks))
    for figure, kind, text in _FIGURE_MARKS:
        value = figures.get(figure)
        # What stacks with alarms do first is their detection; a second mark for it would say nothing.
        if value is None or (figure == "reaction_s" and figures.get("detect_s") is not None):
            continue
        marks.append(mark(kind, series.rounded(zero_s + value), text))
    return sorted((made for made in marks if made is not None), key=lambda made: made.at_s)


def _dead(
    figures: dict[str, bool | int | float | None], faults: Sequence[Fault], steps: Sequence[WorldStep], end_s: float
) -> list[Dead]:
    """Return the stretches from a fault to the next step of the whole world; none for faults that only slow a run down."""
    first_step_s = figures.get("first_step_s")
    injected = sorted(fault.injected_at_s for fault in faults if fault.injected_at_s is not None)
    if first_step_s is None:
        return []
    spans: list[Dead] = []
    for number, at_s in enumerate(injected):
        if spans and at_s < spans[-1].to_s:
            continue
        again_s = next((step.at_s for step in steps if step.at_s > at_s), math.inf)
        to_s = at_s + first_step_s if number == 0 else again_s
        spans.append(Dead(from_s=at_s, to_s=series.rounded(min(to_s, end_s)), ends=to_s <= end_s))
    return spans


def _zoom(marks: Sequence[Mark], dead: Sequence[Dead], steps: Sequence[WorldStep], end_s: float) -> Span | None:
    """Return the stretch around the faults: some full-world steps before the first, some after the world steps again."""
    injected = [mark.at_s for mark in marks if mark.kind == "injected"]
    if not injected:
        return None
    before = [step.at_s for step in steps if step.at_s <= injected[0]]
    from_s = before[-STEPS_BEFORE - 1] if len(before) > STEPS_BEFORE else max(0.0, injected[0] - 1.0)
    anchor_s = max([*injected, *(span.to_s for span in dead if span.ends)])
    if not dead:
        anchor_s = max([anchor_s, *(mark.at_s for mark in marks if mark.kind in {"detected", "recovered"})])
    after = [step.at_s for step in steps if step.at_s > anchor_s]
    if len(after) >= STEPS_AFTER:
        to_s = after[STEPS_AFTER - 1]
    else:
        to_s = min(end_s, anchor_s + 2 * (injected[0] - from_s))
    return Span(from_s=series.rounded(from_s), to_s=series.rounded(max(to_s, from_s)))
