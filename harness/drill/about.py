"""What a report says of a scenario, in the scenario's words, and what the machine adds: the backend and its limits."""

from __future__ import annotations

from harness.report.model import About
from harness.scenario import Scenario

# Both stacks of today train on the host's processors, over loopback.
_BACKEND = ["gloo over loopback: does not certify NCCL, RDMA, or a network between hosts"]


def about(scenario: Scenario) -> About:
    """Return it."""
    workload = scenario.workload
    arguments = "".join(f" --{key} {value}" for key, value in workload.args.items())
    return About(
        file=str(scenario.path),
        claim=scenario.claim,
        why=scenario.why,
        certifies=list(scenario.certifies),
        **{"not": list(scenario.not_)},
        tags=list(scenario.tags),
        workload=f"{workload.program}{arguments}",
        ranks=workload.ranks,
        spares=workload.spares,
        nodes=workload.nodes,
        steps=workload.steps,
        stack=f"{scenario.stack.name}, limits {scenario.stack.limits}",
        launch=scenario.launch.on,
        backend=_BACKEND,
    )
