"""What the stack said, as a report lists it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.observe.observation import Claim
from harness.observe.timeline import Timeline
from harness.report.model import ClaimSeen
from harness.report.series import rounded

if TYPE_CHECKING:
    from harness.judge.plan import Plan


def seen(timeline: Timeline, plan: Plan, zero_s: float) -> list[ClaimSeen]:
    """Return every claim in order of receipt."""
    return [
        ClaimSeen(
            at_s=rounded(claim.at_s - zero_s),
            said_s=rounded(claim.said_s - zero_s),
            kind=claim.kind,
            rank=claim.rank,
            node=claim.node,
            pid=claim.pid,
            confirmed=claim.confirmed,
            judged="suspicion" if not claim.confirmed else "",
            detail=claim.detail,
        )
        for claim in timeline.of(Claim)
    ]
