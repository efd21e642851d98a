"""What each fault kind may rightly be called, and which claims an observation of the tester bears out.

This table is the tester's, written without looking at the stack: a stack that calls a killed rank "hang" did not
find out what happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.errors import HarnessError


class FaultClass(StrEnum):
    """How a fault shows. Only what stops the world has a first step afterwards."""

    FAIL_STOP = "fail-stop"
    HANG = "hang"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Expectation:
    """`claims` are the kinds of claim that are right for the fault; empty when there is nothing to find."""

    fault_class: FaultClass
    claims: tuple[str, ...]

    @property
    def stops_the_world(self) -> bool:
        """Whether no full-world step is possible until somebody acts or the fault is healed."""
        return self.fault_class is not FaultClass.NONE


EXPECTATIONS: Mapping[str, Expectation] = {
    # "node-lost" is right only where the fault was aimed at a node; the culprit rule in alarms.py sees to that.
    "kill": Expectation(FaultClass.FAIL_STOP, ("crash", "node-lost")),
    "stop": Expectation(FaultClass.HANG, ("hang", "stopped", "node-lost")),
    "noop": Expectation(FaultClass.NONE, ()),
}

# Words in the description of a fault's target that make a node the culprit.
NODE_TARGETS = ("node", "agent", "rack")

# Claims about a member that its exit, as the tester saw it, bears out.
SHOWN_BY_EXIT = ("crash",)
# Claims that only an exit with code 0 bears out: an exit whose code the kernel did not tell proves nothing.
SHOWN_BY_EXIT_0 = ("premature-exit",)
# Claims that the program's own word bears out.
SHOWN_BY_RAISE = ("crash", "exception")
# Claims about a node that the exits of all its members bear out.
SHOWN_BY_ALL_EXITS = ("node-lost",)


def expectation(kind: str) -> Expectation:
    """Return what a fault kind must look like (HarnessError for a kind that nobody taught the judge)."""
    if kind not in EXPECTATIONS:
        raise HarnessError(f"the judge has no expectations for the fault kind {kind!r}: add it to EXPECTATIONS")
    return EXPECTATIONS[kind]
