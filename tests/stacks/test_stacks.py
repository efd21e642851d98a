from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.stacks.base import StackRequest, members_by_node
from harness.stacks.reference import ReferenceStack
from harness.stacks.torchrun import TorchrunStack


def request(work: Path, *, world: int = 4, spares: int = 1, nodes: int = 3, port: int | None = None) -> StackRequest:
    arguments = ("--seed", "7", "--steps", "60", "--width", "8")
    return StackRequest(Path("/w/gpt.py"), arguments, world, spares, nodes, 60, "ci", port, work)


def test_members_are_spread_evenly() -> None:
    assert members_by_node(5, 3) == {"n0": 2, "n1": 2, "n2": 1}
    assert members_by_node(2, 2) == {"n0": 1, "n1": 1}


def test_the_reference_stack_starts_its_controller_before_its_agents(tmp_path: Path) -> None:
    stages = ReferenceStack().stages(request(tmp_path, port=4500))
    first = next(stages)
    (controller,) = first.specs
    assert first.ready == tmp_path / "controller.address"
    assert controller.role == "controller"
    assert controller.argv[:3] == (sys.executable, "-m", "harness.resilience.controller")
    assert " ".join(controller.argv[3:]) == (
        f"--world 4 --steps 60 --nodes 3 --spares 1 --limits ci --address-file {first.ready} --port 4500"
    )
    first.ready.write_text("127.0.0.1:4501\n")
    second = next(stages)
    assert [(spec.name, spec.node, spec.role) for spec in second.specs] == [
        ("agent-n0", "n0", "agent"),
        ("agent-n1", "n1", "agent"),
        ("agent-n2", "n2", "agent"),
    ]
    assert " ".join(second.specs[2].argv[1:]) == (
        "-m harness.resilience.agent --controller 127.0.0.1:4501 --node n2 --members 1 --world 4 --limits ci"
        " -- /w/gpt.py --seed 7 --steps 60 --width 8"
    )
    assert list(stages) == []


def test_torchrun_is_one_process_with_its_store_unshared(tmp_path: Path) -> None:
    stack = TorchrunStack()
    assert stack.program(Path("/w/gpt.py")) == Path("/w/gpt_torchrun.py")
    ((spec,),) = (stage.specs for stage in stack.stages(request(tmp_path, spares=0, nodes=1)))
    assert " ".join(spec.argv[1:]) == (
        "-m torch.distributed.run --standalone --nproc-per-node 4 --max-restarts 3"
        " /w/gpt.py --seed 7 --steps 60 --width 8"
    )
    assert spec.env == {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    assert not stack.alarms


def test_torchrun_refuses_several_nodes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one node"):
        next(TorchrunStack().stages(request(tmp_path, spares=0, nodes=2)))
