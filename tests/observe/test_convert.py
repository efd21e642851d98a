from __future__ import annotations

from typing import Any

import pytest

from harness.observe.convert import convert, member_of
from harness.observe.observation import (
    Claim,
    MemberId,
    MemberJoined,
    Observation,
    RankHeld,
    StackStopped,
    StateLoaded,
    StepDone,
    TrainingFinished,
    WeightsDigest,
    WorkloadRaised,
)

MEMBER = MemberId("n0", 12, 345)
SECOND_NS = 1_000_000_000


def converted(**record: Any) -> Observation:
    return convert({"at_ns": 2 * SECOND_NS, **record}, MEMBER, lambda ns: ns / 1e9, received_s=9.0)


def test_every_kind_of_record() -> None:
    assert converted(**{"is": "joined", "role": "spare"}) == MemberJoined(2.0, MEMBER, "spare")
    assert converted(**{"is": "held", "rank": 1, "world": 4, "generation": 2}) == RankHeld(2.0, MEMBER, 1, 4, 2)
    assert converted(**{"is": "loaded", "step": 7, "rank": 1, "generation": 2}) == StateLoaded(2.0, MEMBER, 1, 2, 7)
    weights = {"is": "weights", "step": 9, "rank": 1, "digest": "ab"}
    assert converted(**weights) == WeightsDigest(2.0, MEMBER, 1, 9, "ab")
    assert converted(**{"is": "finished", "step": 9, "rank": 1}) == TrainingFinished(2.0, MEMBER, 1, 9)
    assert converted(**{"is": "stopped", "reason": "no spare"}) == StackStopped(2.0, "no spare")
    raised = {"is": "raised", "error": "E: x", "traceback": "T", "rank": None, "step": 3}
    assert converted(**raised) == WorkloadRaised(2.0, MEMBER, None, 3, "E: x", "T")


def test_a_step_carries_its_start_and_samples() -> None:
    record = {"is": "step", "step": 5, "rank": 0, "world": 4, "generation": 1, "samples": [3, 4], "loss": 0.5}
    assert converted(**record, started_ns=SECOND_NS) == StepDone(2.0, 1.0, MEMBER, 0, 4, 1, 5, (3, 4), 0.5)
    silent = converted(**{**record, "loss": None}, started_ns=None)
    assert isinstance(silent, StepDone)
    assert (silent.started_s, silent.loss) == (None, None)


def test_a_claim_counts_from_its_receipt() -> None:
    record = {"is": "claim", "kind": "crash", "rank": 2, "pid": 7, "node": "n1", "generation": 0, "detail": "d"}
    assert converted(**record, confirmed=True) == Claim(9.0, 2.0, "crash", 2, 7, "n1", 0, True, "d")


@pytest.mark.parametrize(
    "record",
    [
        {"is": "unheard-of"},
        {"is": "held", "rank": 1},
        {"is": "step", "rank": "two"},
        {},
    ],
)
def test_a_record_that_does_not_fit_is_a_value_error(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"does not fit|invalid literal"):
        converted(**record)


def test_a_file_name_names_the_process() -> None:
    assert member_of("n0.12.345.probe") == MEMBER
    assert member_of("host.example.12.345.probe") == MemberId("host.example", 12, 345)
    for name in ("n0.12.345.txt", "n0.probe", "n0.a.b.probe"):
        with pytest.raises(ValueError, match=r"probe|unpack|literal"):
            member_of(name)
