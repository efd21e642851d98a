"""What is done: the one table of fault kinds, and a fault as written in a scenario. Pure.

A fault is written as

    - stop: {rank: 2}              # the kind, its target, and the kind's own parameters
      when: {step: 20}             # chaos/trigger.py
      duration_s: 2                # healed by us after this long; without it, held to the end of the drill
      lease_s: 10                  # healed by the reapers after this long, whatever happens to the tester
      transient: true              # a recovery after our heal counts as one (default: false)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from chaos.errors import FaultError, nearest
from chaos.target import SELECTORS, Selector, parse_selector
from chaos.trigger import FAULT_EVENT, Trigger, parse_trigger

Value = str | int | float | bool

LEASE_MIN_S = 0.5
"""Reapers look at their ledger a few times a second, so a shorter lease could not be kept."""
LEASE_BEYOND_DURATION_S = 5.0
"""Default lease of a fault with a duration: so long after it the tester must have healed it."""
LEASE_TO_THE_END_S = 180.0
"""Default lease of a fault that is held to the end: longer than a drill of the default horizon (120 s) lives."""

SETTINGS = ("when", "duration_s", "lease_s", "transient")


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a kind. `allowed` is empty where any value of the default's type may stand."""

    name: str
    default: Value
    doc: str
    allowed: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class KindSpec:
    """One kind of fault. `undo_doc` says how it is undone; empty where it cannot be (it holds to the end)."""

    name: str
    doc: str
    targets: tuple[str, ...]
    undo_doc: str
    params: tuple[Param, ...] = field(default=())

    @property
    def has_undo(self) -> bool:
        """Whether we can heal it."""
        return bool(self.undo_doc)


_CHILDREN = Param("children", default=False, doc="its descendants too")

KINDS: Mapping[str, KindSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            KindSpec(
                name="kill",
                doc="Send a signal that ends the target.",
                targets=SELECTORS,
                undo_doc="",
                params=(
                    Param(
                        "signal", "KILL", "which signal", allowed=("KILL", "TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV")
                    ),
                    _CHILDREN,
                ),
            ),
            KindSpec(
                name="stop",
                doc="Freeze the target with SIGSTOP: alive, connected, silent.",
                targets=SELECTORS,
                undo_doc="SIGCONT",
                params=(_CHILDREN,),
            ),
            KindSpec(
                name="noop",
                doc="Do nothing, by the same path as every other fault: the control experiment.",
                targets=SELECTORS,
                undo_doc="nothing to undo, and recorded as undone",
            ),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a scenario. `id` is f0, f1, … in file order; `params` holds every parameter of the kind."""

    id: str
    kind: str
    target: Selector
    trigger: Trigger
    duration_s: float | None
    lease_s: float
    params: tuple[tuple[str, Value], ...]
    transient: bool

    def param(self, name: str) -> Value:
        """Return the value of one of the kind's parameters. Raises KeyError."""
        return dict(self.params)[name]

    def describe(self) -> str:
        """Return it in words: "kill rank 2 (signal=KILL) at step 20"."""
        said = ", ".join(f"{name}={value}" for name, value in self.params if value is not False)
        held = "" if self.duration_s is None else f" for {self.duration_s:g} s"
        return f"{self.kind} {self.target.describe()}{f' ({said})' if said else ''}{held} at {self.trigger.describe()}"


def parse_fault(index: int, mapping: Mapping[str, object]) -> Fault:
    """Read the `index`-th fault of a scenario. Raises an InputError that names field, expectation and nearest word."""
    path = f"faults[{index}]"
    kind = _kind(path, mapping)
    spec = KINDS[kind]
    body = mapping[kind]
    if not isinstance(body, Mapping):
        raise FaultError(f"{path}.{kind}", "a target, such as {rank: 2}", given=repr(body))
    _refuse_unknown(f"{path}.{kind}", body, (*spec.targets, *(param.name for param in spec.params)), SELECTORS)
    when = mapping.get("when")
    if not isinstance(when, Mapping):
        raise FaultError(f"{path}.when", "conditions, such as {step: 20}", given="none" if when is None else repr(when))
    duration_s = _seconds(f"{path}.duration_s", mapping.get("duration_s"), above_s=0.0)
    if duration_s is not None and not spec.has_undo:
        raise FaultError(f"{path}.duration_s", f"no duration, since {kind} cannot be undone", given=f"{duration_s:g}")
    transient = mapping.get("transient", False)
    if not isinstance(transient, bool):
        raise FaultError(f"{path}.transient", "true or false", given=repr(transient))
    return Fault(
        id=f"f{index}",
        kind=kind,
        target=parse_selector(body, f"{path}.{kind}", spec.targets),
        trigger=parse_trigger(when, f"{path}.when"),
        duration_s=duration_s,
        lease_s=_lease_s(f"{path}.lease_s", mapping.get("lease_s"), duration_s),
        params=tuple((param.name, _value(f"{path}.{kind}.{param.name}", param, body)) for param in spec.params),
        transient=transient,
    )


def check_chains(faults: Sequence[Fault]) -> None:
    """Refuse a trigger on a fault that does not exist, or that waits for itself. Raises FaultError."""
    waits_for = {}
    for index, fault in enumerate(faults):
        event = fault.trigger.event
        if event is None or not event.startswith(FAULT_EVENT):
            continue
        names = [f"{FAULT_EVENT}{other.id}" for other in faults if other.id != fault.id]
        if event not in names:
            expected = (
                f"another fault of this scenario ({', '.join(names)})" if names else "no other fault: there is none"
            )
            raise FaultError(f"faults[{index}].when.event", expected, given=event, near=nearest(event, names))
        waits_for[fault.id] = event.removeprefix(FAULT_EVENT)
    for index, fault in enumerate(faults):
        reached = fault.id
        for _ in faults:
            reached = waits_for.get(reached, "")
            if reached == fault.id:
                raise FaultError(f"faults[{index}].when.event", "faults that do not wait for each other in a circle")


def _kind(path: str, mapping: Mapping[str, object]) -> str:
    _refuse_unknown(path, mapping, (*KINDS, *SETTINGS), ())
    kinds = [key for key in mapping if key in KINDS]
    if len(kinds) != 1:
        raise FaultError(path, f"exactly one kind of fault ({', '.join(KINDS)})", given=" and ".join(kinds) or "none")
    return kinds[0]


def _refuse_unknown(path: str, mapping: Mapping[str, object], known: tuple[str, ...], later: tuple[str, ...]) -> None:
    # Keys in `later` are known words in the wrong place, about which a later check can say more.
    for key in mapping:
        if key not in known and key not in later:
            raise FaultError(
                f"{path}.{key}", f"one of {', '.join(known)}", given=str(key), near=nearest(str(key), known)
            )


def _seconds(path: str, value: object, *, above_s: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not above_s < value < 1e9:
        raise FaultError(path, f"seconds, more than {above_s:g}", given=repr(value))
    return float(value)


def _lease_s(path: str, value: object, duration_s: float | None) -> float:
    if value is None:
        return LEASE_TO_THE_END_S if duration_s is None else duration_s + LEASE_BEYOND_DURATION_S
    lease_s = _seconds(path, value, above_s=0.0)
    assert lease_s is not None
    if lease_s < LEASE_MIN_S:
        raise FaultError(path, f"at least {LEASE_MIN_S:g} s", given=f"{lease_s:g}")
    if duration_s is not None and lease_s <= duration_s:
        raise FaultError(path, f"more than duration_s ({duration_s:g} s)", given=f"{lease_s:g}")
    return lease_s


def _value(path: str, param: Param, body: Mapping[str, object]) -> Value:
    value = body.get(param.name, param.default)
    if param.allowed:
        if value not in param.allowed:
            words = [str(word) for word in param.allowed]
            raise FaultError(
                path, f"one of {', '.join(words)}", given=repr(value), near=nearest(str(value).upper(), words)
            )
        return param.default if value == param.default else next(word for word in param.allowed if word == value)
    if isinstance(param.default, bool):
        if not isinstance(value, bool):
            raise FaultError(path, "true or false", given=repr(value))
        return value
    if isinstance(param.default, str):
        if not isinstance(value, str):
            raise FaultError(path, "text", given=repr(value))
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FaultError(path, "a number", given=repr(value))
    return value
