"""A sharded optimizer: each rank updates only its own part of the parameters, whose master copy nobody else has.

`step()` is reduce-scatter of the gradients, the inner optimizer on the own shard, all-gather of the parameters. All
three run without a copy, in buffers that belong to one generation: parameters and gradients are views into them. A new
generation brings new buffers, so an old generation's all-gather that completes late can overwrite nothing that lives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.resilience.group import Collectives


class ShardedOptimizer:
    """Wraps an optimizer class.

    `inner` is the torch optimizer over the own shard (give it to learning-rate schedules).
    """

    def __init__(
        self, make: Callable[..., torch.optim.Optimizer], model: torch.nn.Module, *, world: int, **options: Any
    ) -> None:
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._world = world
        total = sum(parameter.numel() for parameter in self.parameters)
        self.shard_size = -(-total // world)
        self._padded = self.shard_size * world
        self._flat = torch.zeros(0)
        self._flat_grad = torch.zeros(0)
        self._grads: list[torch.Tensor] = []
        self._move(from_parameters=True)
        self.master = torch.nn.Parameter(torch.zeros(self.shard_size))
        self.inner = make([self.master], **options)
        self._group: Collectives | None = None
        self._renew_received()

    def join(self, group: Collectives) -> None:
        """Use a group from now on: parameters, gradients and what is received move to buffers of its own."""
        self._group = group
        self._move(from_parameters=False)
        self._renew_received()

    @torch.no_grad()
    def _move(self, *, from_parameters: bool) -> None:
        flat, self._flat_grad = torch.zeros(self._padded), torch.zeros(self._padded)
        if not from_parameters:
            flat.copy_(self._flat)
        self._grads = []
        offset = 0
        for parameter in self.parameters:
            end = offset + parameter.numel()
            if from_parameters:
                flat[offset:end].copy_(parameter.reshape(-1))
            parameter.data = flat[offset:end].view(parameter.shape)
            self._grads.append(self._flat_grad[offset:end].view(parameter.shape))
            parameter.grad = self._grads[-1]
            offset = end
        self._flat = flat

    def _renew_received(self) -> None:
        # What reduce-scatter leaves is the master's gradient.
        self._received = torch.zeros(self.shard_size)
        self.master.grad = self._received

    def start_shard(self, rank: int) -> None:
        """Take the shard of `rank` out of the parameters as built, with a fresh optimizer state."""
        with torch.no_grad():
            self.master.copy_(self._flat[rank * self.shard_size : (rank + 1) * self.shard_size])

    @torch.no_grad()
    def step(self) -> None:
        """One optimizer update of the whole world."""
        group = self._joined()
        self._reclaim_gradients()
        group.reduce_scatter(self._received, self._flat_grad)
        self._received.mul_(1.0 / self._world)
        self.master.grad = self._received
        self.inner.step()
        self.gather()
        self._flat_grad.zero_()

    def _reclaim_gradients(self) -> None:
        """Take gradients back that the program keeps elsewhere (after zero_grad(set_to_none=True), for instance)."""
        for parameter, view in zip(self.parameters, self._grads, strict=True):
            if parameter.grad is view:
                continue
            if parameter.grad is None:
                view.zero_()
            else:
                view.copy_(parameter.grad)
            parameter.grad = view

    @torch.no_grad()
    def gather(self) -> None:
        """Rebuild all parameters from the masters of all shards."""
        self._joined().all_gather(self._flat, self.master.detach())

    def zero_grad(self) -> None:
        """Forget gradients, for instance those of a step that was abandoned."""
        self._flat_grad.zero_()

    def flat_parameters(self) -> torch.Tensor:
        """All parameters, flat and padded, shape (world * shard_size,); live, not a copy."""
        return self._flat

    @torch.no_grad()
    def set_flat_parameters(self, flat: torch.Tensor) -> None:
        """Overwrite all parameters."""
        self._flat.copy_(flat)

    def _joined(self) -> Collectives:
        if self._group is None:
            raise RuntimeError("the optimizer has no group: step() may be called only inside session.train()")
        return self._group

    def state_dict(self) -> dict[str, Any]:
        """The own shard's master and optimizer state."""
        return {"master": self.master.detach(), "inner": self.inner.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put a shard back; parameters follow with `gather`."""
        with torch.no_grad():
            self.master.copy_(state["master"])
        self.inner.load_state_dict(state["inner"])
        self.zero_grad()
