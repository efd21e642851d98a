"""What a drill would do: who would be hit, when, by which injector, and how it would be undone. Starts nothing."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.catalog import Catalog
from chaos.fault import KINDS, Fault
from chaos.local_host import LocalHost
from harness.drill.request import program_of
from harness.scenario import Scenario
from harness.stacks.base import Stack, members_by_node, node_names


def forecast(scenario: Scenario, stack: Stack, catalog: Catalog) -> str:
    """Return it as lines of text. Raises CapabilityError when the stack has no program for the workload."""
    return "\n".join(_lines(scenario, stack, catalog))


def _lines(scenario: Scenario, stack: Stack, catalog: Catalog) -> Iterator[str]:
    workload = scenario.workload
    yield f"{scenario.scenario}: {scenario.repeat} × {workload.steps} steps, seed {scenario.seed} (nothing is started)"
    members = members_by_node(workload.ranks + workload.spares, workload.nodes)
    spread = ", ".join(f"{node}: {count}" for node, count in members.items())
    yield f"  stack {stack.name} runs {program_of(scenario, stack)}"
    yield f"  {workload.ranks} ranks and {workload.spares} spares as members on {workload.nodes} nodes ({spread})"
    for fault in scenario.faults:
        yield from _fault(fault, catalog, node_names(workload.nodes))
    yield "  at the end, or when rankdrill dies (two guardians see to that): every process of the run is found by its"
    yield "  tag and killed, and its folder is removed"


def _fault(fault: Fault, catalog: Catalog, nodes: tuple[str, ...]) -> Iterator[str]:
    spec = KINDS[fault.kind]
    yield f"  {fault.id}: {spec.doc}"
    yield f"      who:  {fault.target.describe()}"
    yield f"      when: {fault.trigger.describe()}"
    yield f"      by:   the injector of {catalog[fault.kind].kind!r}{_parameters(fault)}"
    if spec.has_undo:
        until = "the end of the drill" if fault.duration_s is None else f"{fault.duration_s:g} s"
        yield f"      undo: {spec.undo_doc} after {until}; by the guardians after {fault.lease_s:g} s whatever happens"
    else:
        yield "      undo: none: it cannot be undone, and ends with the drill"
    for node in nodes:
        capability = catalog[fault.kind].capable(fault, LocalHost(node))
        if not capability.ok:
            yield f"      NOT POSSIBLE on {node}: {capability.reason}"


def _parameters(fault: Fault) -> str:
    said = ", ".join(f"{name} {value}" for name, value in fault.params)
    return f" with {said}" if said else ""
