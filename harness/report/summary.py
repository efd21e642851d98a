"""Many repeats -> one result: the merged verdict, statistics a figure, SLOs over all repeats, the headline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from harness.report import formats
from harness.report.model import Check, Repeat, Slo, Summary, VerdictWord

# From worst to best.
ORDER: tuple[VerdictWord, ...] = ("ERROR", "FAIL", "INCONCLUSIVE", "PASS")


def merged(verdicts: Sequence[VerdictWord]) -> VerdictWord:
    """Return the worst verdict; without any, nothing is known: INCONCLUSIVE."""
    return min(verdicts, key=ORDER.index, default="INCONCLUSIVE")


def reasons(repeats: Sequence[Repeat]) -> list[str]:
    """Return why the repeats did not pass, each reason once, with the repeats it comes from."""
    found: dict[str, list[int]] = {}
    for repeat in sorted(repeats, key=lambda repeat: ORDER.index(repeat.verdict)):
        for reason in repeat.reasons:
            found.setdefault(reason, []).append(repeat.number)
    if len(repeats) == 1:
        return list(found)
    return [f"{_numbers(numbers)}: {reason}" for reason, numbers in found.items()]


def _numbers(numbers: Sequence[int]) -> str:
    word = "repeat" if len(numbers) == 1 else "repeats"
    return f"{word} {', '.join(str(number) for number in numbers)}"


def figures(repeats: Sequence[Repeat]) -> dict[str, Summary]:
    """Return n, min, p50, p95, max of every figure that at least one repeat has, in the order of the figures."""
    names = list(dict.fromkeys(name for repeat in repeats for name in repeat.figures))
    result = {}
    for name in names:
        values = sorted(float(value) for repeat in repeats if (value := repeat.figures.get(name)) is not None)
        if values:
            result[name] = Summary(
                n=len(values),
                min=values[0],
                p50=_rounded(statistics.median(values)),
                p95=nearest_rank(values, 0.95),
                max=values[-1],
            )
    return result


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of the values do not exceed: no value is made up beside inf."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def _rounded(value: float) -> float:
    return round(value, 6) if math.isfinite(value) else value


def slos(repeats: Sequence[Repeat]) -> list[Slo]:
    """Return every SLO over all repeats, the worst verdict first, else in the scenario's order."""
    grouped: dict[tuple[str, str], list[Check]] = {}
    for repeat in repeats:
        for check in repeat.checks:
            grouped.setdefault((check.slo, check.limit), []).append(check)
    return sorted((_slo(checks) for checks in grouped.values()), key=lambda slo: ORDER.index(slo.verdict))


def _slo(checks: Sequence[Check]) -> Slo:
    first = checks[0]
    verdict = merged([check.verdict for check in checks])
    values = [float(check.value) for check in checks if check.value is not None]
    return Slo(
        slo=first.slo,
        limit=first.limit,
        op=first.op,
        limit_value=next((check.limit_value for check in checks if check.limit_value is not None), None),
        verdict=verdict,
        passed=sum(check.verdict == "PASS" for check in checks),
        of=len(checks),
        values=[check.value for check in checks],
        median=checks[0].value if len(checks) == 1 else _rounded(statistics.median(values)) if values else None,
        worst=_worst(checks),
        reason=next(check.reason for check in checks if check.verdict == verdict),
    )


def _worst(checks: Sequence[Check]) -> bool | int | float | None:
    known = [check for check in checks if check.value is not None]
    if not known:
        return None

    def badness(check: Check) -> tuple[int, float]:
        value = float(check.value or 0)
        distance = {
            "max": value,
            "min": -value,
            "equal": abs(value - check.limit_value) if check.limit_value is not None else 0.0,
        }[check.op]
        return -ORDER.index(check.verdict), distance

    return max(known, key=badness).value


def featured(repeats: Sequence[Repeat]) -> int | None:
    """Return which repeat to draw first: the one that decided the verdict; when all passed, the slowest."""
    if not repeats:
        return None
    verdict = merged([repeat.verdict for repeat in repeats])
    if verdict != "PASS":
        return next(index for index, repeat in enumerate(repeats) if repeat.verdict == verdict)
    return max(range(len(repeats)), key=lambda index: (_slowness(repeats[index]), -index))


def _slowness(repeat: Repeat) -> float:
    for name in ("first_step_s", "recover_s", "detect_s"):
        value = repeat.figures.get(name)
        if value is not None:
            return float(value)
    return 0.0


def headline(
    verdict: VerdictWord,
    repeats: Sequence[Repeat],
    checked: Sequence[Slo],
    stats: dict[str, Summary],
    why: Sequence[str],
) -> str:
    """Return the result in one sentence."""
    if verdict == "PASS":
        return _story(repeats, stats)
    missed = [slo for slo in checked if slo.verdict == "FAIL"]
    if verdict == "FAIL" and missed:
        shown = ", ".join(f"{formats.title(slo.slo)} {_missed(slo)}" for slo in missed[:3])
        more = f", and {len(missed) - 3} more" if len(missed) > 3 else ""
        return f"{len(missed)} of {formats.count(len(checked), 'SLO')} missed: {shown}{more}."
    return formats.line(why[0], 400) if why else "No reason was recorded."


def _missed(slo: Slo) -> str:
    value = formats.figure(slo.slo, slo.worst)
    return value if slo.limit_value is None else f"{value} (limit {formats.limit(slo)})"


def _story(repeats: Sequence[Repeat], stats: dict[str, Summary]) -> str:
    """Return what happened when all went well, from the medians."""
    faults = repeats[0].faults
    who = " and ".join(f"{fault.kind} {fault.target}" for fault in faults[:2]) or "No fault"
    if len(faults) > 2:
        who = f"{len(faults)} faults"
    parts = [
        f"{words} {formats.seconds(stats[name].p50)}"
        for name, words in (
            ("detect_s", "detected after"),
            ("swap_s", "replaced after"),
            ("first_step_s", "the whole world stepped again after"),
            ("recover_s", "recovered after"),
        )
        if name in stats and math.isfinite(stats[name].p50) and not (name == "recover_s" and "first_step_s" in stats)
    ]
    lost = stats.get("lost_steps")
    if lost is not None:
        most = int(lost.max) if math.isfinite(lost.max) else None
        lost_words = "steps lost" if most is None else f"{formats.count(most, 'step')} lost"
        parts.append("no step lost" if most == 0 else lost_words)
    scope = f" (medians of {len(repeats)} repeats)" if len(repeats) > 1 else ""
    who = f"{who[:1].upper()}{who[1:]}"
    return f"{who}{': ' if parts else ''}{', '.join(parts)}{scope}."
