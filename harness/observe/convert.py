"""One probe record -> one observation on the tester's clock. Anything that does not fit raises ValueError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.observe.observation import (
    Claim,
    MemberId,
    MemberJoined,
    Observation,
    ObservationCost,
    RankHeld,
    StackStopped,
    StateLoaded,
    StepDone,
    TrainingFinished,
    WeightsDigest,
    WorkloadRaised,
)
from harness.probe.records import SUFFIX, Record

Mover = Callable[[int], float]


def member_of(file_name: str) -> MemberId:
    """Read the process out of a probe file's name, `node.pid.ticks.probe` (ValueError if it is not one)."""
    if not file_name.endswith(SUFFIX):
        raise ValueError(f"{file_name!r} is not a probe file")
    node, pid, ticks = file_name.removesuffix(SUFFIX).rsplit(".", 2)
    return MemberId(node, int(pid), int(ticks))


def convert(record: Record, member: MemberId, to_tester_s: Mover, received_s: float) -> Observation:
    """Return the observation that `record` of `member` says. Raises ValueError for an unknown or broken record."""
    try:
        make = _MAKERS[record["is"]]
        return make(record, member, to_tester_s, received_s)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"probe record of pid {member.pid} does not fit: {error!r}: {str(record)[:200]}") from error


def _joined(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    return MemberJoined(to_tester_s(record["at_ns"]), member, str(record["role"]))


def _held(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    return RankHeld(
        to_tester_s(record["at_ns"]),
        member,
        rank=int(record["rank"]),
        world=int(record["world"]),
        generation=int(record["generation"]),
    )


def _loaded(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    return StateLoaded(
        to_tester_s(record["at_ns"]),
        member,
        rank=int(record["rank"]),
        generation=int(record["generation"]),
        step=int(record["step"]),
    )


def _step(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    started_ns = record["started_ns"]
    loss = record["loss"]
    return StepDone(
        to_tester_s(record["at_ns"]),
        None if started_ns is None else to_tester_s(int(started_ns)),
        member,
        rank=int(record["rank"]),
        world=int(record["world"]),
        generation=int(record["generation"]),
        step=int(record["step"]),
        samples=tuple(int(sample) for sample in record["samples"]),
        loss=None if loss is None else float(loss),
    )


def _weights(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    return WeightsDigest(
        to_tester_s(record["at_ns"]),
        member,
        rank=int(record["rank"]),
        step=int(record["step"]),
        digest=str(record["digest"]),
    )


def _finished(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    return TrainingFinished(to_tester_s(record["at_ns"]), member, rank=int(record["rank"]), step=int(record["step"]))


def _cost(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    return ObservationCost(
        to_tester_s(record["at_ns"]),
        member,
        rank=int(record["rank"]),
        steps=int(record["steps"]),
        probe_s=float(record["probe_s"]),
        stethoscope_s=float(record["stethoscope_s"]),
        training_s=float(record["training_s"]),
    )


def _raised(record: Record, member: MemberId, to_tester_s: Mover, _: float) -> Observation:
    return WorkloadRaised(
        to_tester_s(record["at_ns"]),
        member,
        rank=_number(record["rank"]),
        step=_number(record["step"]),
        error=str(record["error"]),
        traceback=str(record["traceback"]),
    )


def _claim(record: Record, _: MemberId, to_tester_s: Mover, received_s: float) -> Observation:
    return Claim(
        # A claim counts from the moment somebody outside the stack could act on it.
        at_s=received_s,
        said_s=to_tester_s(record["at_ns"]),
        kind=str(record["kind"]),
        rank=_number(record["rank"]),
        pid=_number(record["pid"]),
        node=None if record["node"] is None else str(record["node"]),
        generation=int(record["generation"]),
        confirmed=bool(record["confirmed"]),
        detail=str(record["detail"]),
    )


def _stopped(record: Record, _member: MemberId, to_tester_s: Mover, _received_s: float) -> Observation:
    return StackStopped(to_tester_s(record["at_ns"]), str(record["reason"]))


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


_MAKERS: Mapping[str, Callable[[Record, MemberId, Mover, float], Observation]] = {
    "joined": _joined,
    "held": _held,
    "loaded": _loaded,
    "step": _step,
    "weights": _weights,
    "finished": _finished,
    "cost": _cost,
    "raised": _raised,
    "claim": _claim,
    "stopped": _stopped,
}
