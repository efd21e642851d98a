"""The verdict of one drill.

1. dirty host, failed undo, interruption, crashed check: ERROR, always;
2. a drill that is not valid (validity.py): INCONCLUSIVE, and no check is evaluated;
3. else, over all checks: FAIL > INCONCLUSIVE > PASS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from harness.judge import alarms, checks, validity
from harness.judge.alarms import JudgedClaim
from harness.judge.checks import Check
from harness.judge.evidence import Evidence, Track, gather
from harness.judge.figures import Figures
from harness.judge.measure import figures_of
from harness.judge.outcome import Verdict, merge
from harness.judge.plan import Limit, Plan, Reference
from harness.judge.steady import SteadyState
from harness.observe.observation import WorkloadRaised
from harness.observe.timeline import Timeline

__all__ = ["Check", "FaultOutcome", "JudgedClaim", "Judgement", "SteadyState", "Verdict", "judge", "merge"]


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """What became of a planned fault, in the order of the plan. Times: tester's clock, None if it never was."""

    id: str
    kind: str
    target: str
    injected_at_s: float | None
    effective_at_s: float | None
    healed_at_s: float | None
    proof: str
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything said of one drill. `reasons` are empty for a PASS; `own_error` is the workload's own exception."""

    verdict: Verdict
    exit_code: int
    figures: Figures
    checks: tuple[Check, ...]
    faults: tuple[FaultOutcome, ...]
    reasons: tuple[str, ...]
    steady: SteadyState | None
    claims: tuple[JudgedClaim, ...] = ()
    own_error: WorkloadRaised | None = None


def judge(timeline: Timeline, plan: Plan, reference: Reference | None, dirty: tuple[str, ...] = ()) -> Judgement:
    """Judge one drill. Never raises: what goes wrong in here is an ERROR verdict."""
    errors = validity.errors(timeline, dirty)
    try:
        evidence = gather(timeline, plan, reference)
        claims = alarms.judge_claims(evidence)
        figures = figures_of(evidence, claims)
        broken = validity.broken(evidence)
    except Exception as error:  # noqa: BLE001
        # A measurement that crashes has shown nothing, and must neither pass nor end the whole run without a report.
        reasons = (*errors, f"the judge crashed: {type(error).__name__}: {error}")
        return Judgement(Verdict.ERROR, Verdict.ERROR.exit_code, Figures(), (), (), reasons, None)
    checked = tuple(_checks(evidence, figures, broken))
    if errors:
        verdict = Verdict.ERROR
    elif broken:
        verdict = merge([Verdict.INCONCLUSIVE, *(check.verdict for check in checked)])
    else:
        verdict = merge(check.verdict for check in checked)
    return Judgement(
        verdict=verdict,
        exit_code=verdict.exit_code,
        figures=figures,
        checks=checked,
        faults=tuple(_outcome(track) for track in evidence.tracks),
        reasons=(*errors, *broken, *_complaints(checked, broken)),
        steady=evidence.steady if isinstance(evidence.steady, SteadyState) else None,
        claims=claims,
        own_error=validity.own_error(evidence),
    )


def _checks(evidence: Evidence, figures: Figures, broken: tuple[str, ...]) -> Iterator[Check]:
    """Yield all checks: those the scenario asks for, in its order, then those that always hold."""
    plan = evidence.plan
    limits = list(plan.limits)
    if plan.stack_alarms:
        bound = [limit.slo for limit in limits]
        limits += [Limit(name, "max", 0, "figure") for name in checks.ALWAYS_ZERO if name not in bound]
    wanted: list[tuple[str, Callable[[], Check | None]]] = [
        (limit.slo, partial(checks.check_limit, limit, figures, evidence)) for limit in limits
    ]
    if plan.weights_equal:
        wanted.append((checks.WEIGHTS, lambda: checks.check_weights(figures)))
    wanted.append((checks.STEADY_AFTER_HEAL, lambda: checks.check_steady_after_heal(evidence)))
    wanted.append((checks.TRAINING_COMPLETE, lambda: checks.check_training_complete(evidence)))
    for slo, run in wanted:
        check = _guarded(slo, run)
        if check is None:
            continue
        if broken and check.verdict is not Verdict.ERROR:
            check = replace(check, verdict=Verdict.INCONCLUSIVE, reason=f"not evaluated: {broken[0]}")
        yield check


def _guarded(slo: str, run: Callable[[], Check | None]) -> Check | None:
    try:
        return run()
    except Exception as error:  # noqa: BLE001
        # A check that crashed is neither kept nor missed: the fault is ours, and the other checks still count.
        return Check(slo, "", None, Verdict.ERROR, f"the check crashed: {type(error).__name__}: {error}")


def _complaints(checked: tuple[Check, ...], broken: tuple[str, ...]) -> Iterator[str]:
    if not checked:
        yield "nothing was checked: the drill has no limits"
    for check in checked:
        if check.verdict is Verdict.ERROR or (check.verdict is not Verdict.PASS and not broken):
            yield f"{check.slo} {check.limit}: {check.reason}"


def _outcome(track: Track) -> FaultOutcome:
    injected, effective, healed = track.injected, track.effective, track.healed
    return FaultOutcome(
        id=track.planned.id,
        kind=track.planned.kind,
        target="" if injected is None else injected.target,
        injected_at_s=None if injected is None else injected.at_s,
        effective_at_s=None if effective is None else effective.at_s,
        healed_at_s=None if healed is None else healed.at_s,
        proof="" if effective is None else effective.proof,
        reason="" if track.failed is None else track.failed.reason,
    )
