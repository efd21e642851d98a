"""Did the run learn what an unfaulted run learns? Samples and weights of the surviving history."""

from __future__ import annotations

from collections import Counter

from harness.judge.evidence import Evidence
from harness.judge.figures import RecordsMissing
from harness.judge.plan import Reference
from harness.judge.stages import require_step_records
from harness.judge.steps import Row, StepLog
from harness.observe.observation import WeightsDigest


def samples_skipped(evidence: Evidence) -> int:
    """Samples that the reference run took, up to the last full-world step here, and that no rank took here."""
    reference = _require_reference(evidence)
    ledger = require_ledger(evidence)
    expected = Counter[int]()
    for samples in reference.samples[: _last_step(evidence)]:
        expected.update(samples)
    taken = Counter[int]()
    for ids in ledger.values():
        taken.update(ids)
    return (expected - taken).total()


def samples_repeated(evidence: Evidence) -> int:
    """Samples of the surviving history beyond the first of their id (ids name a sample uniquely within the run)."""
    taken = Counter[int]()
    for samples in require_ledger(evidence).values():
        taken.update(samples)
    return taken.total() - len(taken)


def weights_equal(evidence: Evidence) -> bool:
    """Whether all ranks ended with the reference run's weights, having taken the same samples in every step."""
    reference = _require_reference(evidence)
    steps = evidence.plan.steps
    digests = {seen.rank: seen.digest for seen in evidence.timeline.of(WeightsDigest) if seen.step == steps}
    if any(digest != reference.weights for digest in digests.values()):
        return False
    if not evidence.trained:
        require_step_records(evidence)
        return False
    missing = [rank for rank in range(evidence.plan.world) if rank not in digests]
    if missing:
        raise RecordsMissing(
            f"no weights digest after step {steps} from rank {missing[0]} ({len(missing)} ranks lack it)"
        )
    return _same_samples(evidence, reference)


def require_ledger(evidence: Evidence) -> dict[int, list[int]]:
    """Return the sorted samples of each step of the surviving history (RecordsMissing where a record may be lost)."""
    require_step_records(evidence)
    last = _last_step(evidence)
    ledger: dict[int, list[int]] = {}
    for step, row in sorted(evidence.log.rows.items()):
        if step <= last:
            _require_whole(evidence.log, step, row)
        ledger[step] = sorted(sample for record in row if record is not None for sample in record.samples)
    if not any(ledger.values()):
        raise RecordsMissing("the program records no samples")
    return ledger


def _same_samples(evidence: Evidence, reference: Reference) -> bool:
    ledger = require_ledger(evidence)
    steps = range(1, evidence.plan.steps + 1)
    if len(reference.samples) < evidence.plan.steps:
        raise RecordsMissing(f"the reference run has samples of {len(reference.samples)} steps only")
    return all(ledger.get(step, []) == sorted(reference.samples[step - 1]) for step in steps)


def _require_whole(log: StepLog, step: int, row: Row) -> None:
    """Refuse to guess about a rank that may have died between finishing a step and recording it.

    A rank that recorded a later step in the same generation lived on: what it did not record it did not do.
    """
    present = [record for record in row if record is not None]
    generation = max(record.generation for record in present)
    for rank in range(len(row)):
        if row[rank] is None and not _lived_on(log, step, rank, generation):
            raise RecordsMissing(
                f"rank {rank} has no record of step {step}, which the others completed and nobody executed again: "
                "it may have died between finishing and recording it"
            )


def _lived_on(log: StepLog, step: int, rank: int, generation: int) -> bool:
    row = log.rows.get(step + 1, [])
    later = row[rank] if rank < len(row) else None
    sooner_row = log.rows.get(step - 1, [])
    sooner = sooner_row[rank] if rank < len(sooner_row) else None
    return later is not None and sooner is not None and later.member == sooner.member and later.generation == generation


def _last_step(evidence: Evidence) -> int:
    """Return the highest full-world step."""
    return max((done.step for done in evidence.log.completions), default=0)


def _require_reference(evidence: Evidence) -> Reference:
    if evidence.reference is None:
        raise RecordsMissing("there is no reference run to compare with")
    return evidence.reference
