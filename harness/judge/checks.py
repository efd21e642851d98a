"""One limit, or one rule that always holds -> one check with its verdict and a reason a person can read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.judge.evidence import Evidence, finished_s
from harness.judge.figures import FIGURES, Figures, Value
from harness.judge.outcome import Verdict
from harness.judge.plan import Limit
from harness.judge.steady import RECOVERED_STEPS, SteadyState, steady_again
from harness.observe.observation import ProcessExited, StackStopped, TrainingFinished

WEIGHTS = "weights"
STEADY_AFTER_HEAL = "steady_after_heal"
TRAINING_COMPLETE = "training_complete"
# Claims about nothing, or about somebody else, are bad whatever a scenario asks for.
ALWAYS_ZERO = ("false_alarms", "wrong_blame")

Operator = Literal["max", "min", "equal"]

_HOLDS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "max": ("≤", lambda value, limit: value <= limit),
    "min": ("≥", lambda value, limit: value >= limit),
    "equal": ("=", lambda value, limit: value == limit),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `limit` is as the scenario writes it; `limit_value` in the figure's unit, None where not known."""

    slo: str
    limit: str
    value: Value
    verdict: Verdict
    reason: str
    op: Operator = "equal"
    limit_value: float | None = None


def check_limit(limit: Limit, figures: Figures, evidence: Evidence) -> Check:
    """Hold one figure to one limit (KeyError for a figure that does not exist)."""
    spec = FIGURES[limit.slo]
    value = figures.value(limit.slo)
    unit = "steps" if limit.unit == "steps" else "" if spec.unit in ("ratio", "bool") else spec.unit
    check = Check(
        limit.slo, f"{limit.op} {limit.value:g} {unit}".rstrip(), value, Verdict.INCONCLUSIVE, "", limit.op, limit.value
    )
    if limit.unit == "steps":
        if spec.unit != "s":
            raise ValueError(f"{limit.slo} is not a time: its limit cannot be counted in steps")
        if not isinstance(evidence.steady, SteadyState):
            return replace(check, limit_value=None, reason=f"a step has no length: {evidence.steady.reason}")
        check = replace(check, limit_value=limit.value * evidence.steady.median_s)
    if value is None:
        return replace(check, reason=figures.unknown.get(limit.slo, "does not apply to this drill"))
    return _compared(check, float(value), "" if spec.unit in ("ratio", "bool") else f" {spec.unit}", evidence)


def _compared(check: Check, value: float, unit: str, evidence: Evidence) -> Check:
    sign, holds = _HOLDS[check.op]
    assert check.limit_value is not None
    kept = holds(value, check.limit_value)
    if math.isinf(value):
        stopped = evidence.timeline.first(StackStopped)
        reason = "not seen by the horizon" if stopped is None else f"not seen: the stack stopped: {stopped.reason}"
    else:
        reason = f"{value:.4g}{unit} {sign} {check.limit_value:.4g}{unit}{'' if kept else ' does not hold'}"
    if check.slo == "recover_s" and isinstance(evidence.steady, SteadyState):
        reason = f"{reason}; {evidence.steady.in_words()}"
    return replace(check, verdict=Verdict.PASS if kept else Verdict.FAIL, reason=reason)


def check_weights(figures: Figures) -> Check:
    """Final weights and the samples of every step must equal the reference run's."""
    value = figures.weights_equal
    if value is None:
        reason = figures.unknown.get("weights_equal", "not known")
        return Check(WEIGHTS, "equal", None, Verdict.INCONCLUSIVE, reason)
    if value:
        return Check(WEIGHTS, "equal", value, Verdict.PASS, "the same weights and samples as an unfaulted run")
    return Check(WEIGHTS, "equal", value, Verdict.FAIL, "not the weights and samples of an unfaulted run")


def check_steady_after_heal(evidence: Evidence) -> Check | None:
    """After our undo the run must be as it was: five steps in a row within the step limit. None without an undo."""
    # An undo after the run is over belongs to the tidying up: no step can follow it.
    heals = [
        track.healed.at_s
        for track in evidence.tracks
        if track.healed is not None and track.healed.verified and track.healed.at_s < evidence.over_s
    ]
    if not heals or not isinstance(evidence.steady, SteadyState):
        return None
    healed_s, limit_s = max(heals), evidence.steady.limit_s
    check = Check(STEADY_AFTER_HEAL, f"{RECOVERED_STEPS} normal steps", None, Verdict.INCONCLUSIVE, "")
    again_s = steady_again(evidence.log.completions, limit_s, healed_s)
    if again_s is not None:
        reason = f"{RECOVERED_STEPS} full-world steps in a row took at most {limit_s:.4f} s each"
        return replace(check, value=again_s - healed_s, verdict=Verdict.PASS, reason=reason)
    after = sum(done.at_s > healed_s for done in evidence.log.completions)
    if evidence.log.absences:
        return replace(check, reason="step records are missing")
    if evidence.trained and after <= RECOVERED_STEPS:
        return replace(check, reason=f"training ended {after} full-world steps after the heal: too few to tell")
    reason = f"no {RECOVERED_STEPS} full-world steps in a row within {limit_s:.4f} s after the verified heal"
    return replace(check, value=math.inf, verdict=Verdict.FAIL, reason=reason)


def check_training_complete(evidence: Evidence) -> Check | None:
    """A run that calls itself complete, or gives up for no reason, before its last step is no success. Else None."""
    ended = evidence.ended
    if evidence.trained or ended is None:
        return None
    done = max((completion.step for completion in evidence.log.completions), default=0)
    so_far = f"step {done} of {evidence.plan.steps}"
    check = Check(TRAINING_COMPLETE, f"{evidence.plan.steps} steps", done, Verdict.INCONCLUSIVE, "")
    early = _left_early(evidence)
    if early is not None:
        return replace(check, verdict=Verdict.FAIL, reason=f"premature exit at {so_far}: {early}")
    stopped = evidence.timeline.first(StackStopped)
    if stopped is not None and not evidence.plan.faults:
        reason = f"the stack gave up at {so_far} though nothing was injected: {stopped.reason}"
        return replace(check, verdict=Verdict.FAIL, reason=reason)
    if ended.reason == "workload-error":
        return replace(check, reason=f"the workload's own error ended the run at {so_far}: {ended.detail}")
    if ended.reason == "finished":
        return replace(check, reason=f"the run ended as finished at {so_far}; nothing shows how its processes ended")
    if not evidence.plan.faults:
        return replace(check, reason=f"the run ended at {so_far}: {ended.reason} {ended.detail}".rstrip())
    return None


def _left_early(evidence: Evidence) -> str | None:
    """Return who is known to have left as if all were done. An exit with unknown code proves nothing."""
    for said in evidence.timeline.of(TrainingFinished):
        if said.step < evidence.plan.steps:
            return f"rank {said.rank} said that step {said.step} was its last"
    done = finished_s(evidence)
    hit = {member for _, injected in evidence.injected for member in injected.members}
    until_s = evidence.over_s
    for exited in evidence.timeline.of(ProcessExited):
        if exited.at_s > until_s or exited.at_s >= done.get(exited.member, math.inf):
            continue
        if exited.code == 0 and exited.member not in hit:
            return f"process {exited.member.pid} on {exited.member.node} ended with code 0"
    return None
