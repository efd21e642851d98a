"""What the stack said, as a report lists it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.judge.alarms import JudgedClaim
from harness.report.model import ClaimSeen
from harness.report.series import rounded


def seen(judged: Sequence[JudgedClaim], zero_s: float) -> list[ClaimSeen]:
    """Return every claim with the judge's word for it, in order of receipt. `zero_s`: start of the drill."""
    return [
        ClaimSeen(
            at_s=rounded(one.claim.at_s - zero_s),
            said_s=rounded(one.claim.said_s - zero_s),
            kind=one.claim.kind,
            rank=one.claim.rank,
            node=one.claim.node,
            pid=one.claim.pid,
            confirmed=one.claim.confirmed,
            judged=one.word,
            detail=one.claim.detail,
        )
        for one in judged
    ]
