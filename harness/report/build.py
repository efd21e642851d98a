"""Judgement + timeline + scenario -> report. What renderers show is computed here and in the modules it calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.judge import checks as judged
from harness.judge.evidence import Evidence, gather
from harness.judge.figures import Value
from harness.judge.plan import Plan, Reference
from harness.judge.verdict import FaultOutcome, Judgement
from harness.observe.observation import FaultInjected
from harness.observe.timeline import Timeline
from harness.report import claims, marks, series, summary
from harness.report.model import (
    About,
    Check,
    Drawing,
    Environment,
    Fault,
    Repeat,
    Report,
    SteadyState,
)

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
    figures = judgement.figures
    return Repeat(
        number=number,
        seed=seed,
        verdict=judgement.verdict.value,
        exit_code=int(judgement.exit_code),
        reasons=[*judgement.reasons, *_own_traceback(judgement)],
        figures={name: _figure(value) for name, value in figures.as_dict().items()},
        unknown=dict(figures.unknown),
        badput_s={cause: series.rounded(lost_s) for cause, lost_s in figures.badput_s.items()},
        faults=[_fault(outcome, timeline, zero_s) for outcome in judgement.faults],
        checks=[_check(check) for check in judgement.checks],
        steady=_steady(judgement),
        duration_s=series.rounded(max(0.0, series.end_s(timeline) - zero_s)),
        timeline=_drawing(timeline, plan, reference, judgement),
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
        featured=summary.featured(repeats),
        slos=slos,
        summary=figures,
    )


def _own_traceback(judgement: Judgement) -> list[str]:
    """Return the traceback of the workload's own exception: whoever reads the report has to mend it."""
    return [] if judgement.own_error is None else [judgement.own_error.traceback.rstrip()]


def _figure(value: Value) -> Value:
    if isinstance(value, float):
        # An undefined figure is one that does not apply.
        return None if math.isnan(value) else _rounded(value)
    return value


def _rounded(value: float) -> float:
    return series.rounded(value) if math.isfinite(value) else value


def _since(at_s: float | None, zero_s: float | None) -> float | None:
    return None if at_s is None or zero_s is None else _rounded(at_s - zero_s)


def _fault(outcome: FaultOutcome, timeline: Timeline, zero_s: float) -> Fault:
    ranks = {rank for seen in timeline.of(FaultInjected) if seen.fault == outcome.id for rank in seen.ranks}
    return Fault(
        id=outcome.id,
        kind=outcome.kind,
        target=outcome.target,
        injected_at_s=_since(outcome.injected_at_s, zero_s),
        effective_at_s=_since(outcome.effective_at_s, zero_s),
        effective_after_s=_since(outcome.effective_at_s, outcome.injected_at_s),
        healed_at_s=_since(outcome.healed_at_s, zero_s),
        proof=outcome.proof or outcome.reason,
        ranks=sorted(ranks),
    )


def _steady(judgement: Judgement) -> SteadyState | None:
    steady = judgement.steady
    if steady is None:
        return None
    return SteadyState(
        from_step=steady.from_step,
        to_step=steady.to_step,
        median_s=_rounded(steady.median_s),
        mad_s=_rounded(steady.mad_s),
        limit_s=_rounded(steady.limit_s),
    )


def _check(check: judged.Check) -> Check:
    return Check(
        slo=check.slo,
        limit=check.limit,
        value=_figure(check.value),
        verdict=check.verdict.value,
        reason=check.reason,
        op=check.op,
        limit_value=None if check.limit_value is None else _rounded(float(check.limit_value)),
    )


def _evidence(timeline: Timeline, plan: Plan, reference: Reference | None) -> Evidence | None:
    try:
        return gather(timeline, plan, reference)
    except Exception:  # noqa: BLE001
        # The judge crashed on the same timeline and its verdict is ERROR; that must still reach the report.
        return None


def _drawing(timeline: Timeline, plan: Plan, reference: Reference | None, judgement: Judgement) -> Drawing:
    zero_s = series.origin_s(timeline)
    end_s = series.rounded(series.end_s(timeline) - zero_s)
    roll = series.Roll(timeline)
    holds = series.holds(timeline, roll)
    evidence = _evidence(timeline, plan, reference)
    steps = [] if evidence is None else series.world_steps(evidence.log, zero_s)
    moments = [] if evidence is None else marks.marks_of(evidence, judgement.claims, zero_s)
    dead = [] if evidence is None else marks.dead_stretches(evidence, zero_s)
    hit = {rank for seen in timeline.of(FaultInjected) for rank in seen.ranks}
    return Drawing(
        end_s=end_s,
        ended=series.how_it_ended(timeline),
        world=plan.world,
        members=roll.members(timeline),
        tracks=series.tracks(timeline, roll),
        holds=holds,
        marks=moments,
        claims=claims.seen(judgement.claims, zero_s),
        dead=dead,
        zoom=marks.zoom(moments, dead, steps, end_s),
        affected=sorted(hit | series.changed_hands(holds)),
        world_steps=steps,
        losses=series.loss_curves(timeline, () if reference is None else reference.losses),
    )
